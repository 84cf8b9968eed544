//! The agents and tools that planned work can name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::{Safety, Tool};

use crate::workflow::WorkflowCatalog;

/// The agents and tools of the team, with the levels of the tools.
#[derive(Clone, Debug, Default)]
pub struct AutomationCatalog {
    pub names: WorkflowCatalog,
    levels: BTreeMap<String, Safety>,
}

/// The catalog of the current team. It is set when the team is built, which is after its tools were made, and
/// again when the team changes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SharedCatalog(Arc<Mutex<Option<Arc<AutomationCatalog>>>>);

impl SharedCatalog {
    pub fn set(&self, catalog: AutomationCatalog) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(catalog));
    }

    /// Returns the catalog, or `None` before a team was built.
    pub fn get(&self) -> Option<Arc<AutomationCatalog>> {
        let catalog = self.0.lock();
        catalog.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AutomationCatalog {
    pub fn new<'a>(
        agents: impl IntoIterator<Item = &'a str>,
        tools: impl IntoIterator<Item = &'a Tool> + Clone,
    ) -> Self {
        Self {
            names: WorkflowCatalog::new(agents, tools.clone()),
            levels: tools
                .into_iter()
                .map(|tool| (tool.name.clone(), tool.safety))
                .collect(),
        }
    }

    /// Returns the level of a tool. An unknown one is dangerous.
    pub fn level(&self, tool: &str) -> Safety {
        self.levels.get(tool).copied().unwrap_or_default()
    }
}
