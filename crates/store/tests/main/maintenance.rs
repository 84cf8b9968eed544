use std::fs;

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::StoreError;
use lango_domain::event::{EventBody, Principal};
use lango_domain::graph::{FactLogPosition, FactSource, NewFactBatch};
use lango_domain::maintenance::StoreMaintenance as _;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_domain::session_catalog::SessionCatalog as _;
use lango_store::SqliteStore;
use lango_testkit::conformance::{new_event, user_request};

use crate::setup::{append_turn, id, open};

fn me() -> Principal {
    Principal::local()
}

async fn count_events(store: &SqliteStore, session: &str) -> usize {
    let key = SessionKeyRef {
        session: &id(session),
        principal: &me(),
    };
    store
        .load(key, HistoryWindow::Everything)
        .await
        .unwrap()
        .len()
}

/// Returns every file below a folder that contains the text.
fn files_containing(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if entry.is_dir() {
            found.extend(files_containing(&entry, text));
        } else if fs::read(&entry)
            .unwrap()
            .windows(text.len())
            .any(|window| window == text.as_bytes())
        {
            found.push(entry);
        }
    }
    found
}

#[tokio::test]
async fn sessions_have_titles_and_states() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "a", "t1", "first request\nwith a second line").await;
    append_turn(&store, "a", "t2", "second request").await;
    let key = SessionKeyRef {
        session: &id("b"),
        principal: &me(),
    };
    store
        .append(key, vec![new_event("t", user_request("cut off"))])
        .await
        .unwrap();
    let listed = store.sessions(&me()).await.unwrap();
    let a = listed.iter().find(|session| session.id == id("a")).unwrap();
    assert_eq!(
        (a.title.as_str(), a.events, a.is_settled),
        ("first request with a second line", 6, true)
    );
    assert!(
        !listed
            .iter()
            .find(|session| session.id == id("b"))
            .unwrap()
            .is_settled
    );
    assert!(
        store
            .sessions(&Principal::new("bob"))
            .await
            .unwrap()
            .is_empty(),
        "B74"
    );
}

#[tokio::test]
async fn searches_any_script_in_own_sessions_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "a", "t", "Grüner TEE um vier").await;
    append_turn(&store, "b", "t", "녹차를 마시고 싶어요").await;
    let found = async |text: &str| {
        let hits = store.search(&me(), text, 10).await.unwrap();
        hits.into_iter()
            .map(|hit| hit.session.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(found("tee grüner").await, ["a"]);
    assert_eq!(found("녹차").await, ["b"]);
    assert!(found("coffee").await.is_empty());
    assert!(
        store
            .search(&Principal::new("bob"), "tee", 10)
            .await
            .unwrap()
            .is_empty(),
        "B74"
    );
}

#[tokio::test]
async fn deleted_session_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (open(folder.path()), open(folder.path()));
    append_turn(&store, "kept", "t", "harmless").await;
    for turn in 0..200 {
        append_turn(
            &store,
            "secret",
            &format!("t{turn}"),
            &format!("the passphrase is xyzzy-{turn}"),
        )
        .await;
    }
    assert_eq!(
        count_events(&other, "secret").await,
        600,
        "another store has the file open"
    );
    assert!(!files_containing(folder.path(), "xyzzy").is_empty());
    store.delete(&me(), &id("secret")).await.unwrap();
    assert_eq!(
        files_containing(folder.path(), "xyzzy"),
        Vec::<std::path::PathBuf>::new()
    );
    assert_eq!(
        (
            count_events(&other, "secret").await,
            count_events(&other, "kept").await
        ),
        (0, 3)
    );
    assert!(matches!(
        store.delete(&me(), &id("secret")).await,
        Err(StoreError::SessionNotFound(_))
    ));
}

#[tokio::test]
async fn usage_survives_deleting_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let usage = lango_domain::event::Usage {
        model: "m".into(),
        input: 7,
        ..Default::default()
    };
    let key = SessionKeyRef {
        session: &id("s"),
        principal: &me(),
    };
    store
        .append(
            key,
            vec![
                new_event("t", user_request("x")),
                new_event("t", EventBody::Usage(usage.clone())),
            ],
        )
        .await
        .unwrap();
    store.delete(&me(), &id("s")).await.unwrap();
    let rows = store.usage(&me(), None).await.unwrap();
    assert_eq!(
        (rows.len(), &rows[0].usage, &rows[0].session),
        (1, &usage, &None)
    );
}

#[tokio::test]
async fn fork_ends_with_a_complete_turn() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "a", "t1", "one").await;
    append_turn(&store, "a", "t2", "two").await;
    assert_eq!(store.fork(&me(), &id("a"), 5, &id("b")).await.unwrap(), 3);
    assert_eq!(
        (
            count_events(&store, "b").await,
            count_events(&store, "a").await
        ),
        (3, 6)
    );
    assert!(matches!(
        store.fork(&me(), &id("a"), 6, &id("b")).await,
        Err(StoreError::SessionExists(_))
    ));
    assert!(
        store.fork(&me(), &id("a"), 1, &id("c")).await.is_err(),
        "no complete turn"
    );
}

#[tokio::test]
async fn restores_a_backup_and_keeps_the_previous_content() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (open(folder.path()), open(folder.path()));
    append_turn(&store, "a", "t", "before the backup").await;
    let backup = folder.path().join("backup.sqlite");
    store.back_up(&backup).await.unwrap();
    assert!(
        store.back_up(&backup).await.is_err(),
        "a backup is not overwritten"
    );
    append_turn(&store, "b", "t", "after the backup").await;
    let previous = folder.path().join("kept.sqlite");
    let running = store
        .lock(SessionKeyRef {
            session: &id("a"),
            principal: &me(),
        })
        .await
        .unwrap();
    assert!(matches!(
        SqliteStore::restore(other.location().clone(), &backup, &previous).await,
        Err(StoreError::TurnsRunning)
    ));
    assert!(
        matches!(
            other.delete(&me(), &id("a")).await,
            Err(StoreError::TurnRunning(_))
        ),
        "not while a turn is running"
    );
    assert!(
        other.prune(&me(), Timestamp::MAX).await.unwrap() == [id("b")],
        "sessions in use stay"
    );
    drop(running);
    append_turn(&store, "b", "t", "after the backup").await;
    SqliteStore::restore(store.location().clone(), &backup, &previous)
        .await
        .unwrap();
    assert_eq!(
        (
            count_events(&other, "a").await,
            count_events(&other, "b").await
        ),
        (3, 0),
        "other stores see it immediately"
    );
    assert!(!files_containing(folder.path(), "after the backup").is_empty() && previous.exists());
}

#[tokio::test]
async fn rejects_invalid_backups() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "a", "t", "x").await;
    for bad in ["", "no", "SQLite format 3\0"] {
        fs::write(folder.path().join("bad.sqlite"), bad).unwrap();
        let refused = SqliteStore::restore(
            store.location().clone(),
            &folder.path().join("bad.sqlite"),
            &folder.path().join("k2.sqlite"),
        )
        .await;
        assert!(
            matches!(refused, Err(StoreError::InvalidBackup { .. })),
            "{bad}"
        );
    }
    assert!(count_events(&store, "a").await == 3 && !folder.path().join("k2.sqlite").exists());
}

#[tokio::test]
async fn old_sessions_are_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "old", "t", "x").await;
    assert!(
        store
            .prune(&me(), Timestamp::UNIX_EPOCH)
            .await
            .unwrap()
            .is_empty()
    );
    let deleted = store
        .prune(&me(), Timestamp::from_second(10).unwrap())
        .await
        .unwrap();
    assert_eq!(deleted, [id("old")]);
    assert!(store.health().await.unwrap().problems.is_empty());
}

/// B101
#[tokio::test]
async fn restored_facts_keep_their_label() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let batch = NewFactBatch {
        source: FactSource::User,
        label: Label::untrusted("page"),
        body: b"facts".to_vec(),
    };
    lango_domain::graph::GraphStore::append(&store, &me(), vec![batch])
        .await
        .unwrap();
    let backup = folder.path().join("backup.sqlite");
    store.back_up(&backup).await.unwrap();
    let kept = folder.path().join("kept.sqlite");
    SqliteStore::restore(store.location().clone(), &backup, &kept)
        .await
        .unwrap();
    let changes =
        lango_domain::graph::GraphStore::changes(&store, &me(), FactLogPosition::default()).await;
    let labels: Vec<Label> = changes
        .unwrap()
        .batches
        .into_iter()
        .map(|batch| batch.label)
        .collect();
    assert_eq!(labels, [Label::untrusted("page")]);
}
