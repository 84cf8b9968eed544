//! The conformance suite for the facts of the graph.

use lango_domain::event::{Principal, SessionId};
use lango_domain::graph::{
    FactBatch, FactChanges, FactLogPosition, FactSource, FactSourceFilter, GraphStore, NewFactBatch,
};
use lango_domain::{Label, Stores};

use super::{append_turn, key, ok};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`GraphStore`].
pub async fn check(stores: &Stores) {
    let store = &*stores.graph;
    batches_round_trip(store).await;
    changes_follow_a_position(store).await;
    large_logs_are_read_in_parts(store).await;
    filters_select_sources(store).await;
    facts_belong_to_their_principal(store).await;
    facts_go_with_their_session(stores).await;
    an_equal_version_means_no_write(store).await;
}

fn batch(source: FactSource, body: &str) -> NewFactBatch {
    NewFactBatch {
        source,
        label: Label::default(),
        body: body.as_bytes().to_vec(),
    }
}

fn in_document(source: &str, span: &str) -> FactSource {
    FactSource::Document {
        source: source.to_owned(),
        span: span.to_owned(),
    }
}

fn in_session(session: &str, event: &str) -> FactSource {
    FactSource::Session {
        session: SessionId::new(session),
        event: event.to_owned(),
    }
}

async fn append(store: &dyn GraphStore, principal: &str, batches: Vec<NewFactBatch>) {
    ok(store.append(&Principal::new(principal), batches).await);
}

async fn changes(store: &dyn GraphStore, principal: &str, after: FactLogPosition) -> FactChanges {
    ok(store.changes(&Principal::new(principal), after).await)
}

async fn all(store: &dyn GraphStore, principal: &str) -> Vec<FactBatch> {
    let found = changes(store, principal, FactLogPosition::default()).await;
    found.batches
}

async fn bodies(store: &dyn GraphStore, principal: &str) -> Vec<String> {
    let text = |batch: FactBatch| String::from_utf8_lossy(&batch.body).into_owned();
    all(store, principal).await.into_iter().map(text).collect()
}

async fn batches_round_trip(store: &dyn GraphStore) {
    let nothing = changes(store, "round", FactLogPosition::default()).await;
    assert_eq!(nothing, FactChanges::default());
    let new = vec![
        batch(FactSource::User, "plain"),
        NewFactBatch {
            label: Label::untrusted("a page").joined(&Label::private("a file")),
            body: vec![0, 255, 10],
            ..batch(FactSource::User, "")
        },
        batch(FactSource::Import("C:\\facts 1.tsv".to_owned()), "import"),
        batch(in_document("https://example.org/#top", "lines 1-2"), "page"),
        batch(in_session("a#b:c", "12"), "event"),
        batch(FactSource::Other("위키백과".to_owned()), ""),
    ];
    append(store, "round", new.clone()).await;
    let stored = all(store, "round").await;
    assert!(stored.is_sorted_by(|a, b| a.number < b.number));
    let without_numbers = stored.into_iter().map(|batch| NewFactBatch {
        source: batch.source,
        label: batch.label,
        body: batch.body,
    });
    assert_eq!(without_numbers.collect::<Vec<_>>(), new);
}

async fn changes_follow_a_position(store: &dyn GraphStore) {
    let owner = Principal::new("follow");
    let file = |name: &str| FactSource::Import(name.to_owned());
    append(
        store,
        "follow",
        vec![batch(file("a"), "1"), batch(file("b"), "2")],
    )
    .await;
    let first = changes(store, "follow", FactLogPosition::default()).await;
    assert_eq!((first.batches.len(), first.removed.len()), (2, 0));
    let none = changes(store, "follow", first.position).await;
    assert_eq!((none.batches, none.removed), (vec![], vec![]));
    assert_eq!(none.position, first.position);
    append(store, "follow", vec![batch(file("c"), "3")]).await;
    let filter = FactSourceFilter::One(file("b"));
    assert_eq!(ok(store.forget(&owner, filter).await), 1);
    let next = changes(store, "follow", first.position).await;
    assert_eq!(next.batches.len(), 1);
    assert!(next.batches[0].number > first.batches[1].number);
    assert_eq!(next.removed, [first.batches[1].number]);
    let none = changes(store, "follow", next.position).await;
    assert_eq!((none.batches, none.removed), (vec![], vec![]));
    let filter = FactSourceFilter::One(file("c"));
    assert_eq!(ok(store.forget(&owner, filter).await), 1);
    append(store, "follow", vec![batch(file("d"), "4")]).await;
    let last = changes(store, "follow", next.position).await;
    assert!(
        last.batches[0].number > next.batches[0].number,
        "numbers are not used again"
    );
}

async fn large_logs_are_read_in_parts(store: &dyn GraphStore) {
    let large = "x".repeat(3 << 20);
    let batches = (0..5).map(|_| batch(FactSource::User, &large));
    append(store, "large", batches.collect()).await;
    let (mut position, mut count) = (FactLogPosition::default(), 0);
    loop {
        let part = changes(store, "large", position).await;
        if part.batches.is_empty() {
            break;
        }
        position = part.position;
        assert_eq!(
            part.batches.last().map(|last| last.number),
            Some(position.batch)
        );
        count += part.batches.len();
    }
    assert_eq!(count, 5);
}

async fn filters_select_sources(store: &dyn GraphStore) {
    let owner = Principal::new("filter");
    let stored = [
        (FactSource::User, "user"),
        (in_document("/a", "lines 1-2"), "a 1"),
        (in_document("/a", "lines 3-4"), "a 3"),
        (in_document("/a#b", "lines 1-2"), "a#b"),
        (in_document("/ab", "lines 1-2"), "ab"),
        (in_session("s", "1"), "s 1"),
        (in_session("s", "call"), "s call"),
        (in_session("s#t", "1"), "s#t"),
    ];
    let batches = stored.map(|(source, body)| batch(source, body));
    append(store, "filter", batches.to_vec()).await;
    for (filter, left) in [
        (
            FactSourceFilter::One(in_document("/a", "lines 1-2")),
            &["user", "a 3", "a#b", "ab", "s 1", "s call", "s#t"][..],
        ),
        (
            FactSourceFilter::Document("/a".to_owned()),
            &["user", "a#b", "ab", "s 1", "s call", "s#t"],
        ),
        (
            FactSourceFilter::Session(SessionId::new("s")),
            &["user", "a#b", "ab", "s#t"],
        ),
        (
            FactSourceFilter::One(FactSource::User),
            &["a#b", "ab", "s#t"],
        ),
    ] {
        let before = all(store, "filter").await.len();
        let removed = ok(store.forget(&owner, filter.clone()).await);
        assert_eq!(removed, before - left.len(), "{filter:?}");
        assert_eq!(bodies(store, "filter").await, left, "{filter:?}");
        assert_eq!(ok(store.forget(&owner, filter).await), 0);
    }
}

/// B74
async fn facts_belong_to_their_principal(store: &dyn GraphStore) {
    append(store, "alice", vec![batch(FactSource::User, "hers")]).await;
    let bob = Principal::new("bob");
    let filter = FactSourceFilter::One(FactSource::User);
    assert_eq!(ok(store.forget(&bob, filter.clone()).await), 0);
    append(store, "bob", vec![batch(FactSource::User, "his")]).await;
    assert_eq!(bodies(store, "bob").await, ["his"]);
    assert_eq!(ok(store.forget(&bob, filter).await), 1);
    let hers = changes(store, "alice", FactLogPosition::default()).await;
    assert_eq!((hers.batches.len(), hers.removed.len()), (1, 0));
}

async fn facts_go_with_their_session(stores: &Stores) {
    let store = &*stores.graph;
    let session = key("session", "s");
    append_turn(&*stores.sessions, &session, "t", "hello").await;
    let batches = vec![
        batch(in_session("s", "1"), "from the session"),
        batch(FactSource::User, "typed"),
    ];
    append(store, "session", batches).await;
    append(store, "others", vec![batch(in_session("s", "1"), "hers")]).await;
    ok(stores
        .catalog
        .delete(&session.principal, &session.session)
        .await);
    assert_eq!(bodies(store, "session").await, ["typed"]);
    assert_eq!(bodies(store, "others").await, ["hers"]);
}

async fn an_equal_version_means_no_write(store: &dyn GraphStore) {
    for number in 0..20 {
        let before = store.log_version();
        append(store, "version", vec![batch(FactSource::User, "fact")]).await;
        let after = store.log_version();
        assert!(
            after.is_none() || before != after,
            "write {number} is not in the version"
        );
    }
}
