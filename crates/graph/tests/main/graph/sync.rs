//! The in-memory graph follows the store: other processes, other principals, forgotten facts.

use lango_domain::event::{Principal, SessionId};
use lango_domain::graph::{FactSource, FactSourceFilter};
use lango_domain::maintenance::StoreMaintenance as _;
use lango_domain::session::{SessionKeyRef, SessionStore};
use lango_domain::session_catalog::SessionCatalog as _;
use lango_graph::{AsOf, FactError, FactPattern, GraphError, NewFact};

use super::{GraphHarness, fact_lines, facts, graph, me, now, open};

fn is_in_files(folder: &std::path::Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file());
    files
        .map(|file| std::fs::read(file).unwrap())
        .any(|bytes| bytes.windows(text.len()).any(|w| w == text.as_bytes()))
}

#[tokio::test]
async fn sees_writes_of_other_connections_at_once() {
    let harness = GraphHarness::new();
    let other = graph(&open(&harness.folder));
    for number in 0_usize..40 {
        let fact = NewFact::new(format!("name {number}"), "is", "thing");
        let writer = if number.is_multiple_of(2) {
            &harness.graph
        } else {
            &other
        };
        writer
            .assert(&me(), FactSource::User, &[fact])
            .await
            .unwrap();
        for reader in [&harness.graph, &other] {
            let snapshot = reader.snapshot(&me()).await.unwrap();
            assert_eq!(snapshot.facts().len(), number + 1);
            assert!(snapshot.find(&format!("NAME {number}")).is_ok());
        }
    }
}

#[tokio::test]
async fn snapshots_do_not_change() {
    let harness = GraphHarness::new();
    harness.add_facts("a1 | is | b1").await;
    let before = harness.snapshot().await;
    harness.add_facts("c1 | is | b1").await;
    assert_eq!(
        (before.facts().len(), harness.snapshot().await.facts().len()),
        (1, 2)
    );
}

/// B74
#[tokio::test]
async fn principals_do_not_see_each_others_facts() {
    let harness = GraphHarness::new();
    harness.add_facts("secret plan | is | good").await;
    let bob = Principal::new("bob");
    harness
        .graph
        .assert(&bob, FactSource::User, &facts("tea | is | green"))
        .await
        .unwrap();
    let (mine, his) = (
        harness.snapshot().await,
        harness.graph.snapshot(&bob).await.unwrap(),
    );
    assert!(mine.find("tea").is_err() && his.find("secret plan").is_err());
    assert!(
        his.find("secret plam").unwrap_err().near.is_empty(),
        "not even as a suggestion"
    );
    assert!(his.find_entities("the secret plan").is_empty());
    assert!(
        !harness
            .graph
            .forget_source(
                &Principal::new("eve"),
                FactSourceFilter::One(FactSource::User)
            )
            .await
            .unwrap()
    );
    assert_eq!(
        (harness.snapshot().await.facts().len(), his.facts().len()),
        (1, 1)
    );
}

#[tokio::test]
async fn forgotten_facts_are_in_no_file_and_no_query() {
    let harness = GraphHarness::new();
    let session = |event: &str| FactSource::Session {
        session: SessionId::new("s#1"),
        event: event.to_owned(),
    };
    let document = |location: &str| FactSource::Document {
        source: "/docs/a.md".to_owned(),
        span: location.to_owned(),
    };
    harness.add_facts("Berlin | capital of | Germany").await;
    harness
        .add_facts_from(session("3"), "xylophone club | meets in | Berlin")
        .await;
    harness
        .add_facts_from(session("4"), "xylophone club | led by | Quentin")
        .await;
    harness
        .add_facts_from(document("lines 1-4"), "zanzibar | in | Africa")
        .await;
    harness
        .add_facts_from(document("lines 5-9"), "zanzibar | is | island")
        .await;
    assert_eq!(harness.snapshot().await.facts().len(), 5);
    let other = FactSource::Session {
        session: SessionId::new("s"),
        event: "1".to_owned(),
    };
    harness.add_facts_from(other, "apple | is | fruit").await;
    let forget = async |filter: FactSourceFilter| {
        let forgotten = harness.graph.forget_source(&me(), filter).await;
        forgotten.unwrap()
    };
    let whole_session = || FactSourceFilter::Session(SessionId::new("s#1"));
    assert!(forget(whole_session()).await);
    assert!(!forget(whole_session()).await);
    assert!(harness.snapshot().await.find("Quentin").is_err());
    assert!(forget(FactSourceFilter::One(document("lines 1-4"))).await);
    let snapshot = harness.snapshot().await;
    assert!(snapshot.find("Africa").is_err() && snapshot.find("zanzibar").is_ok());
    assert!(forget(FactSourceFilter::Document("/docs/a.md".to_owned())).await);
    assert_eq!(harness.snapshot().await.facts().len(), 2);
    for text in ["xylophone", "zanzibar"] {
        assert!(!is_in_files(harness.folder.path(), text), "{text}");
    }
    assert!(is_in_files(harness.folder.path(), "Germany"));
}

/// Deleting a session deletes its facts.
#[tokio::test]
async fn deleting_a_session_deletes_its_facts() {
    let harness = GraphHarness::new();
    let session = SessionId::new("work");
    let draft = lango_domain::event::NewEvent {
        turn: lango_domain::event::TurnId::new("t"),
        author: lango_domain::event::Author::User,
        branch: lango_domain::event::Branch::new("root"),
        at: super::NOW.parse().unwrap(),
        label: Default::default(),
        body: lango_domain::event::EventBody::User("hello".into()),
    };
    let key = SessionKeyRef {
        session: &session,
        principal: &me(),
    };
    harness.store.append(key, vec![draft]).await.unwrap();
    harness
        .add_facts_from(
            FactSource::Session {
                session: session.clone(),
                event: "1".to_owned(),
            },
            "okapi | is | shy",
        )
        .await;
    harness.add_facts("tea | is | green").await;
    assert_eq!(harness.snapshot().await.facts().len(), 2);
    harness.store.delete(&me(), &session).await.unwrap();
    assert_eq!(
        fact_lines(&harness.snapshot().await, &[0]),
        ["tea is green"]
    );
    assert!(!is_in_files(harness.folder.path(), "okapi"));
}

#[tokio::test]
async fn restoring_a_backup_reloads_the_graph() {
    let harness = GraphHarness::new();
    harness.add_facts("a1 | is | b1").await;
    let backup = harness.folder.path().join("backup");
    harness.store.back_up(&backup).await.unwrap();
    harness.add_facts("c1 | is | d1").await;
    assert_eq!(harness.snapshot().await.facts().len(), 2);
    let location = harness.store.location().clone();
    lango_store::SqliteStore::restore(location, &backup, &harness.folder.path().join("before"))
        .await
        .unwrap();
    let snapshot = harness.snapshot().await;
    assert_eq!(snapshot.facts().len(), 1);
    assert!(snapshot.find("c1").is_err());
}

#[tokio::test]
async fn rejects_batches_with_an_invalid_fact() {
    let harness = GraphHarness::new();
    let long = "x".repeat(5_000);
    for (fact, expected) in [
        (NewFact::new("", "is", "b"), FactError::Empty("subject")),
        (NewFact::new("a", " \t", "b"), FactError::Empty("predicate")),
        (
            NewFact::new("a", "is", long.clone()),
            FactError::TooLong {
                part: "object",
                bytes: 5_000,
            },
        ),
    ] {
        let batch = [NewFact::new("fine", "is", "fine"), fact];
        let error = harness
            .graph
            .assert(&me(), FactSource::User, &batch)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, GraphError::Fact(found) if *found == expected),
            "{error}"
        );
    }
    assert!(harness.snapshot().await.facts().is_empty());
    harness.add_facts("a\u{202e}b | is\u{7} | 🎉 party\0").await;
    let snapshot = harness.snapshot().await;
    assert_eq!(
        fact_lines(
            &snapshot,
            &snapshot
                .query(FactPattern::default(), AsOf::AnyTime, 9)
                .facts
        ),
        ["ab is 🎉 party"]
    );
}

#[tokio::test]
async fn sorts_many_facts_and_appends_few() {
    let harness = GraphHarness::new();
    let fact = |number: usize| {
        NewFact::new(
            format!("n{}", number % 700),
            "next",
            format!("n{}", number * 31 % 700),
        )
    };
    let all: Vec<NewFact> = (0..5_000).map(fact).collect();
    harness
        .graph
        .assert(&me(), FactSource::User, &all)
        .await
        .unwrap();
    let snapshot = harness.snapshot().await;
    let name = snapshot.find("n7").unwrap();
    let before = snapshot
        .facts_about(name, None, now(), usize::MAX)
        .facts
        .len();
    harness.add_facts("n7 | new | n8\n n9 | new | n7").await;
    let snapshot = harness.snapshot().await;
    assert_eq!(
        snapshot
            .facts_about(name, None, now(), usize::MAX)
            .facts
            .len(),
        before + 2
    );
    assert_eq!(
        fact_lines(
            &snapshot,
            &snapshot
                .query(
                    FactPattern {
                        predicate: snapshot.find_predicate("new").ok(),
                        ..FactPattern::default()
                    },
                    now(),
                    9
                )
                .facts
        ),
        ["n7 new n8", "n9 new n7"]
    );
}
