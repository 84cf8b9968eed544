//! Opens the knowledge graph.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Stores;
use lango_graph::{Graph, GraphError, LazyGraph};

use crate::lazy_stores::LazyStores;

/// Opens the graph in these stores.
pub fn open_graph(stores: Stores) -> Graph {
    Graph::new(stores.graph, Arc::new(Timestamp::now))
}

/// Returns a graph that is opened on first use.
pub fn lazy_graph(stores: &LazyStores) -> LazyGraph {
    let stores = stores.clone();
    LazyGraph::new(move || {
        stores
            .open()
            .map(|stores| Arc::new(open_graph(stores)))
            .map_err(|error| GraphError::Failed(error.to_string()))
    })
}
