//! The suites of all store traits, on every implementation.

use std::sync::Arc;

use lango_engine::InMemorySessionStore;
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::conformance::{
    access_tokens, automation, blobs, catalog, documents, forget, graph, inquiries, knowledge,
    maintenance, memory, payments, saved_workflows, sessions, tasks, vault,
};

use crate::setup::open;

/// Runs a suite on a file and in memory.
macro_rules! conforms {
    ($($(#[$doc:meta])* $suite:ident: |$stores:ident| $check:expr;)+) => {
        $(
            $(#[$doc])*
            #[tokio::test]
            async fn $suite() {
                let folder = tempfile::tempdir().unwrap();
                let memory = SqliteStore::open(StoreLocation::Memory).unwrap();
                for store in [open(folder.path()), memory] {
                    let $stores = store.stores();
                    $check.await;
                }
            }
        )+
    };
}

conforms! {
    /// B60, B71, B72, B74
    sessions_conform: |stores| sessions::check(stores.sessions);
    /// B60, B74
    catalog_conforms: |stores| catalog::check(&stores);
    /// B74, B110
    blobs_conform: |stores| blobs::check(&stores);
    /// B74
    access_tokens_conform: |stores| access_tokens::check(stores.access_tokens);
    /// B74
    tasks_conform: |stores| tasks::check(&stores);
    /// B111
    /// B74, B120, B122
    automation_conforms: |stores| automation::check(&stores);
    maintenance_conforms: |stores| maintenance::check(&stores);
    /// B74
    documents_conform: |stores| documents::check(stores.documents);
    /// B74
    graph_conforms: |stores| graph::check(&stores);
    /// B74
    knowledge_conforms: |stores| knowledge::check(&stores);
    /// B74
    memory_conforms: |stores| memory::check(&stores);
    /// B74
    inquiries_conform: |stores| inquiries::check(&stores);
    /// B74, B131
    payments_conform: |stores| payments::check(&stores);
    /// B74
    saved_workflows_conform: |stores| saved_workflows::check(&stores);
    /// B74
    vault_conforms: |stores| vault::check(&stores);
    /// B74
    forgetting_conforms: |stores| forget::check(&stores);
}

#[tokio::test]
async fn in_memory_session_store_conforms() {
    sessions::check(Arc::new(InMemorySessionStore::default())).await;
    let store = InMemorySessionStore::default();
    blobs::check_reading(&store, &store).await;
}
