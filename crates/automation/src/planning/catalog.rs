//! The agents and tools that planned work can name.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use lango_domain::{Safety, Tool};

use crate::workflow::WorkflowCatalog;

/// The agents and tools of the team, with the levels of the tools.
#[derive(Clone, Debug, Default)]
pub struct AutomationCatalog {
    pub names: WorkflowCatalog,
    levels: BTreeMap<String, Safety>,
}

/// A catalog that is set once the whole team is known, which is after its tools were made.
pub type SharedCatalog = Arc<OnceLock<AutomationCatalog>>;

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
