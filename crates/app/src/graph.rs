//! From settings to the knowledge graph.

use std::sync::Arc;

use jiff::Timestamp;
use lango_knowledge::graph::{Graph, GraphError, LazyGraph};
use lango_store::SqliteStore;

use crate::lazy_store::LazyStore;

/// The graph that is kept in this store.
pub fn open_graph(store: SqliteStore) -> Graph {
    Graph::new(Arc::new(store), Arc::new(Timestamp::now))
}

/// The same, opened when it is first asked.
pub fn lazy_graph(stores: &LazyStore) -> LazyGraph {
    let stores = stores.clone();
    LazyGraph::new(move || {
        stores
            .open()
            .map(|store| Arc::new(open_graph(store)))
            .map_err(|trouble| GraphError::Failed(trouble.to_string()))
    })
}
