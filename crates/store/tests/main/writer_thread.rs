//! The number of writer threads. The test starts its own binary, because other tests open stores in
//! this process.

use std::process::Command;

use jiff::Timestamp;
use lango_domain::automation::InboxSelection;
use lango_domain::event::Principal;
use lango_domain::forget::Removal;
use lango_domain::session::SessionKey;

use crate::processes::STARTING_PROCESSES;
use crate::setup::{append_turn, id, open};

const FOLDER: &str = "LANGO_TEST_WRITER_FOLDER";

fn writer_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end in between.
    let names = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")));
    names
        .filter(|name| name.as_ref().is_ok_and(|name| name.trim() == "lango-store"))
        .count()
}

/// Opens a store and writes with each of its stores.
async fn write_with_all_stores(folder: &std::path::Path) {
    assert_eq!(writer_threads(), 0);
    let store = open(folder);
    append_turn(&store, "s", "t", "hello").await;
    let (stores, me, now) = (store.stores(), Principal::local(), Timestamp::UNIX_EPOCH);
    let key = SessionKey {
        session: id("s"),
        principal: me.clone(),
    };
    let again = store.clone().stores();
    again.sessions.append(key.as_ref(), vec![]).await.unwrap();
    stores
        .access_tokens
        .record_token_use("a", now)
        .await
        .unwrap();
    stores.tasks.delete_task(&me, "a").await.unwrap();
    stores.documents.delete_unused_vectors().await.unwrap();
    stores.graph.append(&me, vec![]).await.unwrap();
    stores.memory.activate(&key, 3).await.unwrap();
    stores.knowledge.forget(&me, "a").await.unwrap();
    stores.inquiries.dismiss(&me, 1, now).await.unwrap();
    stores
        .automation
        .clear_inbox(&me, InboxSelection::All)
        .await
        .unwrap();
    let nothing = Removal::default();
    stores.learned.remove(&me, nothing).await.unwrap();
    stores.maintenance.check_writable().await.unwrap();
    stores.catalog.delete(&me, &key.session).await.unwrap();
    assert_eq!(writer_threads(), 1);
}

/// B111
#[tokio::test]
async fn all_stores_share_one_writer_thread() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return write_with_all_stores(folder.as_ref()).await;
    }
    let _alone = STARTING_PROCESSES.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "writer_thread::all_stores_share_one_writer_thread",
            "--nocapture",
        ])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        folder.path().join("data/lango.sqlite").exists(),
        "the other process ran the test"
    );
}
