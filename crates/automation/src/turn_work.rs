//! Turns on behalf of runs. What an earlier attempt left in the session is continued or reused, never
//! repeated.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use lango_domain::approval::Approver;
use lango_domain::automation::{AllowRule, Run, RunSpec};
use lango_domain::event::{ApprovalState, CallId, Event, EventBody, ToolCode, Update};
use lango_domain::failure::FailureCode;
use lango_domain::session::{HistoryWindow, SessionKey, SessionStore};
use lango_domain::{Label, LabeledText, StoreError};
use lango_engine::{
    ApprovalRule, SINGLE_CALL_MODEL, TurnBudget, TurnPermission, TurnRequest, Verdict,
};
use lango_runtime::{
    OnDisconnect, Runtime, StartTurnError, TurnHandle, TurnInput, TurnSpec, TurnTarget,
};

use crate::execution::{RunContext, RunOutcome};
use crate::unattended::UnattendedApprover;

/// The wait of a run that could not start its turn.
const RETRY_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// A turn that a run asks for.
#[derive(Clone, Debug)]
pub struct TurnWork {
    pub session: SessionKey,
    pub text: String,
    /// The label of the text; plain if the user wrote it.
    pub label: Label,
    /// Data next to the text, each with the source name that a model reads.
    pub context: Vec<(String, LabeledText)>,
    pub target: TurnTarget,
    /// In a session with other turns: the turn of this work is not older. `None` if the session is for this
    /// work alone.
    pub not_before: Option<Timestamp>,
    /// True if the user allowed the call of a turn that consists of one call. Without effect on others.
    pub is_allowed: bool,
}

/// Runs turns for runs.
#[derive(Clone)]
pub struct TurnWorker {
    pub runtime: Runtime,
    pub sessions: Arc<dyn SessionStore>,
    /// Answers questions about calls that the run's permission does not cover. `None` if no one can.
    pub approver: Option<Arc<dyn Approver>>,
    pub approval_wait: Duration,
}

impl TurnWorker {
    /// Runs the turn to its end, unless an earlier attempt did.
    pub async fn run(
        &self,
        run: &Run,
        work: TurnWork,
        context: &RunContext,
    ) -> Result<RunOutcome, StoreError> {
        let input = match self.last_turn(&work).await? {
            // A resumed turn would tell its model about the interrupted call, and this one has none.
            Some(turn) if turn.was_call_interrupted() && self.is_read_only(&work) => {
                TurnInput::Request(work.request())
            }
            Some(turn) if turn.has_ended() => return Ok(turn.outcome()),
            Some(_) => TurnInput::Resume(work.session.clone()),
            None => TurnInput::Request(work.request()),
        };
        let spec = TurnSpec {
            target: work.target.clone(),
            on_disconnect: OnDisconnect::Continue,
            permission: self.permission(run, &work, context),
            ..TurnSpec::new(input)
        };
        match self.runtime.start_turn(spec) {
            Ok(turn) => self.follow(turn, &work, context).await,
            Err(error) => Ok(not_started(&error, context)),
        }
    }

    async fn follow(
        &self,
        mut turn: TurnHandle,
        work: &TurnWork,
        context: &RunContext,
    ) -> Result<RunOutcome, StoreError> {
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                update = turn.next() => match update {
                    Some(Update::StoreFailed(error)) => return Err(error),
                    Some(_) => {}
                    None => break,
                },
                () = context.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    turn.cancel();
                }
                // The turn goes on until the runtime suspends it; the log has the rest.
                () = context.suspend.cancelled() => return Ok(RunOutcome::Suspended),
            }
        }
        Ok(match self.last_turn(work).await? {
            Some(ended) if ended.has_ended() => ended.outcome(),
            _ if self.runtime.suspend_turns().is_cancelled() => RunOutcome::Suspended,
            _ => waiting("its turn has no end yet", context),
        })
    }

    /// Returns true for a turn that consists of one call, if that call has no effect.
    fn is_read_only(&self, work: &TurnWork) -> bool {
        match &work.target {
            TurnTarget::Call { tool, arguments } => self.runtime.is_read_only(tool, arguments),
            TurnTarget::Team | TurnTarget::Agent(_) => false,
        }
    }

    /// Returns true if the log of a session tells how far its last turn came: no call was interrupted. Then
    /// the turn can continue without repeating an effect.
    pub async fn is_progress_known(&self, session: &SessionKey) -> Result<bool, StoreError> {
        let turn = self.load_last_turn(session).await?;
        // A log without a turn tells nothing: someone may have deleted it.
        Ok(turn.is_some_and(|turn| !turn.was_call_interrupted()))
    }

    /// Returns the last turn of the session, if it is the one of this work.
    async fn last_turn(&self, work: &TurnWork) -> Result<Option<LoggedTurn>, StoreError> {
        let turn = self.load_last_turn(&work.session).await?;
        Ok(turn.filter(|turn| turn.is_for(work)))
    }

    async fn load_last_turn(&self, session: &SessionKey) -> Result<Option<LoggedTurn>, StoreError> {
        let window = HistoryWindow::Recent { bytes: 0 };
        let events = self.sessions.load(session.as_ref(), window).await?;
        let Some(last) = events.last() else {
            return Ok(None);
        };
        let of_turn = events.iter().filter(|event| event.turn == last.turn);
        Ok(Some(LoggedTurn(of_turn.cloned().collect())))
    }

    fn permission(&self, run: &Run, work: &TurnWork, context: &RunContext) -> TurnPermission {
        let approver = UnattendedApprover {
            inner: self.approver.clone(),
            run: Arc::new(run.clone()),
            context: context.clone(),
        };
        TurnPermission {
            approver: Some(Arc::new(approver)),
            approval_wait: Some(self.approval_wait),
            rules: approval_rules(&run.spec.allow)
                .chain(work.call_rule())
                .collect(),
            budget: budget(&run.spec),
            guard: None,
        }
    }
}

impl TurnWork {
    fn request(&self) -> TurnRequest {
        let SessionKey { session, principal } = self.session.clone();
        TurnRequest {
            label: self.label.clone(),
            context: self.context.clone(),
            ..TurnRequest::from_user(session, principal, self.text.clone())
        }
    }

    /// Returns the rule for the call that the user allowed. The turn makes no other call, so the rule names
    /// only the tool.
    fn call_rule(&self) -> Option<ApprovalRule> {
        match &self.target {
            TurnTarget::Call { tool, .. } if self.is_allowed => Some(ApprovalRule {
                tool: tool.clone(),
                matches: None,
                decision: Verdict::Auto,
            }),
            _ => None,
        }
    }
}

/// The events of a turn in the log of its session.
struct LoggedTurn(Vec<Arc<Event>>);

impl LoggedTurn {
    fn is_for(&self, work: &TurnWork) -> bool {
        self.0.iter().any(|event| match &event.body {
            EventBody::User(content) => {
                content.text == work.text && work.not_before.is_none_or(|time| event.at >= time)
            }
            _ => false,
        })
    }

    fn has_ended(&self) -> bool {
        self.0.iter().any(|event| {
            matches!(
                event.body,
                EventBody::TurnDone | EventBody::TurnFailed { .. }
            )
        })
    }

    /// Returns true if a call started whose end is not known.
    fn was_call_interrupted(&self) -> bool {
        let is_known = |call: &CallId| {
            self.0.iter().any(|event| match &event.body {
                EventBody::ToolResult { id, code, .. } => {
                    id == call && *code != Some(ToolCode::Interrupted)
                }
                _ => false,
            })
        };
        self.0.iter().any(|event| match &event.body {
            EventBody::ToolCall { id, .. } => !is_known(id),
            _ => false,
        })
    }

    fn outcome(&self) -> RunOutcome {
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
        match self.unanswered_question() {
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
        let failed = self.0.iter().find_map(|event| match &event.body {
            EventBody::ToolResult {
                ok: false, error, ..
            } => error.clone(),
            _ => None,
        });
        failed.filter(|_| is_single)
    }

    /// Returns what the turn asked for and no one answered. A turn that went on without it did not do all
    /// that its run is for (B121).
    fn unanswered_question(&self) -> Option<String> {
        let unanswered = self.0.iter().find_map(|event| match &event.body {
            EventBody::Approval {
                id,
                tool,
                state: ApprovalState::TimedOut | ApprovalState::NobodyThere,
                ..
            } => Some((id.clone(), tool.clone())),
            _ => None,
        });
        let (call, tool) = unanswered?;
        let shown = self.0.iter().find_map(|event| match &event.body {
            EventBody::Approval { id, shows, .. } if *id == call && !shows.is_empty() => {
                Some(format!("{tool}: {shows}"))
            }
            _ => None,
        });
        let shown = shown.unwrap_or(tool);
        Some(format!(
            "A call was not allowed when the job was created, and nobody approved it: {shown}"
        ))
    }
}

fn not_started(error: &StartTurnError, context: &RunContext) -> RunOutcome {
    match error {
        StartTurnError::ShuttingDown => RunOutcome::Suspended,
        StartTurnError::TooMany(_) => waiting("too many turns are running", context),
        StartTurnError::UnknownAgent(_) | StartTurnError::UnknownTool(_) => {
            RunOutcome::failed(error.to_string())
        }
    }
}

fn waiting(reason: &str, context: &RunContext) -> RunOutcome {
    let now = context.now();
    RunOutcome::Waiting {
        reason: reason.to_owned(),
        resume_at: now.saturating_add(RETRY_WAIT).unwrap_or(now),
    }
}

/// Returns the rules of a run as the engine reads them.
pub(crate) fn approval_rules(rules: &[AllowRule]) -> impl Iterator<Item = ApprovalRule> {
    rules.iter().map(|rule| ApprovalRule {
        tool: rule.tool.clone(),
        matches: rule.subject.clone(),
        decision: Verdict::Auto,
    })
}

fn budget(spec: &RunSpec) -> TurnBudget {
    let seconds = spec.timeout.map(|timeout| timeout.as_secs().max(1));
    TurnBudget {
        tokens: spec.budget.tokens.and_then(NonZeroU64::new),
        usd: spec.budget.usd,
        seconds: seconds.and_then(|seconds| NonZeroU64::new(seconds.unsigned_abs())),
    }
}
