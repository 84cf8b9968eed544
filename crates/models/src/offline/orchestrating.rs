//! The offline model as orchestrator: one transfer to whoever fits, or an answer of its own.

use lango_domain::model::{Call, CallResult};
use serde_json::json;

use super::assignment::{Assignment, unfenced};
use super::reply::Reply;
use super::router::{Decision, Router, Routing};
use super::{HOW_TO_CONNECT, small_talk};

/// The orchestrator's one call.
pub const TRANSFER: &str = "transfer_to_agent";
/// An agent that gave a request back is followed by the next one only if that much speaks for it.
const WORTH_TRYING: f32 = 0.1;
/// Parts of a request go to different agents only when each is that sure.
const SURE_OF_PART: f32 = 0.6;
/// What stands between parts of a request for different agents.
const BETWEEN: [&str; 4] = [" and then ", ", then ", "; then ", "; "];

pub fn reply(assignment: &Assignment<'_>, router: &Router) -> Reply {
    let parts = parts(assignment.request, router);
    match assignment.done.last() {
        None if parts.len() > 1 => transfer_part(&parts[0]),
        None => first(assignment.request, router),
        Some(_) if parts.len() > 1 => next_part(assignment, &parts),
        Some((_, result)) => after_failure(assignment, router, result),
    }
}

fn first(request: &str, router: &Router) -> Reply {
    let routing = router.route(request);
    match &routing.decision {
        Decision::Agent(agent) => transfer(agent, &because(&routing)),
        Decision::Direct => Reply::Words(small_talk::answer(request, &team(router))),
        Decision::Nobody { absent: Some(agent) } => Reply::Words(format!(
            "This is work for the {agent}, and the team has none: none of its tools is set up. The team is {}.",
            team(router)
        )),
        Decision::Nobody { absent: None } => Reply::Words(undecided(&routing, router)),
    }
}

/// One part of a request, and whose it is.
struct Part {
    agent: String,
    task: String,
    because: String,
}

/// The parts of a request that different agents must do one after the other; one or none when it is for one agent.
fn parts(request: &str, router: &Router) -> Vec<Part> {
    let Some(between) = BETWEEN.iter().find(|between| request.contains(**between)) else { return Vec::new() };
    let mut parts = Vec::new();
    for text in request.split(between) {
        let routing = router.route(text);
        match &routing.decision {
            Decision::Agent(agent) if routing.confidence >= SURE_OF_PART => {
                let (agent, task, because) = (agent.clone(), text.trim().to_owned(), because(&routing));
                parts.push(Part { agent, task, because });
            }
            _ => return Vec::new(),
        }
    }
    let is_for_one = parts.windows(2).all(|pair| pair[0].agent == pair[1].agent);
    if is_for_one { Vec::new() } else { parts }
}

fn transfer_part(part: &Part) -> Reply {
    Reply::Call {
        name: TRANSFER.to_owned(),
        arguments: json!({ "agent_name": part.agent, "task": part.task, "report_back": true }),
        because: Some(part.because.clone()),
    }
}

/// The next part, as long as the parts before it worked; then everything that was reported.
fn next_part(assignment: &Assignment<'_>, parts: &[Part]) -> Reply {
    let done = &assignment.done;
    let all_worked = done.iter().all(|(_, result)| result.ok);
    match parts.get(done.len()) {
        Some(part) if all_worked => transfer_part(part),
        _ => {
            let reports = done
                .iter()
                .map(|(call, result)| format!("{}: {}", addressee(call), unfenced(&result.content)));
            let mut text = reports.collect::<Vec<_>>().join("\n\n");
            for part in parts.iter().skip(done.len()) {
                text.push_str(&format!("\n\nNot done: {}", part.task));
            }
            Reply::Words(text)
        }
    }
}

/// Another agent, if one is likely; else what was said.
fn after_failure(assignment: &Assignment<'_>, router: &Router, result: &CallResult) -> Reply {
    let tried: Vec<&str> = assignment.done.iter().map(|(call, _)| addressee(call)).collect();
    let routing = router.route(assignment.request);
    let next = routing.ranking.iter().find(|ranked| !tried.contains(&ranked.agent.as_str()));
    match next {
        Some(next) if next.score >= WORTH_TRYING => transfer(&next.agent, &because(&routing)),
        _ => Reply::Words(format!(
            "Nobody in the team took this. {}\n\n{HOW_TO_CONNECT}",
            unfenced(&result.content)
        )),
    }
}

fn addressee(call: &Call) -> &str {
    call.arguments.get("agent_name").and_then(|name| name.as_str()).unwrap_or_default()
}

fn transfer(agent: &str, because: &str) -> Reply {
    let because = Some(because.to_owned());
    Reply::Call { name: TRANSFER.to_owned(), arguments: json!({ "agent_name": agent }), because }
}

/// The likeliest agents, with the words that speak for them.
pub fn because(routing: &Routing) -> String {
    let likely = routing.ranking.iter().take(2).filter(|ranked| ranked.score >= 0.01);
    let reasons =
        likely.map(|ranked| format!("{} {:.2} ({})", ranked.agent, ranked.score, ranked.matched.join(", ")));
    reasons.collect::<Vec<_>>().join("; ")
}

fn undecided(routing: &Routing, router: &Router) -> String {
    let likely: Vec<&str> = routing.ranking.iter().take(2).map(|ranked| ranked.agent.as_str()).collect();
    match likely.as_slice() {
        [one, other] => format!(
            "I cannot tell whose work this is: the {one}'s or the {other}'s? Say it with a verb and what it is about, as in \
             \"read notes.txt\". The team is {}.",
            team(router)
        ),
        _ => format!("I cannot tell whose work this is. The team is {}.", team(router)),
    }
}

fn team(router: &Router) -> String {
    let agents: Vec<&str> = router.agents().collect();
    if agents.is_empty() { "the orchestrator alone".to_owned() } else { agents.join(", ") }
}
