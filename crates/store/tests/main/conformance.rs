use std::sync::Arc;

use lango_engine::InMemorySessionStore;
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::conformance::check;

use crate::setup::open;

/// B60, B71, B72, B74
#[tokio::test]
async fn sqlite_file_conforms() {
    let folder = tempfile::tempdir().unwrap();
    check(Arc::new(open(folder.path()))).await;
}

#[tokio::test]
async fn sqlite_in_memory_conforms() {
    check(Arc::new(SqliteStore::open(StoreLocation::Memory).unwrap())).await;
}

#[tokio::test]
async fn in_memory_store_conforms() {
    check(Arc::new(InMemorySessionStore::default())).await;
}
