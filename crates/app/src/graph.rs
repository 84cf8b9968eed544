//! Opens the knowledge graph, with its tools.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::{Stores, Tool};
use lango_graph::{Graph, GraphError, LazyGraph};

use crate::capabilities::CapabilityContext;
use crate::config::ConfigError;
use crate::lazy_stores::LazyStores;

/// Opens the graph in these stores.
pub fn open_graph(stores: Stores) -> Graph {
    Graph::new(stores.graph, Arc::new(Timestamp::now))
}

/// Returns a graph that is opened on first use.
pub(crate) fn lazy_graph(stores: &LazyStores) -> LazyGraph {
    let stores = stores.clone();
    LazyGraph::new(move || {
        stores
            .open()
            .map(|stores| Arc::new(open_graph(stores)))
            .map_err(|error| GraphError::Failed(error.to_string()))
    })
}

/// Returns the graph tools, if the graph is enabled (S81).
pub(crate) fn graph_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    match context.loaded.settings.graph.enabled {
        true => Ok(lango_graph::tools(&context.graph)),
        false => Ok(Vec::new()),
    }
}
