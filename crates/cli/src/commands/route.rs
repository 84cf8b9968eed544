//! `lango route`: which agent a request's words point to, and why.

use std::fmt::Write as _;

use lango_app::Team;
use lango_domain::AgentName;
use lango_team::{KeywordMatch, rank_by_keywords};
use serde_json::json;

use crate::output::{DIM, Failure, NAME, Output, styled};

pub fn run(team: &Team, text: &str) -> Result<Output, Failure> {
    let ranking = rank_by_keywords(&team.tree, text);
    let chosen = ranking.first().map(|best| best.agent.as_str());
    let decision = if chosen.is_some() { "agent" } else { "none" };
    let json = json!({ "decision": decision, "agent": chosen, "ranking": ranking });
    Ok(Output::new(plain(&team.tree.root.name, &ranking), json).with_warnings(team.warnings()))
}

fn plain(root: &AgentName, ranking: &[KeywordMatch]) -> String {
    if ranking.is_empty() {
        return format!("No keyword of a specialist stands in this request; {root} decides.");
    }
    let mut text = String::new();
    for found in ranking {
        let name = styled(NAME, format!("{:12}", found.agent));
        let _ = writeln!(text, "{name} {:>4}  {}", found.score, styled(DIM, found.matched.join(", ")));
    }
    text
}
