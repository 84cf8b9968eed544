//! Documents from the file to the passage. The store here is the real one.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use lango_domain::documents::{DocumentFilter, NewDocument};
use lango_domain::event::{Principal, SessionId};
use lango_knowledge::Lazy;
use lango_knowledge::document_index::{
    DocumentIndex, DocumentIndexError, IngestReport, IngestSource, SearchScope, chunk_text,
};
use lango_knowledge::embedding::{EmbedError, EmbedPurpose, Embedder, HashedEmbedder};
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool_calls::context;

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

    async fn ingest(&self, library: &DocumentIndex) -> IngestReport {
        ingest(library, &self.folder.path().join("docs"))
            .await
            .unwrap()
    }
}

/// All that this process may read.
fn ingest_source(path: &Path) -> IngestSource {
    IngestSource {
        root: path.canonicalize().unwrap(),
        open: Arc::new(|path| fs::File::open(path)),
    }
}

async fn ingest(library: &DocumentIndex, path: &Path) -> Result<IngestReport, DocumentIndexError> {
    library
        .ingest_path(
            &Principal::local(),
            "default",
            &ingest_source(path),
            &|_| (),
        )
        .await
}

fn everywhere() -> SearchScope {
    SearchScope {
        principal: Principal::local(),
        session: None,
        collections: None,
    }
}

async fn sources(library: &DocumentIndex, question: &str) -> Vec<String> {
    let found = library.search(question, &everywhere(), 5).await.unwrap();
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
async fn what_is_added_is_found_with_its_place() {
    let desk = DocumentHarness::new();
    desk.write("tea.md", "# Tea\n\n## Green\n\nGreen tea is steeped at 70 degrees.\n\n## Black\n\nBlack tea takes boiling water.\n");
    desk.write("boats.txt", "Sailing boats need wind.\n");
    desk.write("sub/picture.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    desk.write("bad.pdf", "%PDF-1.4 and nothing else");
    let library = desk.index();
    let added = desk.ingest(&library).await;
    assert_eq!((added.new, added.unchanged), (2, 0));
    assert!(
        added
            .skipped
            .iter()
            .any(|(path, _)| path.ends_with("bad.pdf")),
        "{added:?}"
    );
    let found = library
        .search("how hot for green tea", &everywhere(), 3)
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
        desk.ingest(&library).await.unchanged,
        2,
        "nothing changed, nothing is done"
    );
    desk.write("tea.md", "Now it is about coffee.\n");
    fs::remove_file(desk.folder.path().join("docs/boats.txt")).unwrap();
    let added = desk.ingest(&library).await;
    assert_eq!((added.changed, added.removed), (1, 1));
    assert_eq!(sources(&library, "coffee").await[0], "tea.md");
    assert!(
        !sources(&library, "sailing wind")
            .await
            .contains(&"boats.txt".to_owned())
    );
}

#[tokio::test]
async fn words_of_every_script_are_found() {
    let desk = DocumentHarness::new();
    for (name, text) in [
        ("ko.txt", "고양이는 창가에서 잠을 잔다.\n"),
        ("ja.txt", "東京の天気は晴れです。\n"),
        ("de.txt", "Die Häuser der Altstadt sind aus Fachwerk.\n"),
        ("ar.txt", "القطة تنام على الكرسي.\n"),
        ("emoji.txt", "The party is on Friday 🎉\n"),
    ] {
        desk.write(name, text);
    }
    let library = desk.index();
    desk.ingest(&library).await;
    for (question, expected) in [
        ("고양이", "ko.txt"),
        ("天気", "ja.txt"),
        ("Haus Altstadt", "de.txt"),
        ("القطة", "ar.txt"),
        ("🎉", "emoji.txt"),
    ] {
        assert_eq!(sources(&library, question).await[0], expected, "{question}");
    }
}

/// An interrupted run goes on: what ends in the index is the same as without the interruption.
#[tokio::test]
async fn an_interrupted_run_ends_with_the_same_index() {
    let (whole, cut) = (DocumentHarness::new(), DocumentHarness::new());
    for desk in [&whole, &cut] {
        for number in 0..200 {
            desk.write(
                &format!("{number:03}.txt"),
                format!("Document {number} is about subject{number}.\n"),
            );
        }
    }
    whole.ingest(&whole.index()).await;
    {
        let library = cut.index();
        let principal = Principal::local();
        let docs = cut.folder.path().join("docs");
        let seen = Arc::new(tokio::sync::Notify::new());
        let tell = Arc::clone(&seen);
        let progress = move |progress: lango_knowledge::document_index::IngestProgress| {
            if progress.done >= 60 {
                tell.notify_one();
            }
        };
        let docs = ingest_source(&docs);
        tokio::select! {
            _ = library.ingest_path(&principal, "default", &docs, &progress) => {}
            () = seen.notified() => {}
        }
    }
    let library = cut.index();
    let added = cut.ingest(&library).await;
    assert_eq!(added.new + added.unchanged, 200);
    for number in [0, 59, 60, 199] {
        let question = format!("subject{number}");
        assert_eq!(
            sources(&library, &question).await[0],
            sources(&whole.index(), &question).await[0],
            "{question}"
        );
    }
    let collections = library
        .store()
        .collections(&Principal::local())
        .await
        .unwrap();
    assert_eq!(
        (collections[0].documents, collections[0].pieces),
        (200, 200)
    );
}

/// The index of words is derived: it may be deleted, damaged, or written by another process.
#[tokio::test]
async fn the_index_of_words_is_made_anew_when_it_is_gone() {
    let desk = DocumentHarness::new();
    desk.write("a.txt", "A sentence about lighthouses.\n");
    desk.ingest(&desk.index()).await;
    fs::remove_dir_all(desk.folder.path().join("words")).unwrap();
    assert_eq!(sources(&desk.index(), "lighthouses").await, ["a.txt"]);
    let (one, other) = (desk.index(), desk.index());
    assert_eq!(sources(&other, "lighthouses").await, ["a.txt"]);
    desk.write("b.txt", "Another about volcanoes.\n");
    desk.ingest(&one).await;
    assert_eq!(sources(&other, "volcanoes").await[0], "b.txt");
}

#[tokio::test]
async fn without_an_embedder_words_alone_decide() {
    let desk = DocumentHarness::new();
    desk.write("a.txt", "A sentence about lighthouses.\n");
    let library = desk.index_with(None);
    desk.ingest(&library).await;
    let found = library
        .search("lighthouses", &everywhere(), 3)
        .await
        .unwrap();
    assert!(found.len() == 1 && found[0].breakdown.vector.is_none());
}

/// What is alike by a few letters only is no answer; what is spelled alike is.
#[tokio::test]
async fn what_has_nothing_to_do_with_a_question_is_not_found() {
    let desk = DocumentHarness::new();
    desk.write(
        "tea.md",
        "# Tea\n\nGreen tea is steeped at 70 degrees for two minutes, black tea longer.\n",
    );
    desk.write(
        "physik.md",
        "# Quantenmechanik\n\nDie Quantenmechanik beschreibt kleine Teilchen.\n",
    );
    let library = desk.index();
    desk.ingest(&library).await;
    assert_eq!(sources(&library, "photosynthesis").await, [""; 0]);
    assert_eq!(sources(&library, "zebra").await, [""; 0]);
    assert_eq!(
        sources(&library, "Quantenmechanikvorlesung").await,
        ["physik.md"]
    );
}

/// Another embedder makes its own vectors; those of different lengths never meet.
#[tokio::test]
async fn changing_the_embedder_makes_vectors_anew() {
    let desk = DocumentHarness::new();
    desk.write("a.txt", "A sentence about lighthouses.\n");
    desk.ingest(&desk.index()).await;
    let shorter = desk.index_with(Some(Arc::new(
        HashedEmbedder::default().with_dimensions(128).unwrap(),
    )));
    let found = shorter
        .search("lighthouse", &everywhere(), 3)
        .await
        .unwrap();
    assert!(found[0].breakdown.vector.is_some());
}

/// What belongs to a session is found there only; what belongs to nobody's session is found everywhere.
#[tokio::test]
async fn a_session_filter_applies_to_what_belongs_to_sessions() {
    let desk = DocumentHarness::new();
    let library = desk.index();
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
    library
        .ingest_documents(&Principal::local(), all)
        .await
        .unwrap();
    library
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
        let mut found: Vec<String> = library
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
        library
            .store()
            .remove(&Principal::local(), "c", DocumentFilter::All)
            .await
            .unwrap(),
        3
    );
    assert_eq!(names(Some("s1"), None).await, ["apart"]);
}

#[tokio::test]
async fn what_holds_no_text_any_more_is_not_found_any_more() {
    let desk = DocumentHarness::new();
    for name in ["emptied.txt", "replaced.txt", "stays.txt"] {
        desk.write(name, format!("zebras in {name}"));
    }
    let library = desk.index();
    desk.ingest(&library).await;
    desk.write("emptied.txt", "");
    desk.write("replaced.txt", b"\x7fELF\x02\x01\0\0");
    let added = desk.ingest(&library).await;
    assert_eq!(
        (added.unchanged, added.removed, added.skipped.len()),
        (1, 2, 2),
        "{added:?}"
    );
    assert_eq!(sources(&library, "zebras").await, ["stays.txt"]);
}

#[tokio::test]
async fn odd_names_are_listed_as_they_are() {
    let desk = DocumentHarness::new();
    desk.write("a\nb/c.txt", "größer");
    let root = desk.folder.path().join("docs/a\nb").canonicalize().unwrap();
    let library = desk.index();
    ingest(&library, &root).await.unwrap();
    let listed = library
        .store()
        .collections(&Principal::local())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(listed.roots, [root.to_str().unwrap()]);
    assert_eq!(listed.bytes, "größer".len() as u64);
    let sources = library
        .store()
        .sources(&Principal::local(), "default")
        .await
        .unwrap();
    assert_eq!(sources[0].root, root.to_str().unwrap());
}

/// A provider that counts the passages it is asked for, refuses what it does not like, and is busy after so many requests.
struct FlakyEmbedder {
    requests: AtomicUsize,
    asked: Arc<AtomicUsize>,
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
            self.asked.fetch_add(texts.len(), Ordering::Relaxed);
        }
        HashedEmbedder::default().embed(texts, purpose)
    }
}

impl DocumentHarness {
    fn flaky_index(&self, asked: &Arc<AtomicUsize>, patience: usize) -> DocumentIndex {
        let (requests, asked) = (AtomicUsize::new(0), Arc::clone(asked));
        self.index_with(Some(Arc::new(FlakyEmbedder {
            requests,
            asked,
            max_requests: patience,
        })))
    }
}

/// What is derived can be deleted; what was paid for is in the store, and is not asked for again.
#[tokio::test]
async fn vectors_of_a_provider_are_asked_for_once() {
    let desk = DocumentHarness::new();
    for number in 0..100 {
        desk.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{}.\n", number / 2),
        );
    }
    let asked = Arc::<AtomicUsize>::default();
    let library = || desk.flaky_index(&asked, usize::MAX);
    desk.ingest(&library()).await;
    let first = asked.load(Ordering::Relaxed);
    assert!(first >= 50);
    fs::remove_dir_all(desk.folder.path().join("words")).unwrap();
    library().sync().await.unwrap();
    let found = library()
        .search("subject7", &everywhere(), 3)
        .await
        .unwrap();
    assert!(found[0].breakdown.vector.is_some());
    desk.write("again.txt", "A sentence about subject7.\n");
    let name_is_part_of_it = 1;
    desk.ingest(&library()).await;
    assert_eq!(asked.load(Ordering::Relaxed), first + name_is_part_of_it);
}

#[tokio::test]
async fn a_passage_that_is_refused_holds_nobody_up() {
    let (desk, asked) = (DocumentHarness::new(), Arc::default());
    for number in 0..40 {
        desk.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{number}.\n"),
        );
    }
    desk.write("bad.txt", "A sentence about poison.\n");
    let library = desk.flaky_index(&asked, usize::MAX);
    desk.ingest(&library).await;
    let best = |question: &'static str| {
        let library = library.clone();
        async move {
            library
                .search(question, &everywhere(), 1)
                .await
                .unwrap()
                .remove(0)
        }
    };
    assert!(best("subject7").await.breakdown.vector.is_some());
    let (found, trouble) = library
        .search_with_fallback("poison", &everywhere(), 1)
        .await
        .unwrap();
    assert!(found[0].source.ends_with("bad.txt") && found[0].breakdown.vector.is_none());
    assert_eq!(
        trouble,
        Some(EmbedError::Refused("not that".to_owned())),
        "the question holds it, too"
    );
}

#[tokio::test]
async fn what_was_paid_for_before_a_failure_is_kept() {
    let (desk, asked) = (DocumentHarness::new(), Arc::<AtomicUsize>::default());
    for number in 0..400 {
        desk.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{number}.\n"),
        );
    }
    for run in 1.. {
        assert!(run < 6, "it never ends");
        let library = desk.flaky_index(&asked, 2);
        let root = desk.folder.path().join("docs");
        if ingest(&library, &root).await.is_ok() {
            break;
        }
    }
    assert_eq!(
        asked.load(Ordering::Relaxed),
        400,
        "each was asked for once"
    );
}

#[tokio::test]
async fn words_answer_when_vectors_cannot_be_had() {
    let (desk, asked) = (DocumentHarness::new(), Arc::default());
    for number in 0..10 {
        desk.write(
            &format!("{number}.txt"),
            format!("A sentence about subject{number}.\n"),
        );
    }
    let (library, root) = (desk.flaky_index(&asked, 0), desk.folder.path().join("docs"));
    assert!(ingest(&library, &root).await.is_err());
    assert!(
        library.search("subject7", &everywhere(), 1).await.is_err(),
        "whoever measures is told"
    );
    let (found, trouble) = library
        .search_with_fallback("subject7", &everywhere(), 1)
        .await
        .unwrap();
    assert!(found[0].source.ends_with("/7.txt") && trouble.is_some());
}

#[tokio::test]
async fn an_index_of_words_that_is_found_damaged_is_made_anew() {
    let desk = DocumentHarness::new();
    desk.write(
        "a.txt",
        "A sentence about lighthouses and the keepers of lighthouses.\n",
    );
    desk.ingest(&desk.index()).await;
    let parts = fs::read_dir(desk.folder.path().join("words/v2"))
        .unwrap()
        .map(|part| part.unwrap().path());
    let positions: Vec<_> = parts
        .filter(|part| part.extension().is_some_and(|kind| kind == "pos"))
        .collect();
    assert!(!positions.is_empty());
    positions
        .iter()
        .for_each(|part| fs::remove_file(part).unwrap());
    assert_eq!(
        sources(&desk.index(), "keepers of lighthouses").await,
        ["a.txt"]
    );
}

/// Two processes follow the same store with the same files, while one of them is deleted under them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_libraries_follow_one_store() {
    let desk = DocumentHarness::new();
    let (one, other) = (desk.index(), desk.index());
    for round in 0..6 {
        desk.write(
            &format!("{round}.txt"),
            format!("A sentence about thing{round}.\n"),
        );
        let (added, caught_up) = tokio::join!(desk.ingest(&one), other.sync());
        assert_eq!((added.new, caught_up.is_ok()), (1, true));
        if round == 3 {
            let files = fs::read_dir(desk.folder.path().join("words"))
                .unwrap()
                .map(|file| file.unwrap().path());
            files
                .filter(|path| path.extension().is_some_and(|ending| ending == "vectors"))
                .for_each(|path| fs::remove_file(path).unwrap());
        }
    }
    other.sync().await.unwrap();
    for library in [&one, &other] {
        for round in 0..6 {
            let found = library
                .search(&format!("thing{round}"), &everywhere(), 1)
                .await
                .unwrap();
            assert!(
                found[0].source.ends_with(&format!("{round}.txt"))
                    && found[0].breakdown.vector.is_some()
            );
        }
    }
}

/// B74: nobody's passages are found by somebody else, whatever they call themselves and their collections.
#[tokio::test]
async fn names_that_look_like_keys_open_nothing() {
    let desk = DocumentHarness::new();
    let library = desk.index();
    let document = NewDocument {
        collection: "c\u{1f}d".to_owned(),
        source: "secret".to_owned(),
        root: String::new(),
        title: String::new(),
        hash: String::new(),
        session: None,
        chunks: chunk_text("All about penguins."),
    };
    library
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
                library
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
async fn names_that_are_no_text_stay_apart() {
    use std::os::unix::ffi::OsStrExt;
    let desk = DocumentHarness::new();
    for byte in [0xfe, 0xff] {
        let name = [b"a", &[byte][..], b".txt"].concat();
        let file = desk
            .folder
            .path()
            .join("docs")
            .join(std::ffi::OsStr::from_bytes(&name));
        fs::write(file, format!("zebra number {byte}")).unwrap();
    }
    // One that looks like the other as it is shown.
    desk.write(r"a\xfe.txt", "zebra number none");
    let library = desk.index();
    assert_eq!(
        (
            desk.ingest(&library).await.new,
            desk.ingest(&library).await.unchanged
        ),
        (3, 3)
    );
    assert_eq!(sources(&library, "zebra 254").await[0], r"a\xfe.txt");
    for name in [
        &b"a\xfe.txt"[..],
        br"a\xfe.txt",
        br"\x\x5c\xg",
        "ü\n".as_bytes(),
        b"\xff\xfe/x",
    ] {
        let path = Path::new(std::ffi::OsStr::from_bytes(name));
        let shown = lango_knowledge::document_index::path_to_text(path);
        assert_eq!(
            lango_knowledge::document_index::path_from_text(&shown),
            path,
            "{shown}"
        );
    }
}

/// A batch of changes may hold nothing but removals.
#[tokio::test]
async fn vectors_follow_when_very_much_goes() {
    let desk = DocumentHarness::new();
    for number in 0..1_100 {
        desk.write(&format!("big/{number}.md"), format!("quagga {number}"));
    }
    desk.write("kept.md", "the okapi");
    let library = desk.index();
    desk.ingest(&library).await;
    fs::remove_dir_all(desk.folder.path().join("docs/big")).unwrap();
    assert_eq!(desk.ingest(&library).await.removed, 1_100);
    desk.write("new.md", "the zebra duiker is small");
    desk.ingest(&library).await;
    let again = desk.index();
    let found = again
        .search("zebra duiker", &everywhere(), 1)
        .await
        .unwrap();
    assert!(found[0].breakdown.vector.is_some(), "{found:?}");
}

#[tokio::test]
async fn copies_hide_nothing_else() {
    let desk = DocumentHarness::new();
    for number in 0..150 {
        desk.write(
            &format!("vendor/{number}.md"),
            "wombat backups and wombat backups once more",
        );
    }
    desk.write(
        "ops.md",
        "Somewhere else: backups of the wombat are made at night, by whoever is on duty.",
    );
    let library = desk.index();
    desk.ingest(&library).await;
    let found = library
        .search("wombat backups", &everywhere(), 10)
        .await
        .unwrap();
    assert_eq!((found.len(), found[0].duplicates), (2, 149));
}

#[tokio::test]
async fn what_was_named_by_itself_stays_when_its_folder_is_added() {
    let desk = DocumentHarness::new();
    desk.write(".gitignore", "*.log");
    desk.write("x.log", "the numbat");
    desk.write("y.md", "the bilby");
    let library = desk.index();
    let log = desk.folder.path().join("docs/x.log");
    ingest(&library, &log).await.unwrap();
    assert_eq!(desk.ingest(&library).await.removed, 0);
    assert_eq!(sources(&library, "numbat").await, ["x.log"]);
    fs::remove_file(log).unwrap();
    assert_eq!(desk.ingest(&library).await.removed, 1);
}

/// S81
#[tokio::test]
async fn the_tool_gives_as_much_as_a_model_reads_whole() {
    let desk = DocumentHarness::new();
    for number in 0..30 {
        let words: String = (0..400)
            .map(|word| format!("산들바람{}의 ", number * 1000 + word))
            .collect();
        desk.write(&format!("{number}.txt"), words);
    }
    let library = desk.index();
    desk.ingest(&library).await;
    let opened = library.clone();
    let tool = lango_knowledge::tools(
        &Lazy::new(move || Ok(Arc::new(opened.clone()))),
        lango_knowledge::GraphExpansion::Off,
        None,
    )
    .remove(0);
    let called = async |args: Value| tool.call(context(), args).await.map(|output| output.text);
    let all = called(json!({ "query": "산들바람 이야기", "limit": 20, "collections": [] }))
        .await
        .unwrap();
    assert!(all.len() < 40_000);
    let all: Value = serde_json::from_str(&all).unwrap();
    let shown = all["items"].as_array().unwrap().len() as u64;
    assert!(
        shown > 4 && shown + all["left_out"].as_u64().unwrap() == 20,
        "{shown}"
    );
    let unknown = called(json!({ "query": "산들바람", "collections": ["defualt"] }))
        .await
        .unwrap_err();
    assert_eq!(
        unknown.0,
        "there is no collection `defualt`; there are: default"
    );
    for args in [
        json!({ "query": " " }),
        json!({ "query": "x", "limit": 0 }),
        json!({ "query": "x", "limit": 21 }),
    ] {
        assert!(called(args).await.unwrap_err().0.contains("from 1 to 20"));
    }
}
