use std::fs;
use std::os::unix::fs::PermissionsExt;

use lango_domain::StoreError;
use lango_domain::event::Principal;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_store::{SqliteStore, StoreLocation};

use crate::setup::{append_turn, id, open};

#[tokio::test]
async fn restricts_permissions_to_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    append_turn(&store, "s", "t", "tea").await;
    let mode = |name: &str| {
        fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("data"), 0o700);
    for name in ["data/lango.sqlite", "data/lango.sqlite-wal"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}

#[test]
fn refuses_newer_foreign_or_corrupt_files_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sqlite");
    let refused = || {
        SqliteStore::open(StoreLocation::File(file.clone()))
            .err()
            .unwrap()
    };
    drop(SqliteStore::open(StoreLocation::File(file.clone())).unwrap());
    let sqlite = |sql: &str| {
        rusqlite::Connection::open(&file)
            .unwrap()
            .execute_batch(sql)
            .unwrap()
    };
    sqlite("PRAGMA user_version = 99");
    let newer = refused();
    assert!(
        matches!(newer, StoreError::NewerSchema { found: 99, .. }),
        "{newer}"
    );
    assert!(newer.hint().contains("newer version"));
    fs::remove_file(&file).unwrap();
    sqlite("CREATE TABLE foreign_table (x)");
    assert!(matches!(refused(), StoreError::Corrupt { .. }));
    for bytes in [b"not a database at all".repeat(100), vec![0; 4096]] {
        fs::write(&file, &bytes).unwrap();
        assert!(matches!(refused(), StoreError::Corrupt { .. }));
        assert_eq!(fs::read(&file).unwrap(), bytes, "the file is unchanged");
    }
}

#[test]
fn names_an_unwritable_location() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    for location in [
        folder.path().join("file/lango.sqlite"),
        folder.path().to_path_buf(),
    ] {
        let refused = SqliteStore::open(StoreLocation::File(location.clone()))
            .err()
            .unwrap();
        assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
        assert!(
            refused
                .to_string()
                .contains(&location.display().to_string())
        );
    }
}

/// On a full disk, acknowledged events stay, the append that does not fit fails, and it succeeds
/// once there is space.
#[tokio::test]
async fn full_disk_keeps_acknowledged_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lango.sqlite");
    let store = SqliteStore::open(StoreLocation::File(file.clone())).unwrap();
    append_turn(&store, "s", "t1", "before").await;
    store.limit_pages_for_tests(Some(12)).await.unwrap();
    let key = SessionKeyRef {
        session: &id("s"),
        principal: &Principal::local(),
    };
    let huge = lango_testkit::conformance::user_request(&"x".repeat(500_000));
    let refused = store
        .append(key, vec![lango_testkit::conformance::new_event("t2", huge)])
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("the disk is full"),
        "{refused}"
    );
    assert_eq!(
        store
            .load(key, HistoryWindow::Everything)
            .await
            .unwrap()
            .len(),
        3
    );
    store.limit_pages_for_tests(None).await.unwrap();
    append_turn(&store, "s", "t2", "after").await;
    assert_eq!(
        store
            .load(key, HistoryWindow::Everything)
            .await
            .unwrap()
            .last()
            .unwrap()
            .seq,
        6
    );
}
