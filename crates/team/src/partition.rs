//! Partitions tools by the prefixes of their names.

use lango_domain::{AgentName, AgentSpec, Tool};

use crate::claims::ToolClaims;

/// The tools of each agent. Tools are moved, so each has exactly one owner (S05).
#[derive(Debug, Default)]
pub struct RoleToolSet {
    pub operator: Vec<Tool>,
    pub navigator: Vec<Tool>,
    pub vault: Vec<Tool>,
    pub librarian: Vec<Tool>,
    /// Always empty: the planner has no tools.
    pub planner: Vec<Tool>,
    pub chronicler: Vec<Tool>,
    pub automator: Vec<Tool>,
    /// Tools that no agent claims.
    pub unmatched: Vec<Tool>,
    /// The agents other than the seven roles, each with its tools.
    pub custom: Vec<(AgentName, Vec<Tool>)>,
}

/// Moves every tool to the agent that claims it, in the given order; unclaimed tools are unmatched (S10).
pub fn partition_tools(specs: &[AgentSpec], claims: &ToolClaims, tools: Vec<Tool>) -> RoleToolSet {
    let mut set = RoleToolSet::default();
    for spec in specs {
        if set.tools_mut(spec.name.as_str()).is_none() {
            set.custom.push((spec.name.clone(), Vec::new()));
        }
    }
    for tool in tools {
        let tools = claims
            .owner(&tool.name)
            .and_then(|owner| set.tools_mut(owner.as_str()));
        match tools {
            Some(tools) => tools.push(tool),
            None => set.unmatched.push(tool),
        }
    }
    set
}

/// Removes the tools of one agent from the set and returns them.
pub fn tools_for_spec(set: &mut RoleToolSet, spec: &AgentSpec) -> Vec<Tool> {
    set.tools_mut(spec.name.as_str())
        .map(std::mem::take)
        .unwrap_or_default()
}

impl RoleToolSet {
    /// Returns the tools by agent, the built-in roles and `unmatched` first.
    pub fn tools_by_agent(&self) -> Vec<(&str, &[Tool])> {
        let roles: [(&str, &[Tool]); 8] = [
            ("operator", &self.operator),
            ("navigator", &self.navigator),
            ("vault", &self.vault),
            ("librarian", &self.librarian),
            ("planner", &self.planner),
            ("chronicler", &self.chronicler),
            ("automator", &self.automator),
            ("unmatched", &self.unmatched),
        ];
        let custom = self
            .custom
            .iter()
            .map(|(name, tools)| (name.as_str(), tools.as_slice()));
        roles.into_iter().chain(custom).collect()
    }

    fn tools_mut(&mut self, agent: &str) -> Option<&mut Vec<Tool>> {
        match agent {
            "operator" => Some(&mut self.operator),
            "navigator" => Some(&mut self.navigator),
            "vault" => Some(&mut self.vault),
            "librarian" => Some(&mut self.librarian),
            "planner" => Some(&mut self.planner),
            "chronicler" => Some(&mut self.chronicler),
            "automator" => Some(&mut self.automator),
            _ => self
                .custom
                .iter_mut()
                .find(|(name, _)| name == agent)
                .map(|(_, tools)| tools),
        }
    }
}
