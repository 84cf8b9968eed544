//! Memory follows the store: other processes, other principals, what is forgotten.

use lango_domain::event::{Principal, SessionId};
use lango_domain::graph::{FactSource, FactSourceFilter};
use lango_domain::session::{SessionKeyRef, SessionStore};
use lango_knowledge::graph::{AsOf, FactError, FactPattern, GraphError, NewFact};

use super::{GraphHarness, fact_lines, facts, graph, me, now, open};

fn is_in_files(folder: &std::path::Path, words: &str) -> bool {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file());
    files
        .map(|file| std::fs::read(file).unwrap())
        .any(|bytes| bytes.windows(words.len()).any(|w| w == words.as_bytes()))
}

#[tokio::test]
async fn what_another_connection_writes_is_seen_at_once() {
    let desk = GraphHarness::new();
    let other = graph(&open(&desk.folder));
    for number in 0_usize..40 {
        let fact = NewFact::new(format!("name {number}"), "is", "thing");
        let writer = if number.is_multiple_of(2) {
            &desk.graph
        } else {
            &other
        };
        writer
            .assert(&me(), FactSource::User, &[fact])
            .await
            .unwrap();
        for reader in [&desk.graph, &other] {
            let view = reader.snapshot(&me()).await.unwrap();
            assert_eq!(view.facts().len(), number + 1);
            assert!(view.find(&format!("NAME {number}")).is_ok());
        }
    }
}

#[tokio::test]
async fn a_view_stays_as_it_is_while_others_write() {
    let desk = GraphHarness::new();
    desk.add_facts("a1 | is | b1").await;
    let before = desk.snapshot().await;
    desk.add_facts("c1 | is | b1").await;
    assert_eq!(
        (before.facts().len(), desk.snapshot().await.facts().len()),
        (1, 2)
    );
}

/// B74
#[tokio::test]
async fn nobodys_facts_are_seen_by_another() {
    let desk = GraphHarness::new();
    desk.add_facts("secret plan | is | good").await;
    let bob = Principal::new("bob");
    desk.graph
        .assert(&bob, FactSource::User, &facts("tea | is | green"))
        .await
        .unwrap();
    let (mine, his) = (
        desk.snapshot().await,
        desk.graph.snapshot(&bob).await.unwrap(),
    );
    assert!(mine.find("tea").is_err() && his.find("secret plan").is_err());
    assert!(
        his.find("secret plam").unwrap_err().near.is_empty(),
        "not even as a suggestion"
    );
    assert!(his.find_entities("the secret plan").is_empty());
    assert!(
        !desk
            .graph
            .forget_source(
                &Principal::new("eve"),
                FactSourceFilter::One(FactSource::User)
            )
            .await
            .unwrap()
    );
    assert_eq!(
        (desk.snapshot().await.facts().len(), his.facts().len()),
        (1, 1)
    );
}

#[tokio::test]
async fn what_is_forgotten_is_in_no_file_and_no_answer() {
    let desk = GraphHarness::new();
    let session = |event: &str| FactSource::Session {
        session: SessionId::new("s#1"),
        event: event.to_owned(),
    };
    let document = |place: &str| FactSource::Document {
        source: "/docs/a.md".to_owned(),
        span: place.to_owned(),
    };
    desk.add_facts("Berlin | capital of | Germany").await;
    desk.add_facts_from(session("3"), "xylophone club | meets in | Berlin")
        .await;
    desk.add_facts_from(session("4"), "xylophone club | led by | Quentin")
        .await;
    desk.add_facts_from(document("lines 1-4"), "zanzibar | in | Africa")
        .await;
    desk.add_facts_from(document("lines 5-9"), "zanzibar | is | island")
        .await;
    assert_eq!(desk.snapshot().await.facts().len(), 5);
    let other = FactSource::Session {
        session: SessionId::new("s"),
        event: "1".to_owned(),
    };
    desk.add_facts_from(other, "kept | is | kept").await;
    assert!(
        desk.graph
            .forget_source(&me(), FactSourceFilter::Session(SessionId::new("s#1")))
            .await
            .unwrap()
    );
    assert!(
        !desk
            .graph
            .forget_source(&me(), FactSourceFilter::Session(SessionId::new("s#1")))
            .await
            .unwrap()
    );
    assert!(desk.snapshot().await.find("Quentin").is_err());
    assert!(
        desk.graph
            .forget_source(&me(), FactSourceFilter::One(document("lines 1-4")))
            .await
            .unwrap()
    );
    assert!(
        desk.snapshot().await.find("Africa").is_err()
            && desk.snapshot().await.find("zanzibar").is_ok()
    );
    assert!(
        desk.graph
            .forget_source(&me(), FactSourceFilter::Document("/docs/a.md".to_owned()))
            .await
            .unwrap()
    );
    assert_eq!(desk.snapshot().await.facts().len(), 2);
    for words in ["xylophone", "zanzibar"] {
        assert!(!is_in_files(desk.folder.path(), words), "{words}");
    }
    assert!(is_in_files(desk.folder.path(), "Germany"));
}

/// Deleting a session takes along what it told.
#[tokio::test]
async fn facts_of_a_deleted_session_go_with_it() {
    let desk = GraphHarness::new();
    let session = SessionId::new("work");
    let draft = lango_domain::event::NewEvent {
        turn: lango_domain::event::TurnId::new("t"),
        author: lango_domain::event::Author::User,
        branch: lango_domain::event::Branch::new("root"),
        at: super::NOW.parse().unwrap(),
        label: Default::default(),
        body: lango_domain::event::EventBody::User {
            text: "hello".to_owned(),
        },
    };
    let key = SessionKeyRef {
        session: &session,
        principal: &me(),
    };
    desk.store.append(key, vec![draft]).await.unwrap();
    desk.add_facts_from(
        FactSource::Session {
            session: session.clone(),
            event: "1".to_owned(),
        },
        "okapi | is | shy",
    )
    .await;
    desk.add_facts("tea | is | green").await;
    assert_eq!(desk.snapshot().await.facts().len(), 2);
    desk.store.delete(&me(), &session).await.unwrap();
    assert_eq!(fact_lines(&desk.snapshot().await, &[0]), ["tea is green"]);
    assert!(!is_in_files(desk.folder.path(), "okapi"));
}

#[tokio::test]
async fn a_backup_brings_the_facts_back_also_into_memory() {
    let desk = GraphHarness::new();
    desk.add_facts("a1 | is | b1").await;
    let backup = desk.folder.path().join("backup");
    desk.store.back_up(&backup).await.unwrap();
    desk.add_facts("c1 | is | d1").await;
    assert_eq!(desk.snapshot().await.facts().len(), 2);
    let place = desk.store.location().clone();
    lango_store::SqliteStore::restore(place, &backup, &desk.folder.path().join("kept"))
        .await
        .unwrap();
    let view = desk.snapshot().await;
    assert_eq!(view.facts().len(), 1);
    assert!(view.find("c1").is_err());
}

#[tokio::test]
async fn what_is_no_fact_is_refused_whole() {
    let desk = GraphHarness::new();
    let long = "x".repeat(5_000);
    for (fact, bad) in [
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
        let both = [NewFact::new("fine", "is", "fine"), fact];
        let refused = desk
            .graph
            .assert(&me(), FactSource::User, &both)
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, GraphError::Fact(found) if *found == bad),
            "{refused}"
        );
    }
    assert!(desk.snapshot().await.facts().is_empty());
    desk.add_facts("a\u{202e}b | is\u{7} | 🎉 party\0").await;
    let view = desk.snapshot().await;
    assert_eq!(
        fact_lines(
            &view,
            &view.query(FactPattern::default(), AsOf::AnyTime, 9).facts
        ),
        ["ab is 🎉 party"]
    );
}

#[tokio::test]
async fn many_facts_are_put_in_order_and_few_beside_them() {
    let desk = GraphHarness::new();
    let fact = |number: usize| {
        NewFact::new(
            format!("n{}", number % 700),
            "next",
            format!("n{}", number * 31 % 700),
        )
    };
    let all: Vec<NewFact> = (0..5_000).map(fact).collect();
    desk.graph
        .assert(&me(), FactSource::User, &all)
        .await
        .unwrap();
    let view = desk.snapshot().await;
    let name = view.find("n7").unwrap();
    let before = view.facts_about(name, None, now(), usize::MAX).facts.len();
    desk.add_facts("n7 | new | n8\n n9 | new | n7").await;
    let view = desk.snapshot().await;
    assert_eq!(
        view.facts_about(name, None, now(), usize::MAX).facts.len(),
        before + 2
    );
    assert_eq!(
        fact_lines(
            &view,
            &view
                .query(
                    FactPattern {
                        predicate: view.find_predicate("new").ok(),
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
