//! `lango route`: which agent a request's words point to, and why.

use std::fmt::Write as _;

use lango_app::Team;
use lango_team::{KeywordMatch, rank_by_keywords};
use serde_json::json;

use crate::output::{DIM, Failure, NAME, Output, styled};

pub fn run(team: &Team, text: &str) -> Result<Output, Failure> {
    let ranking = rank_by_keywords(&team.tree, text);
    let chosen = ranking.first().map(|best| best.agent.as_str());
    let decision = if chosen.is_some() { "agent" } else { "none" };
    let json = json!({ "decision": decision, "agent": chosen, "ranking": ranking });
    Ok(Output::new(plain(&ranking), json).with_warnings(team.warnings()))
}

fn plain(ranking: &[KeywordMatch]) -> String {
    if ranking.is_empty() {
        return "No keyword of the team stands in this request; the orchestrator decides.".to_owned();
    }
    let mut text = String::new();
    for found in ranking {
        let name = styled(NAME, format!("{:12}", found.agent));
        let _ = writeln!(text, "{name} {:>4}  {}", found.score, styled(DIM, found.matched.join(", ")));
    }
    text
}
