//! Invariants of every turn, whatever the model does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lango_domain::Content;
use lango_domain::event::{Author, Event, EventBody, TurnId};
use lango_domain::markers;
use lango_domain::model::{Message, ModelRequest};

use crate::script_runner::ScriptOutcome;

/// Returns all violations of the invariants in a script run.
pub fn violations(run: &ScriptOutcome) -> Vec<String> {
    let mut violations = Vec::new();
    violations.extend(check_turn_ends(&run.events));
    violations.extend(check_call_pairs(&run.events));
    violations.extend(check_authors(&run.events, &run.agents));
    violations.extend(run.requests.iter().flat_map(check_message_groups));
    violations.extend(check_stable_prefixes(run));
    violations.extend(check_sequence(&run.events));
    if !run.updates_match_store {
        violations.push("the published events differ from the stored ones".to_owned());
    }
    violations
}

/// B59: each turn ends exactly once, with an answer or a failure.
fn check_turn_ends(events: &[Arc<Event>]) -> Vec<String> {
    let mut ends: HashMap<&TurnId, (usize, usize, usize)> = HashMap::new();
    for event in events {
        let (answers, done, failed) = ends.entry(&event.turn).or_default();
        match &event.body {
            EventBody::Answer(Content { text, .. }) if !text.trim().is_empty() => *answers += 1,
            EventBody::TurnDone { .. } => *done += 1,
            EventBody::TurnFailed { .. } => *failed += 1,
            _ => {}
        }
    }
    let is_valid = |end: &(usize, usize, usize)| matches!(end, (1, 1, 0) | (0, 0, 1));
    let invalid = ends.into_iter().filter(|(_, end)| !is_valid(end));
    invalid
        .map(|(turn, (answers, done, failed))| {
            format!("{turn} has {answers} answers, {done} ends, {failed} failures")
        })
        .collect()
}

/// B54, B72: each call and each delegation has exactly one result after it.
fn check_call_pairs(events: &[Arc<Event>]) -> Vec<String> {
    let mut open = HashSet::new();
    let mut violations = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ToolCall { id, .. } | EventBody::Transfer { id, .. } if !open.insert(id) => {
                violations.push(format!("the call {id} was made twice"));
            }
            EventBody::ToolResult { id, .. } | EventBody::TransferResult { id, .. }
                if !open.remove(id) =>
            {
                violations.push(format!("the result {id} has no call, or is its second"));
            }
            _ => {}
        }
    }
    violations.extend(
        open.into_iter()
            .map(|id| format!("the call {id} has no result")),
    );
    violations
}

/// Authors are the user or existing agents.
fn check_authors(events: &[Arc<Event>], agents: &[String]) -> Vec<String> {
    let is_known =
        |author: &Author| *author == Author::User || agents.contains(&author.to_string());
    let unknown = events.iter().filter(|event| !is_known(&event.author));
    unknown
        .map(|event| format!("the author {} does not exist", event.author))
        .collect()
}

/// B72: no request contains a result without its call or a call without its result.
fn check_message_groups(request: &ModelRequest) -> Vec<String> {
    let mut violations = Vec::new();
    let mut ids = HashSet::new();
    let mut messages = request.messages.iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::Assistant { calls, .. } if !calls.is_empty() => {
                let called: Vec<_> = calls.iter().map(|call| &call.id).collect();
                violations.extend(
                    called
                        .iter()
                        .filter(|id| !ids.insert(**id))
                        .map(|id| format!("a request contains {id} twice")),
                );
                match messages.next() {
                    Some(Message::Results(results)) if results.iter().map(|r| &r.id).eq(called) => {
                    }
                    other => violations.push(format!(
                        "{} reads calls followed by {other:?}",
                        request.agent
                    )),
                }
            }
            Message::Results(_) => {
                violations.push(format!("{} reads results without calls", request.agent))
            }
            _ => {}
        }
    }
    if !matches!(request.messages.first(), Some(Message::User(_))) {
        violations.push(format!(
            "the first message for {} is not from the user",
            request.agent
        ));
    }
    violations
}

/// B40: consecutive requests of an agent share their prefix and only grow at their end, until they have
/// to be truncated. Agents that worked on two tasks in parallel are exempt.
fn check_stable_prefixes(run: &ScriptOutcome) -> Vec<String> {
    let mut violations = Vec::new();
    let mut last: HashMap<&str, &ModelRequest> = HashMap::new();
    let parallel = parallel_agents(&run.events);
    for request in &run.requests {
        if let Some(before) = last.insert(request.agent.as_str(), request) {
            if before.system != request.system || before.tools != request.tools {
                violations.push(format!(
                    "the stable part of {}'s request changed",
                    request.agent
                ));
            }
            let may_differ = is_truncated(request) || parallel.contains(request.agent.as_str());
            if !may_differ
                && !request
                    .messages
                    .starts_with(messages_without_reminder(before))
            {
                violations.push(format!("the prefix of {}'s request changed", request.agent));
            }
        }
    }
    violations
}

/// Returns the messages of a request without the reminder after an empty reply, which is not logged.
fn messages_without_reminder(request: &ModelRequest) -> &[Message] {
    match request.messages.split_last() {
        Some((Message::User(content), rest)) if content.text == markers::EMPTY_REPLY_REMINDER => {
            rest
        }
        _ => &request.messages,
    }
}

/// Returns true if a request has a truncation marker or a digest.
fn is_truncated(request: &ModelRequest) -> bool {
    let has_marker = |text: &str| {
        let markers = [
            markers::HISTORY_TRUNCATED_MARKER,
            markers::STEPS_TRUNCATED_MARKER,
            "<earlier ",
        ];
        markers.iter().any(|marker| text.starts_with(marker))
    };
    request
        .messages
        .iter()
        .any(|message| matches!(message, Message::User(content) if has_marker(&content.text)))
}

/// Returns the agents with two delegations at the same time.
fn parallel_agents(events: &[Arc<Event>]) -> HashSet<&str> {
    let mut open: HashMap<_, &str> = HashMap::new();
    let mut parallel = HashSet::new();
    for event in events {
        match &event.body {
            EventBody::Transfer { id, to, .. } => {
                if open.values().any(|other| *other == to.as_str()) {
                    parallel.insert(to.as_str());
                }
                open.insert(id, to.as_str());
            }
            EventBody::TransferResult { id, .. } => _ = open.remove(id),
            _ => {}
        }
    }
    parallel
}

/// Sequence numbers have no gaps.
fn check_sequence(events: &[Arc<Event>]) -> Vec<String> {
    let expected = 1..=events.len() as u64;
    let is_in_order = events.iter().map(|event| event.seq).eq(expected);
    if is_in_order {
        Vec::new()
    } else {
        vec!["sequence numbers have gaps".to_owned()]
    }
}
