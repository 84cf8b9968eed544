//! The conformance suite for documents.

use std::sync::Arc;

use lango_domain::documents::{
    ChunkChange, ChunkOwner, CollectionInfo, DocumentFilter, DocumentSource, DocumentSpan,
    DocumentStore, NewChunk, NewDocument, SpanUnit, StoredChunk,
};
use lango_domain::event::{Principal, SessionId};

use super::ok;

/// Runs the whole suite on an empty store.
///
/// # Panics
/// If the store violates the contract of [`DocumentStore`].
pub async fn check(store: Arc<dyn DocumentStore>) {
    collections_are_summed_up(&*store).await;
    sources_have_their_hash(&*store).await;
    chunks_round_trip(&*store).await;
    documents_replace_those_of_their_source(&*store).await;
    removed_documents_are_gone(&*store).await;
    documents_belong_to_their_principal(&*store).await;
    changes_are_paged(&*store).await;
    vectors_are_shared_by_equal_texts(&*store).await;
}

/// Returns a document with one chunk per text. The hash of a chunk is its text.
fn document(collection: &str, source: &str, texts: &[&str]) -> NewDocument {
    let chunk = |(line, text): (u32, &&str)| NewChunk {
        text: (*text).to_owned(),
        hash: (*text).to_owned(),
        heading: "Intro › Tea".to_owned(),
        span: DocumentSpan {
            unit: SpanUnit::Lines,
            first: line,
            last: line + 1,
        },
    };
    NewDocument {
        collection: collection.to_owned(),
        source: source.to_owned(),
        root: "/notes".to_owned(),
        title: format!("title of {source}"),
        hash: format!("hash of {texts:?}"),
        session: None,
        chunks: (1..).zip(texts).map(chunk).collect(),
    }
}

async fn put(store: &dyn DocumentStore, principal: &str, document: NewDocument) {
    ok(store.put(&Principal::new(principal), vec![document]).await);
}

/// Returns the changes since a number, which must not be cut off.
async fn changes_since(store: &dyn DocumentStore, number: u64) -> Vec<ChunkChange> {
    ok(store.changes(number, 10_000).await)
}

async fn last_change(store: &dyn DocumentStore) -> u64 {
    let changes = changes_since(store, 0).await;
    changes.last().map_or(0, |change| change.number)
}

/// Stores a document and returns its chunks in order.
async fn put_and_read(
    store: &dyn DocumentStore,
    principal: &str,
    document: NewDocument,
) -> Vec<StoredChunk> {
    let before = last_change(store).await;
    put(store, principal, document).await;
    let changes = changes_since(store, before).await;
    let added = changes.iter().filter(|change| change.is_present);
    let mut chunks = ok(store
        .chunks(added.map(|change| change.chunk).collect())
        .await);
    chunks.sort_by_key(|chunk| chunk.number);
    chunks
}

async fn sources(store: &dyn DocumentStore, principal: &str, collection: &str) -> Vec<String> {
    let found = store.sources(&Principal::new(principal), collection).await;
    let mut names: Vec<String> = ok(found).into_iter().map(|found| found.source).collect();
    names.sort_unstable();
    names
}

async fn collections_are_summed_up(store: &dyn DocumentStore) {
    let owner = Principal::new("collections");
    assert_eq!(ok(store.collections(&owner).await), []);
    let elsewhere = NewDocument {
        root: "/books".to_owned(),
        ..document("b", "/books/1", &["안녕"])
    };
    let documents = vec![
        document("b", "/notes/1", &["one", "two"]),
        document("a", "/notes/1", &["one"]),
        elsewhere,
    ];
    ok(store.put(&owner, documents).await);
    let info = |name: &str, documents, pieces, bytes| CollectionInfo {
        name: name.to_owned(),
        documents,
        pieces,
        bytes,
        roots: vec!["/notes".to_owned()],
    };
    let mut found = ok(store.collections(&owner).await);
    found.iter_mut().for_each(|info| info.roots.sort_unstable());
    let both = CollectionInfo {
        roots: vec!["/books".to_owned(), "/notes".to_owned()],
        ..info("b", 2, 3, 12)
    };
    assert_eq!(found, [info("a", 1, 1, 3), both]);
}

async fn sources_have_their_hash(store: &dyn DocumentStore) {
    let owner = Principal::new("sources");
    let stored = document("c", "/notes/1", &["x"]);
    put(store, "sources", stored.clone()).await;
    let expected = DocumentSource {
        source: stored.source,
        root: stored.root,
        hash: stored.hash,
    };
    assert_eq!(ok(store.sources(&owner, "c").await), [expected]);
    assert_eq!(ok(store.sources(&owner, "missing").await), []);
}

async fn chunks_round_trip(store: &dyn DocumentStore) {
    let mut new = document("c", "https://example.org/#top", &["a\0\n", "안녕 🙂"]);
    new.session = Some(SessionId::new("s"));
    new.chunks[1].span.unit = SpanUnit::Pages;
    let chunks = put_and_read(store, "chunks", new.clone()).await;
    assert_eq!(chunks.len(), 2);
    for (number, (stored, new_chunk)) in (0..).zip(chunks.iter().zip(&new.chunks)) {
        let expected = StoredChunk {
            id: stored.id,
            document: chunks[0].document,
            owner: ChunkOwner {
                principal: Principal::new("chunks"),
                collection: "c".to_owned(),
                session: new.session.clone(),
            },
            number,
            source: new.source.clone(),
            title: new.title.clone(),
            heading: new_chunk.heading.clone(),
            span: new_chunk.span,
            text: new_chunk.text.clone(),
        };
        assert_eq!(*stored, expected);
    }
    let ids = vec![chunks[1].id, u64::MAX >> 1];
    assert_eq!(ok(store.chunks(ids).await), chunks[1..], "those that exist");
}

async fn documents_replace_those_of_their_source(store: &dyn DocumentStore) {
    let old = put_and_read(store, "replace", document("c", "1", &["a", "b"])).await;
    put(store, "replace", document("other", "1", &["a"])).await;
    let before = last_change(store).await;
    let new = put_and_read(store, "replace", document("c", "1", &["b", "c"])).await;
    let texts: Vec<&str> = new.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!(texts, ["b", "c"]);
    let old_ids: Vec<u64> = old.iter().map(|chunk| chunk.id).collect();
    assert_eq!(ok(store.chunks(old_ids.clone()).await), []);
    let changes = changes_since(store, before).await;
    let mut removed: Vec<u64> = changes
        .iter()
        .filter(|change| !change.is_present)
        .map(|change| change.chunk)
        .collect();
    removed.sort_unstable();
    assert_eq!(removed, old_ids);
    assert!(
        new.iter().all(|chunk| !old_ids.contains(&chunk.id)),
        "a new chunk has a new id"
    );
    assert_eq!(sources(store, "replace", "c").await, ["1"]);
    assert_eq!(sources(store, "replace", "other").await, ["1"]);
}

async fn removed_documents_are_gone(store: &dyn DocumentStore) {
    let owner = Principal::new("remove");
    for (collection, source) in [("c", "1"), ("c", "2"), ("c", "3"), ("d", "1")] {
        put(store, "remove", document(collection, source, &["x"])).await;
    }
    let some = DocumentFilter::Sources(vec!["1".to_owned(), "missing".to_owned()]);
    assert_eq!(ok(store.remove(&owner, "c", some.clone()).await), 1);
    assert_eq!(ok(store.remove(&owner, "c", some).await), 0);
    assert_eq!(sources(store, "remove", "c").await, ["2", "3"]);
    assert_eq!(ok(store.remove(&owner, "c", DocumentFilter::All).await), 2);
    let left = ok(store.collections(&owner).await);
    assert_eq!((left.len(), left[0].name.as_str()), (1, "d"));
}

/// B74
async fn documents_belong_to_their_principal(store: &dyn DocumentStore) {
    let bob = Principal::new("bob");
    let hers = put_and_read(store, "alice", document("c", "1", &["hers"])).await;
    assert_eq!(hers[0].owner.principal, Principal::new("alice"));
    assert_eq!(ok(store.collections(&bob).await), []);
    assert_eq!(ok(store.sources(&bob, "c").await), []);
    put(store, "bob", document("c", "1", &["his"])).await;
    assert_eq!(ok(store.remove(&bob, "c", DocumentFilter::All).await), 1);
    assert_eq!(ok(store.chunks(vec![hers[0].id]).await), hers);
}

async fn changes_are_paged(store: &dyn DocumentStore) {
    let before = last_change(store).await;
    put(store, "changes", document("c", "1", &["a", "b", "c"])).await;
    let owner = Principal::new("changes");
    ok(store.remove(&owner, "c", DocumentFilter::All).await);
    put(store, "changes", document("c", "2", &["d"])).await;
    let all = changes_since(store, before).await;
    assert!(all.is_sorted_by(|a, b| a.number < b.number));
    assert!(all.iter().all(|change| change.number > before));
    let (mut after, mut paged) = (before, Vec::new());
    loop {
        let page = ok(store.changes(after, 2).await);
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = last.number;
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let mut present = std::collections::BTreeMap::new();
    for change in all {
        present.insert(change.chunk, change.is_present);
    }
    let present = present.into_values().filter(|is_present| *is_present);
    assert_eq!(present.count(), 1, "the last change of a chunk counts");
}

async fn vectors_are_shared_by_equal_texts(store: &dyn DocumentStore) {
    let first = put_and_read(store, "vectors", document("c", "1", &["v-same", "v-1"])).await;
    let second = put_and_read(store, "vectors", document("c", "2", &["v-same", "v-2"])).await;
    let all = first.iter().chain(&second).map(|chunk| chunk.id);
    let all: Vec<u64> = all.collect();
    let vector = |hash: &str, byte: u8| (hash.to_owned(), vec![byte, 0, 255]);
    let stored = vec![vector("v-same", 1), vector("v-1", 2), vector("v-gone", 3)];
    ok(store.put_vectors("e", stored).await);
    let read = async |embedder: &str| {
        let mut vectors = ok(store.vectors(embedder, all.clone()).await);
        vectors.sort_unstable();
        vectors
    };
    let found = |id: u64, byte: u8| (id, vec![byte, 0, 255]);
    let same = [found(all[0], 1), found(all[1], 2), found(all[2], 1)];
    assert_eq!(read("e").await, same);
    assert_eq!(read("another").await, []);
    ok(store.delete_unused_vectors().await);
    assert_eq!(read("e").await, same, "used vectors stay");
    let revived = put_and_read(store, "vectors", document("c", "3", &["v-gone"])).await;
    let vectors = ok(store.vectors("e", vec![revived[0].id]).await);
    assert_eq!(vectors, [], "the unused vector was deleted");
    ok(store.put_vectors("e", vec![vector("v-1", 9)]).await);
    assert_eq!(read("e").await[1], found(all[1], 9), "a vector is replaced");
}
