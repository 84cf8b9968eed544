//! What holds for every turn, whatever the model does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lango_domain::event::{Author, Event, EventBody, TurnId};
use lango_domain::markers;
use lango_domain::model::{Message, ModelRequest};

use crate::script_runner::ScriptOutcome;

/// Every complaint about a story; none when all is well.
pub fn violations(told: &ScriptOutcome) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(check_turn_ends(&told.events));
    found.extend(check_call_pairs(&told.events));
    found.extend(check_authors(&told.events, &told.agents));
    found.extend(told.requests.iter().flat_map(check_message_groups));
    found.extend(check_stable_prefixes(told));
    found.extend(check_sequence(&told.events));
    found.extend(
        (!told.updates_match_store).then(|| "what was shown is not what is stored".to_owned()),
    );
    found
}

/// B59: each turn ends exactly once, in an answer or a failure.
fn check_turn_ends(events: &[Arc<Event>]) -> Vec<String> {
    let mut ends: HashMap<&TurnId, (usize, usize, usize)> = HashMap::new();
    for event in events {
        let (answers, done, failed) = ends.entry(&event.turn).or_default();
        match &event.body {
            EventBody::Answer { text } if !text.trim().is_empty() => *answers += 1,
            EventBody::TurnDone => *done += 1,
            EventBody::TurnFailed { .. } => *failed += 1,
            _ => {}
        }
    }
    let is_good = |end: &(usize, usize, usize)| matches!(end, (1, 1, 0) | (0, 0, 1));
    let bad = ends.into_iter().filter(|(_, end)| !is_good(end));
    bad.map(|(turn, (answers, done, failed))| {
        format!("{turn} has {answers} answers, {done} ends, {failed} failures")
    })
    .collect()
}

/// B54, B72: each call and each delegation has exactly one result, after it.
fn check_call_pairs(events: &[Arc<Event>]) -> Vec<String> {
    let mut open = HashSet::new();
    let mut complaints = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ToolCall { id, .. } | EventBody::Transfer { id, .. } if !open.insert(id) => {
                complaints.push(format!("the call {id} was made twice"));
            }
            EventBody::ToolResult { id, .. } | EventBody::TransferResult { id, .. }
                if !open.remove(id) =>
            {
                complaints.push(format!("the result {id} has no call, or is its second"));
            }
            _ => {}
        }
    }
    complaints.extend(
        open.into_iter()
            .map(|id| format!("the call {id} never got a result")),
    );
    complaints
}

/// Authors are the user and agents that exist; a root that delegates is told apart from who answers.
fn check_authors(events: &[Arc<Event>], agents: &[String]) -> Vec<String> {
    let is_known =
        |author: &Author| *author == Author::User || agents.contains(&author.to_string());
    let strangers = events.iter().filter(|event| !is_known(&event.author));
    strangers
        .map(|event| format!("{} is nobody's name", event.author))
        .collect()
}

/// B72: no request carries a result without its call or a call without its result.
fn check_message_groups(request: &ModelRequest) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut ids = HashSet::new();
    let mut messages = request.messages.iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::Assistant { calls, .. } if !calls.is_empty() => {
                let called: Vec<_> = calls.iter().map(|call| &call.id).collect();
                complaints.extend(
                    called
                        .iter()
                        .filter(|id| !ids.insert(**id))
                        .map(|id| format!("{id} stands twice in a request")),
                );
                match messages.next() {
                    Some(Message::Results(results)) if results.iter().map(|r| &r.id).eq(called) => {
                    }
                    other => complaints.push(format!(
                        "{} reads calls followed by {other:?}",
                        request.agent
                    )),
                }
            }
            Message::Results(_) => {
                complaints.push(format!("{} reads results without calls", request.agent))
            }
            _ => {}
        }
    }
    if !matches!(request.messages.first(), Some(Message::User(_))) {
        complaints.push(format!("{} does not begin with the user", request.agent));
    }
    complaints
}

/// B40: what an agent reads begins the same every time, and only grows at its end, until it has to be cut. Agents that
/// worked on two tasks side by side have two ends.
fn check_stable_prefixes(told: &ScriptOutcome) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut last: HashMap<&str, &ModelRequest> = HashMap::new();
    let parallel = parallel_agents(&told.events);
    for request in &told.requests {
        if let Some(before) = last.insert(request.agent.as_str(), request) {
            if before.system != request.system || before.tools != request.tools {
                complaints.push(format!(
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
                complaints.push(format!(
                    "the beginning of {}'s request changed",
                    request.agent
                ));
            }
        }
    }
    complaints
}

/// The messages of a request without the reminder after an empty reply, which is no part of the log.
fn messages_without_reminder(request: &ModelRequest) -> &[Message] {
    match request.messages.split_last() {
        Some((Message::User(text), rest)) if text == markers::EMPTY_REPLY_REMINDER => rest,
        _ => &request.messages,
    }
}

/// A history that did not fit begins with a mark, one that is told in few words with those.
fn is_truncated(request: &ModelRequest) -> bool {
    let is_mark = |text: &str| {
        let marks = [
            markers::HISTORY_TRUNCATED_MARKER,
            markers::STEPS_TRUNCATED_MARKER,
            "<earlier ",
        ];
        marks.iter().any(|mark| text.starts_with(mark))
    };
    request
        .messages
        .iter()
        .any(|message| matches!(message, Message::User(text) if is_mark(text)))
}

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
