//! The document index, from files to passages, with a SQLite store.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use lango_documents::document_index::{
    DocumentIndex, DocumentIndexError, IngestProgress, IngestReport, IngestSource, chunk_text,
    path_from_text, path_to_text,
};
use lango_documents::embedding::{EmbedError, EmbedPurpose, Embedder, HashedEmbedder};
use lango_domain::documents::SearchScope;
use lango_domain::documents::{DocumentFilter, NewDocument};
use lango_domain::event::{Principal, SessionId};
use lango_domain::lazy::Lazy;
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Value, json};
use tempfile::TempDir;

use lango_testkit::tool_context as context;

struct DocumentHarness {
    folder: TempDir,
    store: SqliteStore,
}

impl DocumentHarness {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store =
            SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite"))).unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        Self { folder, store }
    }

    fn index(&self) -> DocumentIndex {
        self.index_with(Some(Arc::new(HashedEmbedder::default())))
    }

    fn index_with(&self, embedder: Option<Arc<dyn Embedder>>) -> DocumentIndex {
        DocumentIndex::new(
            Arc::new(self.store.clone()),
            self.folder.path().join("words"),
            embedder,
        )
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let file = self.folder.path().join("docs").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    async fn ingest(&self, index: &DocumentIndex) -> IngestReport {
        ingest(index, &self.folder.path().join("docs"))
            .await
            .unwrap()
    }
}

/// Returns a source that may open every file.
fn ingest_source(path: &Path) -> IngestSource {
    IngestSource {
        root: path.canonicalize().unwrap(),
        open: Arc::new(|path| fs::File::open(path)),
    }
}

async fn ingest(index: &DocumentIndex, path: &Path) -> Result<IngestReport, DocumentIndexError> {
    index
        .ingest_path(
            &Principal::local(),
            "default",
            &ingest_source(path),
            &|_| (),
        )
        .await
}

fn local_scope() -> SearchScope {
    SearchScope {
        principal: Principal::local(),
        session: None,
        collections: None,
    }
}

async fn sources(index: &DocumentIndex, query: &str) -> Vec<String> {
    let found = index.search(query, &local_scope(), 5).await.unwrap();
    let name = |source: &str| {
        Path::new(source)
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    found.iter().map(|passage| name(&passage.source)).collect()
}

#[tokio::test]
async fn finds_ingested_documents_with_their_spans() {
    let harness = DocumentHarness::new();
    harness.write("tea.md", "# Tea\n\n## Green\n\nGreen tea is steeped at 70 degrees.\n\n## Black\n\nBlack tea takes boiling water.\n");
    harness.write("boats.txt", "Sailing boats need wind.\n");
    harness.write("sub/picture.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    harness.write("bad.pdf", "%PDF-1.4 and nothing else");
    let index = harness.index();
    let report = harness.ingest(&index).await;
    assert_eq!((report.new, report.unchanged), (2, 0));
    assert!(
        report
            .skipped
            .iter()
            .any(|(path, _)| path.ends_with("bad.pdf")),
        "{report:?}"
    );
    let found = index
        .search("how hot for green tea", &local_scope(), 3)
        .await
        .unwrap();
    assert!(found[0].source.ends_with("tea.md") && found[0].text.contains("70 degrees"));
    assert!(
        found[0].heading.contains("Tea") && found[0].span.last >= 5,
        "{:?}",
        found[0]
    );
    assert!(found[0].breakdown.lexical.is_some() && found[0].breakdown.vector.is_some());
    assert_eq!(
        harness.ingest(&index).await.unchanged,
        2,
        "unchanged documents are skipped"
    );
    harness.write("tea.md", "Now it is about coffee.\n");
    fs::remove_file(harness.folder.path().join("docs/boats.txt")).unwrap();
    let report = harness.ingest(&index).await;
    assert_eq!((report.changed, report.removed), (1, 1));
    assert_eq!(sources(&index, "coffee").await[0], "tea.md");
    assert!(
        !sources(&index, "sailing wind")
            .await
            .contains(&"boats.txt".to_owned())
    );
}

#[tokio::test]
async fn finds_words_of_every_script() {
    let harness = DocumentHarness::new();
    for (name, text) in [
        ("ko.txt", "고양이는 창가에서 잠을 잔다.\n"),
        ("ja.txt", "東京の天気は晴れです。\n"),
        ("de.txt", "Die Häuser der Altstadt sind aus Fachwerk.\n"),
        ("ar.txt", "القطة تنام على الكرسي.\n"),
        ("emoji.txt", "The party is on Friday 🎉\n"),
    ] {
        harness.write(name, text);
    }
    let index = harness.index();
    harness.ingest(&index).await;
    for (query, expected) in [
        ("고양이", "ko.txt"),
        ("天気", "ja.txt"),
        ("Haus Altstadt", "de.txt"),
        ("القطة", "ar.txt"),
        ("🎉", "emoji.txt"),
    ] {
        assert_eq!(sources(&index, query).await[0], expected, "{query}");
    }
}

/// An interrupted ingestion continues, and the index is the same as without the interruption.
#[tokio::test]
async fn an_interrupted_run_ends_with_the_same_index() {
    let (whole, interrupted) = (DocumentHarness::new(), DocumentHarness::new());
    for harness in [&whole, &interrupted] {
        for number in 0..200 {
            harness.write(
                &format!("{number:03}.txt"),
                format!("Document {number} is about subject{number}.\n"),
            );
        }
    }
    whole.ingest(&whole.index()).await;
    {
        let index = interrupted.index();
        let principal = Principal::local();
        let docs = interrupted.folder.path().join("docs");
        let reached = Arc::new(tokio::sync::Notify::new());
        let notify = Arc::clone(&reached);
        let progress = move |progress: IngestProgress| {
            if progress.done >= 60 {
                notify.notify_one();
            }
        };
        let docs = ingest_source(&docs);
        tokio::select! {
            _ = index.ingest_path(&principal, "default", &docs, &progress) => {}
            () = reached.notified() => {}
        }
    }
    let index = interrupted.index();
    let report = interrupted.ingest(&index).await;
    assert_eq!(report.new + report.unchanged, 200);
    for number in [0, 59, 60, 199] {
        let query = format!("subject{number}");
        assert_eq!(
            sources(&index, &query).await[0],
            sources(&whole.index(), &query).await[0],
            "{query}"
        );
    }
    let collections = index
        .store()
        .collections(&Principal::local())
        .await
        .unwrap();
    assert_eq!(
        (collections[0].documents, collections[0].pieces),
        (200, 200)
    );
}

/// The lexical index is derived data: it may be deleted, or written by another process.
#[tokio::test]
async fn rebuilds_a_deleted_lexical_index() {
    let harness = DocumentHarness::new();
    harness.write("a.txt", "A sentence about lighthouses.\n");
    harness.ingest(&harness.index()).await;
    fs::remove_dir_all(harness.folder.path().join("words")).unwrap();
    assert_eq!(sources(&harness.index(), "lighthouses").await, ["a.txt"]);
    let (one, other) = (harness.index(), harness.index());
    assert_eq!(sources(&other, "lighthouses").await, ["a.txt"]);
    harness.write("b.txt", "Another about volcanoes.\n");
    harness.ingest(&one).await;
    assert_eq!(sources(&other, "volcanoes").await[0], "b.txt");
}

#[tokio::test]
async fn uses_lexical_search_without_an_embedder() {
    let harness = DocumentHarness::new();
    harness.write("a.txt", "A sentence about lighthouses.\n");
    let index = harness.index_with(None);
    harness.ingest(&index).await;
    let found = index
        .search("lighthouses", &local_scope(), 3)
        .await
        .unwrap();
    assert!(found.len() == 1 && found[0].breakdown.vector.is_none());
}

/// A few common letters are not a hit; a similar spelling is.
#[tokio::test]
async fn does_not_find_unrelated_documents() {
    let harness = DocumentHarness::new();
    harness.write(
        "tea.md",
        "# Tea\n\nGreen tea is steeped at 70 degrees for two minutes, black tea longer.\n",
    );
    harness.write(
        "physik.md",
        "# Quantenmechanik\n\nDie Quantenmechanik beschreibt kleine Teilchen.\n",
    );
    let index = harness.index();
    harness.ingest(&index).await;
    assert_eq!(sources(&index, "photosynthesis").await, [""; 0]);
    assert_eq!(sources(&index, "zebra").await, [""; 0]);
    assert_eq!(
        sources(&index, "Quantenmechanikvorlesung").await,
        ["physik.md"]
    );
}

/// Each embedder has its own vectors; vectors of different lengths are never compared.
#[tokio::test]
async fn recomputes_vectors_after_a_change_of_the_embedder() {
    let harness = DocumentHarness::new();
    harness.write("a.txt", "A sentence about lighthouses.\n");
    harness.ingest(&harness.index()).await;
    let shorter = harness.index_with(Some(Arc::new(
        HashedEmbedder::default().with_dimensions(128).unwrap(),
    )));
    let found = shorter
        .search("lighthouse", &local_scope(), 3)
        .await
        .unwrap();
    assert!(found[0].breakdown.vector.is_some());
}

/// Documents of a session are found from that session only; documents without a session from every
/// session.
#[tokio::test]
async fn filters_documents_of_other_sessions() {
    let harness = DocumentHarness::new();
    let index = harness.index();
    let document = |source: &str, session: Option<&str>, collection: &str| NewDocument {
        collection: collection.to_owned(),
        source: source.to_owned(),
        root: source.to_owned(),
        title: source.to_owned(),
        hash: source.to_owned(),
        session: session.map(SessionId::new),
        chunks: chunk_text(&format!("All about penguins, says {source}.")),
    };
    let all = vec![
        document("common", None, "c"),
        document("own", Some("s1"), "c"),
        document("other", Some("s2"), "c"),
        document("apart", None, "d"),
    ];
    index
        .ingest_documents(&Principal::local(), all)
        .await
        .unwrap();
    index
        .ingest_documents(
            &Principal::new("somebody"),
            vec![document("foreign", None, "c")],
        )
        .await
        .unwrap();
    let names = async |session: Option<&str>, collections: Option<&str>| {
        let scope = SearchScope {
            principal: Principal::local(),
            session: session.map(SessionId::new),
            collections: collections.map(|name| vec![name.to_owned()]),
        };
        let mut found: Vec<String> = index
            .search("penguins", &scope, 9)
            .await
            .unwrap()
            .into_iter()
            .map(|found| found.source)
            .collect();
        found.sort();
        found
    };
    assert_eq!(names(None, None).await, ["apart", "common"]);
    assert_eq!(names(Some("s1"), None).await, ["apart", "common", "own"]);
    assert_eq!(names(Some("s1"), Some("c")).await, ["common", "own"]);
    assert_eq!(
        index
            .store()
            .remove(&Principal::local(), "c", DocumentFilter::All)
            .await
            .unwrap(),
        3
    );
    assert_eq!(names(Some("s1"), None).await, ["apart"]);
}

#[tokio::test]
async fn removes_documents_that_no_longer_contain_text() {
    let harness = DocumentHarness::new();
    for name in ["emptied.txt", "replaced.txt", "stays.txt"] {
        harness.write(name, format!("zebras in {name}"));
    }
    let index = harness.index();
    harness.ingest(&index).await;
    harness.write("emptied.txt", "");
    harness.write("replaced.txt", b"\x7fELF\x02\x01\0\0");
    let report = harness.ingest(&index).await;
    assert_eq!(
        (report.unchanged, report.removed, report.skipped.len()),
        (1, 2, 2),
        "{report:?}"
    );
    assert_eq!(sources(&index, "zebras").await, ["stays.txt"]);
}

#[tokio::test]
async fn lists_unusual_names_unchanged() {
    let harness = DocumentHarness::new();
    harness.write("a\nb/c.txt", "größer");
    let root = harness
        .folder
        .path()
        .join("docs/a\nb")
        .canonicalize()
        .unwrap();
    let index = harness.index();
    ingest(&index, &root).await.unwrap();
    let listed = index
        .store()
        .collections(&Principal::local())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(listed.roots, [root.to_str().unwrap()]);
    assert_eq!(listed.bytes, "größer".len() as u64);
    let sources = index
        .store()
        .sources(&Principal::local(), "default")
        .await
        .unwrap();
    assert_eq!(sources[0].root, root.to_str().unwrap());
}

/// A provider that counts the embedded passages, rejects texts that contain `poison`, and is busy
/// after `max_requests` requests.
struct FlakyEmbedder {
    requests: AtomicUsize,
    embedded: Arc<AtomicUsize>,
    max_requests: usize,
}

impl Embedder for FlakyEmbedder {
    fn identity(&self) -> String {
        "moody/1".to_owned()
    }

    fn dimensions(&self) -> Option<usize> {
        Some(HashedEmbedder::DIMENSIONS)
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbedPurpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, EmbedError>> {
        if self.requests.fetch_add(1, Ordering::Relaxed) >= self.max_requests {
            return Box::pin(async { Err(EmbedError::Busy { retry_after: None }) });
        }
        if texts.iter().any(|text| text.contains("poison")) {
            return Box::pin(async { Err(EmbedError::Refused("not that".to_owned())) });
        }
        if purpose == EmbedPurpose::Passage {
            self.embedded.fetch_add(texts.len(), Ordering::Relaxed);
        }
        HashedEmbedder::default().embed(texts, purpose)
    }
}

impl DocumentHarness {
    fn flaky_index(&self, embedded: &Arc<AtomicUsize>, max_requests: usize) -> DocumentIndex {
        let (requests, embedded) = (AtomicUsize::new(0), Arc::clone(embedded));
        self.index_with(Some(Arc::new(FlakyEmbedder {
            requests,
            embedded,
            max_requests,
        })))
    }
}

/// Vectors of a provider are in the store and are not computed again after the derived files were
/// deleted.
#[tokio::test]
async fn requests_vectors_of_a_provider_once() {
    let harness = DocumentHarness::new();
    for number in 0..100 {
        harness.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{}.\n", number / 2),
        );
    }
    let embedded = Arc::<AtomicUsize>::default();
    let index = || harness.flaky_index(&embedded, usize::MAX);
    harness.ingest(&index()).await;
    let first = embedded.load(Ordering::Relaxed);
    assert!(first >= 50);
    fs::remove_dir_all(harness.folder.path().join("words")).unwrap();
    index().sync().await.unwrap();
    let found = index().search("subject7", &local_scope(), 3).await.unwrap();
    assert!(found[0].breakdown.vector.is_some());
    harness.write("again.txt", "A sentence about subject7.\n");
    harness.ingest(&index()).await;
    // The title, which is the file name, is part of the embedded text.
    assert_eq!(embedded.load(Ordering::Relaxed), first + 1);
}

#[tokio::test]
async fn a_rejected_chunk_does_not_block_others() {
    let (harness, embedded) = (DocumentHarness::new(), Arc::default());
    for number in 0..40 {
        harness.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{number}.\n"),
        );
    }
    harness.write("bad.txt", "A sentence about poison.\n");
    let index = harness.flaky_index(&embedded, usize::MAX);
    harness.ingest(&index).await;
    let best = |query: &'static str| {
        let index = index.clone();
        async move {
            index
                .search(query, &local_scope(), 1)
                .await
                .unwrap()
                .remove(0)
        }
    };
    assert!(best("subject7").await.breakdown.vector.is_some());
    let (found, error) = index
        .search_with_fallback("poison", &local_scope(), 1)
        .await
        .unwrap();
    assert!(found[0].source.ends_with("bad.txt") && found[0].breakdown.vector.is_none());
    assert_eq!(
        error,
        Some(EmbedError::Refused("not that".to_owned())),
        "the query contains the rejected word too"
    );
}

#[tokio::test]
async fn keeps_vectors_computed_before_a_failure() {
    let (harness, embedded) = (DocumentHarness::new(), Arc::<AtomicUsize>::default());
    for number in 0..400 {
        harness.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{number}.\n"),
        );
    }
    for run in 1.. {
        assert!(run < 6, "too many runs");
        let index = harness.flaky_index(&embedded, 2);
        let root = harness.folder.path().join("docs");
        if ingest(&index, &root).await.is_ok() {
            break;
        }
    }
    assert_eq!(
        embedded.load(Ordering::Relaxed),
        400,
        "each chunk was embedded once"
    );
}

#[tokio::test]
async fn falls_back_to_lexical_search() {
    let (harness, embedded) = (DocumentHarness::new(), Arc::default());
    for number in 0..10 {
        harness.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{number}.\n"),
        );
    }
    let (index, root) = (
        harness.flaky_index(&embedded, 0),
        harness.folder.path().join("docs"),
    );
    assert!(ingest(&index, &root).await.is_err());
    assert!(
        index.search("subject7", &local_scope(), 1).await.is_err(),
        "search without fallback returns the error"
    );
    let (found, error) = index
        .search_with_fallback("subject7", &local_scope(), 1)
        .await
        .unwrap();
    assert!(found[0].source.ends_with("/7.txt") && error.is_some());
}

#[tokio::test]
async fn rebuilds_a_lexical_index_found_corrupt_during_search() {
    let harness = DocumentHarness::new();
    harness.write(
        "a.txt",
        "A sentence about lighthouses and the keepers of lighthouses.\n",
    );
    harness.ingest(&harness.index()).await;
    let files = fs::read_dir(harness.folder.path().join("words/v2"))
        .unwrap()
        .map(|file| file.unwrap().path());
    let positions: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "pos"))
        .collect();
    assert!(!positions.is_empty());
    positions
        .iter()
        .for_each(|file| fs::remove_file(file).unwrap());
    assert_eq!(
        sources(&harness.index(), "keepers of lighthouses").await,
        ["a.txt"]
    );
}

/// Two instances sync from the same store into the same files, while the vector file is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_indexes_sync_from_one_store() {
    let harness = DocumentHarness::new();
    let (one, other) = (harness.index(), harness.index());
    for round in 0..6 {
        harness.write(
            &format!("{round}.txt"),
            format!("A sentence about thing{round}.\n"),
        );
        let (report, synced) = tokio::join!(harness.ingest(&one), other.sync());
        assert_eq!((report.new, synced.is_ok()), (1, true));
        if round == 3 {
            let files = fs::read_dir(harness.folder.path().join("words"))
                .unwrap()
                .map(|file| file.unwrap().path());
            files
                .filter(|path| {
                    path.extension()
                        .is_some_and(|extension| extension == "vectors")
                })
                .for_each(|path| fs::remove_file(path).unwrap());
        }
    }
    other.sync().await.unwrap();
    for index in [&one, &other] {
        for round in 0..6 {
            let found = index
                .search(&format!("thing{round}"), &local_scope(), 1)
                .await
                .unwrap();
            assert!(
                found[0].source.ends_with(&format!("{round}.txt"))
                    && found[0].breakdown.vector.is_some()
            );
        }
    }
}

/// B74: passages of one principal are never found by another, regardless of the names of principals
/// and collections.
#[tokio::test]
async fn separators_in_names_grant_no_access() {
    let harness = DocumentHarness::new();
    let index = harness.index();
    let document = NewDocument {
        collection: "c\u{1f}d".to_owned(),
        source: "secret".to_owned(),
        root: String::new(),
        title: String::new(),
        hash: String::new(),
        session: None,
        chunks: chunk_text("All about penguins."),
    };
    index
        .ingest_documents(&Principal::new("a\u{1f}b"), vec![document])
        .await
        .unwrap();
    for (principal, collection) in [
        ("a", "b"),
        ("a", "b\u{1f}c"),
        ("a\u{1f}b\u{1f}c", "d"),
        ("a\u{1f}b", "c"),
    ] {
        let principal = Principal::new(principal);
        for collections in [None, Some(vec![collection.to_owned()])] {
            if principal.as_str() == "a\u{1f}b" && collections.is_none() {
                continue;
            }
            let scope = SearchScope {
                principal: principal.clone(),
                session: None,
                collections,
            };
            assert!(
                index
                    .search("penguins", &scope, 5)
                    .await
                    .unwrap()
                    .is_empty(),
                "{scope:?}"
            );
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn distinguishes_names_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let harness = DocumentHarness::new();
    for byte in [0xfe, 0xff] {
        let name = [b"a", &[byte][..], b".txt"].concat();
        let file = harness
            .folder
            .path()
            .join("docs")
            .join(std::ffi::OsStr::from_bytes(&name));
        fs::write(file, format!("zebra number {byte}")).unwrap();
    }
    // A name that looks like the escaped form of another.
    harness.write(r"a\xfe.txt", "zebra number none");
    let index = harness.index();
    assert_eq!(
        (
            harness.ingest(&index).await.new,
            harness.ingest(&index).await.unchanged
        ),
        (3, 3)
    );
    assert_eq!(sources(&index, "zebra 254").await[0], r"a\xfe.txt");
    for name in [
        &b"a\xfe.txt"[..],
        br"a\xfe.txt",
        br"\x\x5c\xg",
        "ü\n".as_bytes(),
        b"\xff\xfe/x",
    ] {
        let path = Path::new(std::ffi::OsStr::from_bytes(name));
        let text = path_to_text(path);
        assert_eq!(path_from_text(&text), path, "{text}");
    }
}

/// A batch of changes may contain only removals.
#[tokio::test]
async fn syncs_vectors_after_many_removals() {
    let harness = DocumentHarness::new();
    for number in 0..1_100 {
        harness.write(&format!("big/{number}.md"), format!("quagga {number}"));
    }
    harness.write("kept.md", "the okapi");
    let index = harness.index();
    harness.ingest(&index).await;
    fs::remove_dir_all(harness.folder.path().join("docs/big")).unwrap();
    assert_eq!(harness.ingest(&index).await.removed, 1_100);
    harness.write("new.md", "the zebra duiker is small");
    harness.ingest(&index).await;
    let again = harness.index();
    let found = again
        .search("zebra duiker", &local_scope(), 1)
        .await
        .unwrap();
    assert!(found[0].breakdown.vector.is_some(), "{found:?}");
}

#[tokio::test]
async fn duplicates_do_not_displace_other_passages() {
    let harness = DocumentHarness::new();
    for number in 0..150 {
        harness.write(
            &format!("vendor/{number}.md"),
            "wombat backups and wombat backups once more",
        );
    }
    harness.write(
        "ops.md",
        "Somewhere else: backups of the wombat are made at night, by whoever is on duty.",
    );
    let index = harness.index();
    harness.ingest(&index).await;
    let found = index
        .search("wombat backups", &local_scope(), 10)
        .await
        .unwrap();
    assert_eq!((found.len(), found[0].duplicates), (2, 149));
}

#[tokio::test]
async fn keeps_a_file_that_was_ingested_by_its_own_path() {
    let harness = DocumentHarness::new();
    harness.write(".gitignore", "*.log");
    harness.write("x.log", "the numbat");
    harness.write("y.md", "the bilby");
    let index = harness.index();
    let log = harness.folder.path().join("docs/x.log");
    ingest(&index, &log).await.unwrap();
    assert_eq!(harness.ingest(&index).await.removed, 0);
    assert_eq!(sources(&index, "numbat").await, ["x.log"]);
    fs::remove_file(log).unwrap();
    assert_eq!(harness.ingest(&index).await.removed, 1);
}

/// S81
#[tokio::test]
async fn rag_retrieve_limits_the_size_of_results() {
    let harness = DocumentHarness::new();
    for number in 0..30 {
        let words: String = (0..400)
            .map(|word| format!("산들바람{}의 ", number * 1000 + word))
            .collect();
        harness.write(&format!("{number}.txt"), words);
    }
    let index = harness.index();
    harness.ingest(&index).await;
    let shared = index.clone();
    let tool = lango_documents::tools(&Lazy::new(move || Ok(Arc::new(shared.clone()))), None, None)
        .remove(0);
    let call = async |args: Value| {
        tool.call(context(), args)
            .await
            .map(|output| output.content.text)
    };
    let all = call(json!({ "query": "산들바람 이야기", "limit": 20, "collections": [] }))
        .await
        .unwrap();
    assert!(all.len() < 40_000);
    let all: Value = serde_json::from_str(&all).unwrap();
    let items = all["items"].as_array().unwrap().len() as u64;
    assert!(
        items > 4 && items + all["left_out"].as_u64().unwrap() == 20,
        "{items}"
    );
    let unknown = call(json!({ "query": "산들바람", "collections": ["defualt"] }))
        .await
        .unwrap_err();
    assert_eq!(
        unknown.0,
        "unknown collection `defualt`; existing collections: default"
    );
    for args in [
        json!({ "query": " " }),
        json!({ "query": "x", "limit": 0 }),
        json!({ "query": "x", "limit": 21 }),
    ] {
        assert!(call(args).await.unwrap_err().0.contains("from 1 to 20"));
    }
}
