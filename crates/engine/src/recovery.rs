//! A turn that its process did not finish: what is left to say about it, so that the log is whole again (B73).

use std::collections::BTreeSet;
use std::sync::Arc;

use lango_domain::Safety;
use lango_domain::event::{
    ApprovalState, Author, Branch, CallId, Event, EventBody, ToolCode, TransferOutcome, TurnId,
};
use lango_domain::failure::FailureCode;

use crate::turn_log::LogEntry;

/// The last turn of a log that has no end.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfinishedTurn {
    pub turn: TurnId,
    /// What the user asked for.
    pub request: String,
    /// Whether an answer had been given already, so that only the end was missing.
    pub is_answered: bool,
    /// How many delegations it had begun.
    pub(crate) delegations: usize,
    /// What closes the calls that were open, each under its caller's name.
    pub(crate) closing_entries: Vec<LogEntry>,
}

/// Looks for an unfinished turn at the end of a log; `safety` says how much harm a tool of an agent can do.
pub(crate) fn find_unfinished_turn(
    log: &[Arc<Event>],
    safety: impl Fn(&Author, &str) -> Safety,
) -> Option<UnfinishedTurn> {
    let turn = log.last()?.turn.clone();
    let events: Vec<&Event> = log
        .iter()
        .map(|event| &**event)
        .filter(|event| event.turn == turn)
        .collect();
    if events.iter().any(|event| {
        matches!(
            event.body,
            EventBody::TurnDone | EventBody::TurnFailed { .. }
        )
    }) {
        return None;
    }
    let request = events.iter().find_map(|event| match &event.body {
        EventBody::User { text } => Some(text.clone()),
        _ => None,
    })?;
    let closings = close_open_calls(&events, safety);
    let delegations = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::Transfer { .. }))
        .count();
    let is_answered = events
        .iter()
        .any(|event| matches!(event.body, EventBody::Answer { .. }));
    Some(UnfinishedTurn {
        turn,
        request,
        is_answered,
        delegations,
        closing_entries: closings,
    })
}

impl UnfinishedTurn {
    /// The end that such a turn gets when nobody goes on with it.
    pub(crate) fn closing_body(&self) -> EventBody {
        if self.is_answered {
            return EventBody::TurnDone;
        }
        EventBody::TurnFailed {
            code: FailureCode::Interrupted,
            message:
                "Lango was ended before this turn was; what was open is closed as interrupted."
                    .to_owned(),
            hint: "Ask again; look first whether what was interrupted took effect.".to_owned(),
        }
    }
}

/// Inner work first, so that a delegation is closed behind what happened in it.
fn close_open_calls(events: &[&Event], safety: impl Fn(&Author, &str) -> Safety) -> Vec<LogEntry> {
    let closed: BTreeSet<&CallId> = events
        .iter()
        .filter_map(|event| result_id(&event.body))
        .collect();
    let mut closings = Vec::new();
    for event in events.iter().rev() {
        let body = match &event.body {
            EventBody::ToolCall { id, tool, .. } if !closed.contains(id) => {
                if let Some(level) = unanswered_approval(events, id) {
                    let (id, tool, state) = (id.clone(), tool.clone(), ApprovalState::Interrupted);
                    let (shows, by, grant) = (String::new(), None, None);
                    closings.push(LogEntry::plain(
                        event.author.clone(),
                        event.branch.clone(),
                        EventBody::Approval {
                            id,
                            tool,
                            level,
                            state,
                            shows,
                            tainted_by: Vec::new(),
                            by,
                            grant,
                        },
                    ));
                }
                interrupted_result(id, safety(&event.author, tool))
            }
            EventBody::Transfer { id, into, .. } if !closed.contains(id) => {
                let (outcome, detail) = branch_outcome(events, into);
                EventBody::TransferResult {
                    id: id.clone(),
                    outcome,
                    detail,
                    thread: None,
                }
            }
            _ => continue,
        };
        // What was done until then flows into a delegation's result.
        let label = event.label().into_owned();
        closings.push(LogEntry {
            label,
            ..LogEntry::plain(event.author.clone(), event.branch.clone(), body)
        });
    }
    closings
}

fn result_id(body: &EventBody) -> Option<&CallId> {
    match body {
        EventBody::ToolResult { id, .. } | EventBody::TransferResult { id, .. } => Some(id),
        _ => None,
    }
}

/// Whether a question about the call was never answered.
fn unanswered_approval(events: &[&Event], call: &CallId) -> Option<Safety> {
    let last = events.iter().rev().find_map(|event| match &event.body {
        EventBody::Approval {
            id, level, state, ..
        } if id == call => Some((*level, *state)),
        _ => None,
    });
    last.filter(|(_, state)| *state == ApprovalState::Asked)
        .map(|(level, _)| level)
}

fn interrupted_result(id: &CallId, safety: Safety) -> EventBody {
    let what = match safety {
        Safety::Safe => "interrupted: it changes nothing and may be called again",
        Safety::Moderate | Safety::Dangerous => {
            "interrupted: whether it took effect is not known; look before doing it again"
        }
    };
    let (content, error, code) = (
        String::new(),
        Some(what.to_owned()),
        Some(ToolCode::Interrupted),
    );
    EventBody::ToolResult {
        id: id.clone(),
        ok: false,
        content,
        error,
        code,
        untrusted: false,
        advice: None,
    }
}

/// How the work in a branch had ended, if it had.
fn branch_outcome(events: &[&Event], branch: &Branch) -> (TransferOutcome, String) {
    let ended = events
        .iter()
        .filter(|event| event.branch == *branch)
        .find_map(|event| match &event.body {
            EventBody::Answer { .. } | EventBody::Report { .. } => {
                Some((TransferOutcome::Answered, String::new()))
            }
            EventBody::Rejected { reason } => Some((TransferOutcome::Rejected, reason.clone())),
            _ => None,
        });
    ended.unwrap_or((TransferOutcome::Cancelled, "interrupted".to_owned()))
}
