//! Recovery of an unfinished turn: finds the events that complete its log (B73).

use std::collections::BTreeSet;
use std::sync::Arc;

use lango_domain::event::{
    ApprovalState, Author, Branch, CallId, Event, EventBody, ToolCode, TransferOutcome, TurnId,
};
use lango_domain::failure::{FailureCode, NotDoneReason};
use lango_domain::markers::CALL_NOT_RUN;
use lango_domain::{AgentName, Content, Safety};

use crate::not_done::ended_denied;
use crate::turn_log::LogEntry;

/// The last turn of a log, if it has no end.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfinishedTurn {
    pub turn: TurnId,
    /// The text of the user's request.
    pub request: String,
    /// True if the turn has an answer, so that only its end is missing.
    pub is_answered: bool,
    /// Set if the last calls were denied.
    pub(crate) denied: Option<NotDoneReason>,
    /// The number of delegations so far.
    pub(crate) delegations: usize,
    /// The results of its open calls, by the callers.
    pub(crate) closing_entries: Vec<LogEntry>,
}

/// Finds an unfinished turn at the end of a log. `safety` returns the safety level of an agent's
/// tool, and `is_remote` tells agents of other machines.
pub(crate) fn find_unfinished_turn(
    log: &[Arc<Event>],
    safety: impl Fn(&Author, &str) -> Safety,
    is_remote: impl Fn(&AgentName) -> bool,
) -> Option<UnfinishedTurn> {
    let turn = log.last()?.turn.clone();
    let turn_events = log.iter().filter(|event| event.turn == turn);
    let events: Vec<&Event> = turn_events.map(|event| &**event).collect();
    if events.iter().any(|event| event.body.is_turn_end()) {
        return None;
    }
    let request = events.iter().find_map(|event| match &event.body {
        EventBody::User(Content { text, .. }) => Some(text.clone()),
        _ => None,
    })?;
    let closing_entries = close_open_calls(&events, safety, is_remote);
    let delegations = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::Transfer { .. }))
        .count();
    let is_answered = events
        .iter()
        .any(|event| matches!(event.body, EventBody::Answer(_)));
    Some(UnfinishedTurn {
        denied: ended_denied(log, &turn),
        turn,
        request,
        is_answered,
        delegations,
        closing_entries,
    })
}

impl UnfinishedTurn {
    /// Returns the event that ends the turn if it is not resumed.
    pub(crate) fn closing_body(&self) -> EventBody {
        if self.is_answered {
            return EventBody::TurnDone {
                reason: self.denied,
            };
        }
        EventBody::TurnFailed {
            code: FailureCode::Interrupted,
            message: "Lango stopped before this turn ended; open calls were closed as interrupted."
                .to_owned(),
            hint: "Ask again, but first check whether the interrupted calls took effect."
                .to_owned(),
        }
    }
}

/// Returns the results of all open calls. The innermost come first, so that a delegation is closed
/// after the calls in it.
fn close_open_calls(
    events: &[&Event],
    safety: impl Fn(&Author, &str) -> Safety,
    is_remote: impl Fn(&AgentName) -> bool,
) -> Vec<LogEntry> {
    let closed: BTreeSet<&CallId> = events
        .iter()
        .filter_map(|event| result_id(&event.body))
        .collect();
    let mut entries = Vec::new();
    for event in events.iter().rev() {
        let body = match &event.body {
            EventBody::ToolCall { id, tool, .. } if !closed.contains(id) => {
                let unanswered = unanswered_approval(events, id);
                if let Some(level) = unanswered {
                    entries.push(LogEntry::plain(
                        event.author.clone(),
                        event.branch.clone(),
                        EventBody::Approval {
                            id: id.clone(),
                            tool: tool.clone(),
                            level,
                            state: ApprovalState::Interrupted,
                            shows: String::new(),
                            tainted_by: Vec::new(),
                            by: None,
                            grant: None,
                        },
                    ));
                }
                match unanswered {
                    Some(_) => interrupted_result(id, CALL_NOT_RUN),
                    None => interrupted_result(id, interruption(safety(&event.author, tool))),
                }
            }
            EventBody::Transfer { id, to, into, .. } if !closed.contains(id) => {
                let (outcome, mut detail) = branch_outcome(events, into);
                // What a remote agent did is not in the log.
                let can_start_again = !is_remote(to) && has_run_nothing(events, into);
                if outcome == TransferOutcome::Cancelled && can_start_again {
                    detail = CALL_NOT_RUN.to_owned();
                }
                EventBody::TransferResult {
                    id: id.clone(),
                    outcome,
                    detail,
                    thread: None,
                }
            }
            _ => continue,
        };
        // Everything done in a delegation taints its result.
        let label = event.label().into_owned();
        entries.push(LogEntry {
            label,
            ..LogEntry::plain(event.author.clone(), event.branch.clone(), body)
        });
    }
    entries
}

fn result_id(body: &EventBody) -> Option<&CallId> {
    match body {
        EventBody::ToolResult { id, .. } | EventBody::TransferResult { id, .. } => Some(id),
        _ => None,
    }
}

/// Returns the safety level of a call whose approval question was never answered.
fn unanswered_approval(events: &[&Event], call: &CallId) -> Option<Safety> {
    last_approval(events, call)
        .filter(|(_, state)| *state == ApprovalState::Asked)
        .map(|(level, _)| level)
}

/// Returns true if a call waits for an answer, or is closed as one that did not run.
fn has_not_run(events: &[&Event], call: &CallId) -> bool {
    let error = events.iter().rev().find_map(|event| match &event.body {
        EventBody::ToolResult { id, error, .. } if id == call => Some(error.as_deref()),
        _ => None,
    });
    match error {
        Some(error) => error == Some(CALL_NOT_RUN),
        None => unanswered_approval(events, call).is_some(),
    }
}

/// Returns true if every call of a turn that has no end either has a result or has not run. So nothing in it
/// has an unknown effect.
pub fn has_known_effects(turn: &[Arc<Event>]) -> bool {
    let events: Vec<&Event> = turn.iter().map(|event| &**event).collect();
    let mut calls = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCall { id, .. } => Some(id),
        _ => None,
    });
    let has_result = |call: &CallId| {
        events
            .iter()
            .any(|event| result_id(&event.body) == Some(call))
    };
    calls.all(|call| has_result(call) || has_not_run(&events, call))
}

fn last_approval(events: &[&Event], call: &CallId) -> Option<(Safety, ApprovalState)> {
    events.iter().rev().find_map(|event| match &event.body {
        EventBody::Approval {
            id, level, state, ..
        } if id == call => Some((*level, *state)),
        _ => None,
    })
}

/// Returns true if no call of a branch has run, or none was made. So the work in it can start again, unless
/// its agent is remote.
pub(crate) fn has_run_nothing(events: &[&Event], branch: &Branch) -> bool {
    let mut of_branch = events.iter().filter(|event| event.branch == *branch);
    of_branch.all(|event| match &event.body {
        EventBody::ToolCall { id, .. } => has_not_run(events, id),
        EventBody::Transfer { .. } => false,
        _ => true,
    })
}

fn interruption(safety: Safety) -> &'static str {
    match safety {
        Safety::Safe => "interrupted: it changes nothing and may be called again",
        Safety::Moderate | Safety::Dangerous => {
            "interrupted: whether it took effect is not known; look before doing it again"
        }
    }
}

fn interrupted_result(id: &CallId, error: &str) -> EventBody {
    EventBody::ToolResult {
        id: id.clone(),
        ok: false,
        content: String::new(),
        attachments: Vec::new(),
        error: Some(error.to_owned()),
        code: Some(ToolCode::Interrupted),
        untrusted: false,
        advice: None,
    }
}

/// Returns the outcome of the work in a branch, or "interrupted" if it has none.
fn branch_outcome(events: &[&Event], branch: &Branch) -> (TransferOutcome, String) {
    let outcome = events
        .iter()
        .filter(|event| event.branch == *branch)
        .find_map(|event| match &event.body {
            EventBody::Answer(_) | EventBody::Report(_) => {
                Some((TransferOutcome::Answered, String::new()))
            }
            EventBody::Rejected { reason } => Some((TransferOutcome::Rejected, reason.clone())),
            _ => None,
        });
    outcome.unwrap_or((TransferOutcome::Cancelled, "interrupted".to_owned()))
}
