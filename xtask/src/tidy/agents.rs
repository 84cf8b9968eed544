//! The definitions of the built-in agents: whole, and none misleading whoever delegates.

use lango_team::AgentRegistry;

pub fn check() -> Vec<String> {
    let roster = AgentRegistry::built_in();
    let mistakes = roster
        .errors
        .iter()
        .map(|mistake| format!("agents/{mistake}"));
    mistakes.chain(roster.warnings()).collect()
}
