//! The knowledge graph: facts with their sources. The store keeps them as a log. The first query
//! loads the log into memory; later queries read only what was appended since, by any process.

mod batch;
mod batch_format;
pub mod diagram;
mod expansion;
mod fact;
pub mod import_export;
mod in_memory;
mod interner;
mod mentions;
mod query;
mod settings;
mod snapshot;
mod tools;
mod validity;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::Clock;
use lango_domain::StoreError;
use lango_domain::event::Principal;
use lango_domain::graph::{
    FactLogVersion, FactProvenance, FactSourceFilter, GraphStore, NewFactBatch,
};

pub use batch::{BatchError, BatchWriter, MAX_FACTS};
pub use batch_format::GraphBatchFormat;
pub use expansion::GraphExpander;
pub use fact::{FactError, FactRef, FactRetirement, NewFact};
pub use in_memory::{Edge, EdgeEnd, Fact, InMemoryGraph};
pub use interner::{fold, normalize_spaces};
pub use query::{Direction, FactHits, FactPattern, Traversal, TraversalResult};
pub use settings::GraphSettings;
pub use snapshot::{FactCount, FactItem, GraphSnapshot, GraphStats, UnknownName};
pub use tools::{LazyGraph, facts_json, tools};
pub use validity::{AsOf, DateError, Moment};

use in_memory::ApplyResult;

/// Handle to the knowledge graph of every principal. Cheap to clone.
#[derive(Clone)]
pub struct Graph {
    inner: Arc<GraphInner>,
}

struct GraphInner {
    store: Arc<dyn GraphStore>,
    clock: Clock,
    graphs: Mutex<HashMap<Principal, Arc<PrincipalGraph>>>,
}

/// The in-memory facts of one principal.
#[derive(Default)]
struct PrincipalGraph {
    state: Mutex<GraphState>,
    /// Held while the log is read.
    sync_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct GraphState {
    /// `None` before the first query and while the graph is being updated.
    graph: Option<Arc<InMemoryGraph>>,
    version: Option<FactLogVersion>,
}

#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    Fact(#[from] FactError),
    #[error("{0}")]
    Failed(String),
}

impl Graph {
    /// Creates the graph without reading anything; the first query loads it.
    pub fn new(store: Arc<dyn GraphStore>, clock: Clock) -> Self {
        Self {
            inner: Arc::new(GraphInner {
                store,
                clock,
                graphs: Mutex::default(),
            }),
        }
    }

    pub fn now(&self) -> Moment {
        Moment::from((self.inner.clock)())
    }

    /// Appends facts, either all of them or none.
    pub async fn assert(
        &self,
        principal: &Principal,
        from: impl Into<FactProvenance>,
        facts: &[NewFact],
    ) -> Result<(), GraphError> {
        let FactProvenance { source, label } = from.into();
        let mut batches = Vec::new();
        for chunk in facts.chunks(MAX_FACTS) {
            let mut writer = BatchWriter::default();
            for fact in chunk {
                let properties = match fact.properties.is_empty() {
                    true => String::new(),
                    false => serde_json::to_string(&fact.properties).unwrap_or_default(),
                };
                let fact_ref = FactRef {
                    subject: &fact.subject,
                    predicate: &fact.predicate,
                    object: &fact.object,
                    subject_type: &fact.subject_type,
                    object_type: &fact.object_type,
                    properties: &properties,
                    valid_from: fact.valid_from,
                    valid_to: fact.valid_to,
                };
                fact_ref.check()?;
                writer.push(&fact_ref);
            }
            let (source, label) = (source.clone(), label.clone());
            batches.push(NewFactBatch {
                source,
                label,
                body: writer.finish(),
            });
        }
        Ok(self.inner.store.append(principal, batches).await?)
    }

    /// Ends the validity of facts. They remain in the graph as facts of the past.
    pub async fn retire(
        &self,
        principal: &Principal,
        from: impl Into<FactProvenance>,
        retirements: &[FactRetirement],
    ) -> Result<(), GraphError> {
        let FactProvenance { source, label } = from.into();
        let mut writer = BatchWriter::default();
        for retirement in retirements {
            let FactRetirement {
                subject,
                predicate,
                object,
                at,
            } = retirement;
            FactRef {
                subject,
                predicate,
                object,
                ..FactRef::default()
            }
            .check()?;
            writer.retire((subject, predicate, object), *at);
        }
        let batch = NewFactBatch {
            source,
            label,
            body: writer.finish(),
        };
        Ok(self.inner.store.append(principal, vec![batch]).await?)
    }

    /// Appends batches that the caller has encoded, for example a bulk import.
    pub async fn append(
        &self,
        principal: &Principal,
        batches: Vec<NewFactBatch>,
    ) -> Result<(), GraphError> {
        Ok(self.inner.store.append(principal, batches).await?)
    }

    /// Deletes all facts from the given sources. Returns true if there were any.
    pub async fn forget_source(
        &self,
        principal: &Principal,
        range: FactSourceFilter,
    ) -> Result<bool, GraphError> {
        Ok(self.inner.store.forget(principal, range).await? > 0)
    }

    /// Returns the current facts, including those that other processes have written.
    pub async fn snapshot(&self, principal: &Principal) -> Result<GraphSnapshot, GraphError> {
        let entry = self.principal_graph(principal);
        if let Some(graph) = entry.current(self.inner.store.log_version()) {
            return Ok(GraphSnapshot::new(graph));
        }
        let _guard = entry.sync_lock.lock().await;
        // Read the version before the log, so that a concurrent write makes it outdated.
        let version = self.inner.store.log_version();
        if let Some(graph) = entry.current(version) {
            return Ok(GraphSnapshot::new(graph));
        }
        let before = entry.lock().graph.take().unwrap_or_default();
        let graph = self.sync_graph(principal, before).await?;
        *entry.lock() = GraphState {
            graph: Some(Arc::clone(&graph)),
            version,
        };
        Ok(GraphSnapshot::new(graph))
    }

    fn principal_graph(&self, principal: &Principal) -> Arc<PrincipalGraph> {
        let mut all = self
            .inner
            .graphs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match all.get(principal) {
            Some(entry) => Arc::clone(entry),
            None => Arc::clone(all.entry(principal.clone()).or_default()),
        }
    }

    /// Applies the log to its end.
    async fn sync_graph(
        &self,
        principal: &Principal,
        mut graph: Arc<InMemoryGraph>,
    ) -> Result<Arc<InMemoryGraph>, GraphError> {
        let mut is_rebuilt = true;
        loop {
            let changes = self
                .inner
                .store
                .changes(principal, graph.position())
                .await?;
            let is_at_end = changes.batches.is_empty() && changes.removed.is_empty();
            if is_at_end && is_rebuilt {
                return Ok(graph);
            }
            let work = move || {
                let target = Arc::make_mut(&mut graph);
                match target.apply(&changes)? {
                    ApplyResult::Outdated => *target = InMemoryGraph::default(),
                    ApplyResult::Applied if is_at_end => target.rebuild_edges(),
                    ApplyResult::Applied => {}
                }
                Ok::<_, GraphError>(graph)
            };
            graph = run_blocking(work).await?;
            is_rebuilt = is_at_end;
        }
    }
}

impl PrincipalGraph {
    fn lock(&self) -> std::sync::MutexGuard<'_, GraphState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the graph in memory if the store reports that nothing was written since.
    fn current(&self, version: Option<FactLogVersion>) -> Option<Arc<InMemoryGraph>> {
        let state = self.lock();
        let is_current = version.is_some() && version == state.version;
        state.graph.clone().filter(|_| is_current)
    }
}

/// Runs CPU-bound work outside the async runtime.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GraphError> + Send + 'static,
) -> Result<T, GraphError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| {
        Err(GraphError::Failed(format!(
            "the knowledge graph could not be loaded: {error}"
        )))
    })
}
