//! Checks that the built-in agent files parse and do not mislead the orchestrator.

use lango_team::AgentRegistry;

pub fn check() -> Vec<String> {
    let roster = AgentRegistry::built_in();
    let mistakes = roster
        .errors
        .iter()
        .map(|mistake| format!("agents/{mistake}"));
    mistakes.chain(roster.warnings()).collect()
}
