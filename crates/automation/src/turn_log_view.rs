//! A turn of a run, as the log of its session has it.

use std::sync::Arc;

use lango_domain::event::{ApprovalState, Event, EventBody, ToolCode, TurnId};
use lango_domain::failure::FailureCode;
use lango_domain::markers::CALL_NOT_RUN;
use lango_engine::{SINGLE_CALL_MODEL, has_known_effects};

use crate::execution::RunOutcome;

/// Stands between the id of a turn and the number of a repetition.
const REPEATED: char = '+';

/// Returns true if a turn of the log is the one with this id, or a repetition of it.
pub(crate) fn is_turn_of(logged: &TurnId, turn: &TurnId) -> bool {
    let rest = logged.as_str().strip_prefix(turn.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(REPEATED))
}

/// The events of a turn in the log of its session.
pub(crate) struct LoggedTurn(pub Vec<Arc<Event>>);

impl LoggedTurn {
    pub fn has_ended(&self) -> bool {
        self.0.iter().any(|event| event.body.is_turn_end())
    }

    /// Returns true if a call started whose end is not known.
    pub fn was_call_interrupted(&self) -> bool {
        let is_interrupted = |event: &Arc<Event>| match &event.body {
            EventBody::ToolResult { code, error, .. } => {
                *code == Some(ToolCode::Interrupted) && error.as_deref() != Some(CALL_NOT_RUN)
            }
            _ => false,
        };
        !has_known_effects(&self.0) || self.0.iter().any(is_interrupted)
    }

    /// Returns the id of a turn that repeats this one, of the work whose first turn has the given id.
    pub fn repeated_id(&self, first: &TurnId) -> TurnId {
        let last = self.0.first().map(|event| event.turn.as_str());
        let number = last.and_then(|last| last.rsplit_once(REPEATED)?.1.parse::<u32>().ok());
        let number = number.unwrap_or(1).saturating_add(1);
        TurnId::new(format!("{first}{REPEATED}{number}"))
    }

    pub fn outcome(&self) -> RunOutcome {
        let answer = self.0.iter().rev().find_map(|event| match &event.body {
            EventBody::Answer(content) => {
                Some((content.to_plain_text(), event.label().into_owned()))
            }
            _ => None,
        });
        let (result, label) = answer.unzip();
        let label = label.unwrap_or_default();
        let failure = self.0.iter().find_map(|event| match &event.body {
            EventBody::TurnFailed {
                code,
                message,
                hint,
            } => Some((*code, format!("{message} {hint}"))),
            _ => None,
        });
        match failure {
            Some((FailureCode::Cancelled, _)) => return RunOutcome::Cancelled,
            Some((_, message)) => {
                return RunOutcome::Failed {
                    error: message.trim().to_owned(),
                    result,
                    label,
                };
            }
            None => {}
        }
        if let Some(error) = self.failed_call() {
            return RunOutcome::Failed {
                error,
                result: None,
                label,
            };
        }
        match self.unanswered_question().or_else(|| self.not_done()) {
            Some(error) => RunOutcome::Failed {
                error,
                result,
                label,
            },
            None => RunOutcome::Done {
                result: result.unwrap_or_default(),
                label,
            },
        }
    }

    /// Returns the error of a turn that consists of one call. Such a turn answers with the error.
    fn failed_call(&self) -> Option<String> {
        let is_single = self.0.iter().any(|event| match &event.body {
            EventBody::Usage(usage) => usage.model == SINGLE_CALL_MODEL,
            _ => false,
        });
        // The last one counts: a call that had not run when the process ended was made again.
        let failed = self.0.iter().rev().find_map(|event| match &event.body {
            EventBody::ToolResult { ok: true, .. } => Some(None),
            EventBody::ToolResult { error, .. } => Some(error.clone()),
            _ => None,
        });
        let failed = failed.flatten();
        failed.filter(|_| is_single)
    }

    /// Returns what the turn asked for and no one answered. A turn that went on without it did not do all
    /// that its run is for (B121).
    fn unanswered_question(&self) -> Option<String> {
        let refused = self.0.iter().find_map(|event| match &event.body {
            EventBody::Approval {
                id,
                tool,
                state: ApprovalState::TimedOut | ApprovalState::NobodyThere,
                ..
            } => Some((id, tool)),
            _ => None,
        });
        // The process ended while the question waited. It counts if the agent did not ask again.
        let left = || {
            let mut events = self.0.iter().enumerate();
            events.find_map(|(at, event)| match &event.body {
                EventBody::Approval {
                    id,
                    tool,
                    state: ApprovalState::Interrupted,
                    ..
                } if !self.is_decided_after(at, tool) => Some((id, tool)),
                _ => None,
            })
        };
        let what = match refused {
            Some(_) => "A call was not allowed when the job was created, and nobody approved it",
            None => "Lango stopped before a call was approved, and the agent did not make it again",
        };
        let (call, tool) = refused.or_else(left)?;
        let shown = self.0.iter().find_map(|event| match &event.body {
            EventBody::Approval { id, shows, .. } if id == call && !shows.is_empty() => {
                Some(format!("{tool}: {shows}"))
            }
            _ => None,
        });
        let shown = shown.unwrap_or_else(|| tool.clone());
        Some(format!("{what}: {shown}"))
    }

    /// Returns why the answer is not what the run is for. Such a run has failed, so that it is not silent.
    fn not_done(&self) -> Option<String> {
        let reason = self.0.iter().find_map(|event| match &event.body {
            EventBody::TurnDone { reason } => *reason,
            _ => None,
        });
        reason.map(|reason| format!("Not done: {}.", reason.description()))
    }

    fn is_decided_after(&self, at: usize, called: &str) -> bool {
        self.0.iter().skip(at).any(|event| {
            matches!(&event.body, EventBody::Approval {
                tool,
                state: ApprovalState::Approved | ApprovalState::Denied,
                ..
            } if tool == called)
        })
    }
}

#[cfg(test)]
mod tests {
    use lango_domain::event::SessionId;
    use lango_testkit::conformance::{new_event, user_request};

    use super::*;

    fn logged(turn: &str) -> LoggedTurn {
        let event = new_event(turn, user_request("look"));
        let session = SessionId::new("of the step");
        LoggedTurn(vec![Arc::new(event.into_event(session, 1))])
    }

    /// B122: each repetition has an id of its own, and is found as a turn of the same work.
    #[test]
    fn repetitions_are_turns_of_the_same_work() {
        let turn = TurnId::new("workflow-1-a-7-1");
        let second = logged(turn.as_str()).repeated_id(&turn);
        let third = logged(second.as_str()).repeated_id(&turn);
        assert_eq!(third.as_str(), "workflow-1-a-7-1+3");
        for own in [&turn, &second, &third] {
            assert!(is_turn_of(own, &turn), "{own}");
        }
        assert!(!is_turn_of(&TurnId::new("workflow-1-a-7-12"), &turn));
    }
}
