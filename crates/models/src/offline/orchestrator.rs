//! The offline model as orchestrator: transfers the request to the best agent, or answers it.

use lango_domain::markers::TRANSFER_TOOL;
use lango_domain::model::{ToolCall, ToolCallResult};
use serde_json::{Value, json};

use super::addressee::parse_addressee;
use super::reply::OfflineReply;
use super::router::{OfflineRouter, Routing, RoutingDecision};
use super::specialist::NOT_DONE;
use super::task::{OfflineTask, unwrap_report};
use super::{CONNECT_HINT, small_talk};

/// Minimum share of the remaining score that the next agent needs after another agent rejected the
/// request.
const MIN_RETRY_SHARE: f32 = 0.4;
/// Minimum confidence for each part of a request that is split between agents.
const MIN_PART_CONFIDENCE: f32 = 0.6;
/// Separators between the parts of a request.
const PART_SEPARATORS: [&str; 6] = [
    " and then ",
    "; then ",
    ", then ",
    ". Then ",
    " und dann ",
    "; ",
];
/// Same as the number of delegation rounds.
const MAX_PARTS: usize = 5;
/// Longer requests are not split.
const MAX_SPLIT_REQUEST_LEN: usize = 2_000;
/// The agent for scheduled work: the parts after a schedule belong to the schedule.
const SCHEDULING_AGENT: &str = "automator";

pub fn reply(assignment: &OfflineTask<'_>, router: &OfflineRouter) -> OfflineReply {
    let parts = split_request(assignment.request, router);
    match assignment.completed_calls.last() {
        None if parts.len() > 1 => transfer_part(&parts[0]),
        None if parts.len() == 1 => transfer(&parts[0].agent, None, &parts[0].reason),
        None => first_reply(assignment.request, router),
        Some(_) if parts.len() > 1 => next_part(assignment, &parts),
        Some((_, result)) => after_failure(assignment, router, result),
    }
}

fn first_reply(request: &str, router: &OfflineRouter) -> OfflineReply {
    let routing = router.route(request);
    match &routing.decision {
        RoutingDecision::Agent(agent) => {
            transfer(agent, routing.task.as_deref(), &reasons_text(&routing))
        }
        RoutingDecision::Direct => small_talk::answer(request, &team_names(router)),
        RoutingDecision::NoAgent {
            absent: Some(agent),
        } => OfflineReply::NotDone(format!(
            "This is work for the {agent}, but none of its tools is set up, so it is not in the team. The team is {}.",
            team_names(router)
        )),
        RoutingDecision::NoAgent { absent: None } => {
            OfflineReply::NotDone(undecided_message(&routing, router))
        }
    }
}

/// One part of a request, with its agent.
pub struct RequestPart {
    agent: String,
    task: String,
    reason: String,
}

/// Splits a request into parts for different agents, done in order. Returns no parts if the request
/// is for one agent, and a single part for scheduled work, whatever its number of steps.
pub fn split_request(request: &str, router: &OfflineRouter) -> Vec<RequestPart> {
    let has_addressee = parse_addressee(request, router.agents()).is_some();
    if has_addressee || request.len() > MAX_SPLIT_REQUEST_LEN {
        return Vec::new();
    }
    let mut texts = vec![request];
    for separator in PART_SEPARATORS {
        texts = texts
            .into_iter()
            .flat_map(|text| text.split(separator))
            .collect();
    }
    if !(2..=MAX_PARTS).contains(&texts.len()) {
        return Vec::new();
    }
    let mut parts = Vec::new();
    for text in texts {
        let routing = router.route(text);
        match &routing.decision {
            RoutingDecision::Agent(agent) if routing.confidence >= MIN_PART_CONFIDENCE => {
                let (agent, task, reason) = (
                    agent.clone(),
                    text.trim().to_owned(),
                    reasons_text(&routing),
                );
                parts.push(RequestPart {
                    agent,
                    task,
                    reason,
                });
            }
            _ => return Vec::new(),
        }
    }
    let has_one_agent = parts.windows(2).all(|pair| pair[0].agent == pair[1].agent);
    if has_one_agent {
        return Vec::new();
    }
    if parts[0].agent == SCHEDULING_AGENT {
        parts.truncate(1);
    }
    parts
}

fn transfer_part(part: &RequestPart) -> OfflineReply {
    OfflineReply::Call {
        name: TRANSFER_TOOL.to_owned(),
        arguments: json!({ "agent_name": part.agent, "task": part.task, "report_back": true }),
        reason: Some(part.reason.clone()),
    }
}

/// Transfers the next part if all parts before it succeeded; else returns all reports.
fn next_part(assignment: &OfflineTask<'_>, parts: &[RequestPart]) -> OfflineReply {
    let done = &assignment.completed_calls;
    let succeeded = |result: &ToolCallResult| {
        result.ok && !unwrap_report(&result.content.text).starts_with(NOT_DONE)
    };
    let all_succeeded = done.iter().all(|(_, result)| succeeded(result));
    match parts.get(done.len()) {
        Some(part) if all_succeeded => transfer_part(part),
        _ => {
            let reports = done.iter().map(|(call, result)| {
                format!(
                    "{}: {}",
                    addressee(call),
                    unwrap_report(&result.content.text)
                )
            });
            let text = reports.collect::<Vec<_>>().join("\n\n");
            let mut text = text.trim_end().to_owned();
            for part in parts.iter().skip(done.len()) {
                text.push_str(&format!("\n\nNot done: {}", part.task));
            }
            match all_succeeded {
                true => OfflineReply::Text(text),
                false => OfflineReply::NotDone(text),
            }
        }
    }
}

/// Transfers to the next likely agent that was not tried; else explains the failure.
fn after_failure(
    assignment: &OfflineTask<'_>,
    router: &OfflineRouter,
    result: &ToolCallResult,
) -> OfflineReply {
    let tried: Vec<&str> = assignment
        .completed_calls
        .iter()
        .map(|(call, _)| addressee(call))
        .collect();
    let routing = router.route(assignment.request);
    let remaining: Vec<_> = routing
        .ranking
        .iter()
        .filter(|ranked| !tried.contains(&ranked.agent.as_str()))
        .collect();
    let total: f32 = remaining.iter().map(|ranked| ranked.score).sum();
    match remaining.first() {
        Some(next) if next.score >= MIN_RETRY_SHARE * total => {
            transfer(&next.agent, None, &reasons_text(&routing))
        }
        _ => OfflineReply::NotDone(not_done_message(
            &tried,
            unwrap_report(&result.content.text),
            routing.task.is_some(),
        )),
    }
}

/// Returns the failure message with the last agent's reason. If the user named the agent, a
/// language model would not help.
fn not_done_message(tried: &[&str], reason: &str, was_named: bool) -> String {
    let agent = tried.last().copied().unwrap_or("team");
    if was_named {
        return format!("{NOT_DONE}the {agent} says: {reason}");
    }
    let subject = if tried.len() > 1 {
        "no agent of the team did this. The"
    } else {
        "the"
    };
    format!("{NOT_DONE}{subject} {agent} says: {reason}\n\n{CONNECT_HINT}")
}

fn addressee(call: &ToolCall) -> &str {
    call.arguments
        .get("agent_name")
        .and_then(|name| name.as_str())
        .unwrap_or_default()
}

/// Returns a transfer to `agent`: for the user's request, or for `task` if set.
pub fn transfer(agent: &str, task: Option<&str>, reason: &str) -> OfflineReply {
    let mut arguments = json!({ "agent_name": agent });
    if let Some(task) = task {
        arguments["task"] = Value::from(task);
    }
    OfflineReply::Call {
        name: TRANSFER_TOOL.to_owned(),
        arguments,
        reason: Some(reason.to_owned()),
    }
}

/// Returns the two most likely agents with the words that matched.
pub fn reasons_text(routing: &Routing) -> String {
    let likely = routing
        .ranking
        .iter()
        .take(2)
        .filter(|ranked| ranked.score >= 0.01);
    let reasons = likely.map(|ranked| {
        format!(
            "{} {:.2} ({})",
            ranked.agent,
            ranked.score,
            ranked.matched.join(", ")
        )
    });
    reasons.collect::<Vec<_>>().join("; ")
}

fn undecided_message(routing: &Routing, router: &OfflineRouter) -> String {
    let likely: Vec<&str> = routing
        .ranking
        .iter()
        .take(2)
        .map(|ranked| ranked.agent.as_str())
        .collect();
    match likely.as_slice() {
        [first, second] => format!(
            "I cannot tell whose work this is: the {first}'s or the {second}'s? Say it with a verb and what it is about, as in \
             \"read notes.txt\". The team is {}.",
            team_names(router)
        ),
        _ => format!(
            "I cannot tell whose work this is. The team is {}.",
            team_names(router)
        ),
    }
}

fn team_names(router: &OfflineRouter) -> String {
    let agents: Vec<&str> = router.agents().collect();
    if agents.is_empty() {
        "the orchestrator alone".to_owned()
    } else {
        agents.join(", ")
    }
}
