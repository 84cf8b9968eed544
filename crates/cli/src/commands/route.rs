//! `lango route`: the agent that the offline router picks for a request, and why.

use std::fmt::Write as _;

use lango_app::AssembledTeam;
use lango_app::RouteResponse;
use lango_app::offline::{OfflineRouter, Routing, RoutingDecision};

use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// Agents with a lower score are not printed.
const MIN_SHOWN_SCORE: f32 = 0.005;

pub fn run(team: &AssembledTeam, text: &str) -> Result<CommandOutput, CliError> {
    let routing = OfflineRouter::from_prompt(&team.tree.root.prompt.render()).route(text);
    let json = serde_json::to_value(RouteResponse::from(&routing)).unwrap_or_default();
    Ok(CommandOutput::new(format_routing(&routing), json).with_warnings(team.warnings()))
}

fn format_routing(routing: &Routing) -> String {
    let mut text = match &routing.decision {
        RoutingDecision::Agent(agent) => format!("Routed to {}.\n", styled(NAME, agent)),
        RoutingDecision::Direct => {
            "The orchestrator answers itself: no tool is needed.\n".to_owned()
        }
        RoutingDecision::NoAgent {
            absent: Some(agent),
        } => {
            format!("No agent: the request needs the {agent}, which is not in the team.\n")
        }
        RoutingDecision::NoAgent { absent: None } => {
            "No agent: the request is too vague.\n".to_owned()
        }
    };
    for ranked in routing
        .ranking
        .iter()
        .filter(|ranked| ranked.score >= MIN_SHOWN_SCORE)
    {
        let name = styled(NAME, format!("{:12}", ranked.agent));
        let share = format!("{:>3.0} %", 100.0 * ranked.score);
        let _ = writeln!(
            text,
            "{name} {share}  {}",
            styled(DIM, ranked.matched.join(", "))
        );
    }
    text
}
