//! The knowledge graph: facts with their sources. The store keeps them as a log; whoever asks first has them read into memory,
//! and from then on memory follows the log, whichever process writes to it.

mod batch;
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
pub(crate) mod user_batches;
mod validity;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::Clock;
use lango_domain::event::Principal;
use lango_domain::graph::{
    FactLogVersion, FactProvenance, FactSourceFilter, GraphStore, NewFactBatch,
};
use lango_domain::session::StoreError;

pub use batch::{BatchError, BatchWriter, MAX_FACTS};
pub use expansion::{ExpansionError, ExpansionResult, expand};
pub use fact::{FactError, FactRef, FactRetirement, NewFact};
pub use in_memory::{Edge, EdgeEnd, Fact, InMemoryGraph};
pub use interner::{fold, normalize_spaces};
pub use query::{Direction, FactHits, FactPattern, Traversal, TraversalResult};
pub use settings::GraphSettings;
pub use snapshot::{FactCount, FactItem, GraphSnapshot, GraphStats, UnknownName};
pub use tools::{LazyGraph, facts_json, tools};
pub use validity::{AsOf, DateError, Moment};

use in_memory::ApplyResult;

/// Cheap to clone.
#[derive(Clone)]
pub struct Graph {
    inner: Arc<GraphInner>,
}

struct GraphInner {
    store: Arc<dyn GraphStore>,
    clock: Clock,
    graphs: Mutex<HashMap<Principal, Arc<PrincipalGraph>>>,
}

/// What is in memory of one principal's facts.
#[derive(Default)]
struct PrincipalGraph {
    state: Mutex<GraphState>,
    /// Held by whoever reads the log.
    sync_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct GraphState {
    /// Nothing before the first question, and while it is being changed.
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
    /// Nothing is read until something is asked.
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

    /// Tells facts; all of them are kept, or none.
    pub async fn assert(
        &self,
        of: &Principal,
        from: impl Into<FactProvenance>,
        facts: &[NewFact],
    ) -> Result<(), GraphError> {
        let FactProvenance { source, label } = from.into();
        let mut batches = Vec::new();
        for part in facts.chunks(MAX_FACTS) {
            let mut writing = BatchWriter::default();
            for fact in part {
                let properties = match fact.properties.is_empty() {
                    true => String::new(),
                    false => serde_json::to_string(&fact.properties).unwrap_or_default(),
                };
                let told = FactRef {
                    subject: &fact.subject,
                    predicate: &fact.predicate,
                    object: &fact.object,
                    subject_type: &fact.subject_type,
                    object_type: &fact.object_type,
                    properties: &properties,
                    valid_from: fact.valid_from,
                    valid_to: fact.valid_to,
                };
                told.check()?;
                writing.push(&told);
            }
            let (source, label) = (source.clone(), label.clone());
            batches.push(NewFactBatch {
                source,
                label,
                body: writing.finish(),
            });
        }
        Ok(self.inner.store.append(of, batches).await?)
    }

    /// Facts do not hold any more; that they did stays known.
    pub async fn retire(
        &self,
        of: &Principal,
        from: impl Into<FactProvenance>,
        endings: &[FactRetirement],
    ) -> Result<(), GraphError> {
        let FactProvenance { source, label } = from.into();
        let mut writing = BatchWriter::default();
        for ending in endings {
            let FactRetirement {
                subject,
                predicate,
                object,
                at,
            } = ending;
            FactRef {
                subject,
                predicate,
                object,
                ..FactRef::default()
            }
            .check()?;
            writing.retire((subject, predicate, object), *at);
        }
        Ok(self
            .inner
            .store
            .append(
                of,
                vec![NewFactBatch {
                    source,
                    label,
                    body: writing.finish(),
                }],
            )
            .await?)
    }

    /// Batches that were made ready elsewhere, as a bulk load does.
    pub async fn append(
        &self,
        of: &Principal,
        batches: Vec<NewFactBatch>,
    ) -> Result<(), GraphError> {
        Ok(self.inner.store.append(of, batches).await?)
    }

    /// Takes out everything that comes from there, as if it had never been told; gives whether there was anything.
    pub async fn forget_source(
        &self,
        of: &Principal,
        range: FactSourceFilter,
    ) -> Result<bool, GraphError> {
        Ok(self.inner.store.forget(of, range).await? > 0)
    }

    /// The facts as they are now, whoever wrote last.
    pub async fn snapshot(&self, of: &Principal) -> Result<GraphSnapshot, GraphError> {
        let held = self.principal_graph(of);
        if let Some(net) = held.current(self.inner.store.log_version()) {
            return Ok(GraphSnapshot::new(net));
        }
        let _alone = held.sync_lock.lock().await;
        // Before the look: what is written from now on changes it.
        let pulse = self.inner.store.log_version();
        if let Some(net) = held.current(pulse) {
            return Ok(GraphSnapshot::new(net));
        }
        let before = held.lock().graph.take().unwrap_or_default();
        let net = self.sync_graph(of, before).await?;
        *held.lock() = GraphState {
            graph: Some(Arc::clone(&net)),
            version: pulse,
        };
        Ok(GraphSnapshot::new(net))
    }

    fn principal_graph(&self, of: &Principal) -> Arc<PrincipalGraph> {
        let mut all = self
            .inner
            .graphs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match all.get(of) {
            Some(held) => Arc::clone(held),
            None => Arc::clone(all.entry(of.clone()).or_default()),
        }
    }

    /// Brought up to the end of the log.
    async fn sync_graph(
        &self,
        of: &Principal,
        mut net: Arc<InMemoryGraph>,
    ) -> Result<Arc<InMemoryGraph>, GraphError> {
        let mut is_settled = true;
        loop {
            let changes = self.inner.store.changes(of, net.position()).await?;
            let is_over = changes.batches.is_empty() && changes.removed.is_empty();
            if is_over && is_settled {
                return Ok(net);
            }
            let work = move || {
                let changing = Arc::make_mut(&mut net);
                match changing.apply(&changes)? {
                    ApplyResult::Outdated => *changing = InMemoryGraph::default(),
                    ApplyResult::Applied if is_over => changing.rebuild_edges(),
                    ApplyResult::Applied => {}
                }
                Ok::<_, GraphError>(net)
            };
            net = run_blocking(work).await?;
            is_settled = is_over;
        }
    }
}

impl PrincipalGraph {
    fn lock(&self) -> std::sync::MutexGuard<'_, GraphState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is in memory, when it is certain that nobody wrote since.
    fn current(&self, pulse: Option<FactLogVersion>) -> Option<Arc<InMemoryGraph>> {
        let now = self.lock();
        now.graph
            .clone()
            .filter(|_| pulse.is_some() && pulse == now.version)
    }
}

/// Away from whoever waits for others.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GraphError> + Send + 'static,
) -> Result<T, GraphError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(GraphError::Failed(format!(
            "reading the graph broke off: {error}"
        )))
    })
}
