//! Opens the knowledge graph.

use std::sync::Arc;

use jiff::Timestamp;
use lango_graph::{Graph, GraphError, LazyGraph};
use lango_store::SqliteStore;

use crate::lazy_store::LazyStore;

/// Opens the graph in this store.
pub fn open_graph(store: SqliteStore) -> Graph {
    Graph::new(Arc::new(store), Arc::new(Timestamp::now))
}

/// Returns a graph that is opened on first use.
pub fn lazy_graph(store: &LazyStore) -> LazyGraph {
    let store = store.clone();
    LazyGraph::new(move || {
        store
            .open()
            .map(|store| Arc::new(open_graph(store)))
            .map_err(|error| GraphError::Failed(error.to_string()))
    })
}
