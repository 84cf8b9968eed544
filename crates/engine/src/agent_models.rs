//! The models of a team's agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use lango_domain::AgentName;
use lango_domain::model::Model;

/// The models of the agents.
#[derive(Clone)]
pub struct Models {
    pub default: Arc<dyn Model>,
    pub per_agent: BTreeMap<AgentName, Arc<dyn Model>>,
}

impl Models {
    pub(crate) fn for_agent(&self, agent: &AgentName) -> &Arc<dyn Model> {
        self.per_agent.get(agent).unwrap_or(&self.default)
    }

    pub(crate) fn largest_window(&self) -> usize {
        let own = self.per_agent.values().map(|model| model.window());
        own.fold(self.default.window(), usize::max)
    }
}
