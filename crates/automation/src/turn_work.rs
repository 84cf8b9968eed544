//! Turns on behalf of runs. What an earlier attempt left in the session is continued or reused, never
//! repeated.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use jiff::SignedDuration;
use lango_domain::approval::Approver;
use lango_domain::automation::{AllowRule, Run};
use lango_domain::event::{Event, SessionId, TurnId, Update};
use lango_domain::session::{HistoryWindow, SessionKey, SessionStore};
use lango_domain::{Label, LabeledText, StoreError};
use lango_engine::{
    ApprovalRule, CallGuard, Runner, TurnBudget, TurnPermission, TurnRequest, Verdict,
};
use lango_runtime::{
    OnDisconnect, Runtime, StartTurnError, TurnHandle, TurnInput, TurnSpec, TurnTarget,
};
use serde_json::Value;

use crate::execution::{RunContext, RunOutcome};
use crate::run_meter::{BudgetRest, RunSpend};
use crate::turn_log_view::{LoggedTurn, is_turn_of};
use crate::unattended::UnattendedApprover;
use crate::workspace_teams::WorkspaceTeams;

const BUDGET_SPENT: &str = "the budget of the run is spent";
/// The wait of a run that could not start its turn.
const RETRY_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// A turn that a run asks for.
#[derive(Clone, Debug)]
pub struct TurnWork {
    pub session: SessionKey,
    /// The id of the turn: the same in every attempt, and of no other turn of the session. By it the turn of
    /// an earlier attempt is found, whatever was said in the session since.
    pub turn: TurnId,
    pub text: String,
    /// The label of the text; plain if the user wrote it.
    pub label: Label,
    /// Data next to the text, each with the source name that a model reads.
    pub context: Vec<(String, LabeledText)>,
    pub target: TurnTarget,
    /// The step of a workflow that the turn is for.
    pub step: Option<String>,
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
    pub teams: Arc<dyn WorkspaceTeams>,
}

impl TurnWorker {
    /// Runs the turn to its end, unless an earlier attempt did.
    pub async fn run(
        &self,
        run: &Run,
        work: TurnWork,
        context: &RunContext,
    ) -> Result<RunOutcome, StoreError> {
        let input = match self.find_turn(&work.session, &work.turn).await? {
            // A resumed turn would tell its model about the interrupted call, and this one has none.
            FoundTurn::Ended(turn) | FoundTurn::Unfinished(turn)
                if turn.was_call_interrupted() && self.is_single_read(run, &work) =>
            {
                TurnInput::Request(work.request(turn.repeated_id(&work.turn)))
            }
            FoundTurn::Ended(turn) => return Ok(turn.outcome()),
            FoundTurn::Unfinished(_) => TurnInput::Resume(work.session.clone()),
            FoundTurn::None => TurnInput::Request(work.request(work.turn.clone())),
        };
        let runner = match self.runner(run) {
            Ok(runner) => runner,
            Err(reason) => return Ok(RunOutcome::failed(reason)),
        };
        self.count_earlier_turns(run, &work, context).await?;
        let Some(rest) = context.meter.rest(&run.spec.budget) else {
            return Ok(RunOutcome::failed(BUDGET_SPENT));
        };
        let spec = TurnSpec {
            target: work.target.clone(),
            // Without the run, such as after the loss of the lease, the turn must not go on.
            on_disconnect: OnDisconnect::Suspend,
            permission: self.permission(run, &work, context, rest),
            runner,
            ..TurnSpec::new(input)
        };
        match self.runtime.start_turn(spec) {
            Ok(turn) => self.follow(turn, run, &work, context).await,
            Err(error) => Ok(not_started(&error, context)),
        }
    }

    /// Returns the team of the run's folder; `None` if it is that of this process.
    fn runner(&self, run: &Run) -> Result<Option<Runner>, String> {
        match &run.spec.workspace {
            Some(folder) => self.teams.runner(folder),
            None => Ok(None),
        }
    }

    /// Returns true if a call has no effect in the folder of the run.
    pub fn is_read_only(&self, run: &Run, tool: &str, arguments: &Value) -> bool {
        match self.runner(run) {
            Ok(Some(runner)) => runner.is_read_only(tool, arguments),
            Ok(None) => self.runtime.is_read_only(tool, arguments),
            Err(_) => false,
        }
    }

    /// Returns true for a turn that consists of one call, if that call has no effect.
    fn is_single_read(&self, run: &Run, work: &TurnWork) -> bool {
        match &work.target {
            TurnTarget::Call { tool, arguments } => self.is_read_only(run, tool, arguments),
            TurnTarget::Team | TurnTarget::Agent(_) => false,
        }
    }

    /// Returns true if the log of a session tells how far a turn came: every call in it has a result or has
    /// not run. Then the turn can continue without repeating an effect (B122).
    pub async fn is_progress_known(
        &self,
        session: &SessionKey,
        turn: &TurnId,
    ) -> Result<bool, StoreError> {
        Ok(match self.find_turn(session, turn).await? {
            FoundTurn::Ended(turn) | FoundTurn::Unfinished(turn) => !turn.was_call_interrupted(),
            // A log without the turn tells nothing: someone may have deleted it.
            FoundTurn::None => false,
        })
    }

    async fn follow(
        &self,
        mut turn: TurnHandle,
        run: &Run,
        work: &TurnWork,
        context: &RunContext,
    ) -> Result<RunOutcome, StoreError> {
        let (mut is_cancelled, mut is_over_budget) = (false, false);
        loop {
            tokio::select! {
                update = turn.next() => match update {
                    Some(Update::StoreFailed(error)) => return Err(error),
                    Some(Update::Event(event)) => {
                        context.meter.add(&event);
                        // Other turns of the run spend from the same budget.
                        if !is_over_budget && context.meter.rest(&run.spec.budget).is_none() {
                            is_over_budget = !event.body.is_turn_end();
                            turn.cancel();
                        }
                    }
                    Some(_) => {}
                    None => break,
                },
                () = context.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    turn.cancel();
                }
                // Dropping the turn suspends it; the log has the rest.
                () = context.suspend.cancelled() => return Ok(RunOutcome::Suspended),
                () = context.lease_lost.cancelled() => return Err(StoreError::LeaseLost),
            }
        }
        Ok(match self.find_turn(&work.session, &work.turn).await? {
            FoundTurn::Ended(ended) => match ended.outcome() {
                RunOutcome::Cancelled if is_over_budget && !is_cancelled => {
                    RunOutcome::failed(BUDGET_SPENT)
                }
                outcome => outcome,
            },
            _ if self.runtime.suspend_turns().is_cancelled() => RunOutcome::Suspended,
            _ => waiting("its turn has no end yet", context),
        })
    }

    /// Finds the turn of some work in the log of its session: the last one, if it was repeated.
    async fn find_turn(
        &self,
        session: &SessionKey,
        turn: &TurnId,
    ) -> Result<FoundTurn, StoreError> {
        let last = HistoryWindow::Recent { bytes: 0 };
        let mut events = self.sessions.load(session.as_ref(), last).await?;
        let is_last = match events.last() {
            None => return Ok(FoundTurn::None),
            Some(event) => is_turn_of(&event.turn, turn),
        };
        if !is_last {
            let all = HistoryWindow::Everything;
            events = self.sessions.load(session.as_ref(), all).await?;
        }
        let own = events.iter().rfind(|event| is_turn_of(&event.turn, turn));
        let Some(own) = own.map(|event| event.turn.clone()) else {
            return Ok(FoundTurn::None);
        };
        events.retain(|event| event.turn == own);
        let found = LoggedTurn(events);
        Ok(match found.has_ended() || !is_last {
            true => FoundTurn::Ended(found),
            false => FoundTurn::Unfinished(found),
        })
    }

    /// Counts what the run has spent before, once in every attempt.
    async fn count_earlier_turns(
        &self,
        run: &Run,
        work: &TurnWork,
        context: &RunContext,
    ) -> Result<(), StoreError> {
        let budget = run.spec.budget;
        if context.meter.is_started() || (budget.tokens.is_none() && budget.usd.is_none()) {
            return Ok(());
        }
        let steps = context.store.steps(&run.principal, run.id).await?;
        let mut sessions: BTreeSet<SessionId> =
            steps.into_iter().filter_map(|step| step.session).collect();
        sessions.insert(work.session.session.clone());
        let mut spent = RunSpend::default();
        for session in sessions {
            let key = SessionKey {
                session,
                principal: run.principal.clone(),
            };
            let events = self
                .sessions
                .load(key.as_ref(), HistoryWindow::Everything)
                .await?;
            // Of a session with other turns, only this one counts.
            let is_own = |event: &&Arc<Event>| work.step.is_some() || event.turn == work.turn;
            events
                .iter()
                .filter(is_own)
                .for_each(|event| spent.add(event));
        }
        context.meter.start(spent);
        Ok(())
    }

    fn permission(
        &self,
        run: &Run,
        work: &TurnWork,
        context: &RunContext,
        rest: BudgetRest,
    ) -> TurnPermission {
        let approver = UnattendedApprover {
            inner: self.approver.clone(),
            run: Arc::new(run.clone()),
            step: work.step.clone(),
            context: context.clone(),
            wait: self.approval_wait,
        };
        let seconds = run.spec.timeout.map(|timeout| timeout.as_secs().max(1));
        TurnPermission {
            approver: Some(Arc::new(approver)),
            approval_wait: Some(self.approval_wait),
            rules: approval_rules(&run.spec.allow)
                .chain(work.call_rule())
                .collect(),
            budget: TurnBudget {
                tokens: rest.tokens,
                usd: rest.usd,
                seconds: seconds.and_then(|seconds| NonZeroU64::new(seconds.unsigned_abs())),
            },
            guard: Some(Arc::new(LeaseGuard(context.clone()))),
        }
    }
}

/// The turn of the work in the log of its session.
enum FoundTurn {
    None,
    /// The last turn of the session, without an end.
    Unfinished(LoggedTurn),
    Ended(LoggedTurn),
}

/// Lets a call start only while the process holds the lease. Another process may do the work already (B120).
struct LeaseGuard(RunContext);

impl CallGuard for LeaseGuard {
    fn may_start(&self) -> BoxFuture<'_, bool> {
        async move {
            let RunContext { store, lease, .. } = &self.0;
            let is_held = match store.lease().await {
                Ok(last) => last.is_some_and(|last| last.number == *lease),
                Err(error) => {
                    tracing::warn!(%error, "the lease cannot be checked, so a call is not started");
                    return false;
                }
            };
            if !is_held {
                self.0.lease_lost.cancel();
            }
            is_held
        }
        .boxed()
    }
}

impl TurnWork {
    fn request(&self, turn: TurnId) -> TurnRequest {
        let SessionKey { session, principal } = self.session.clone();
        TurnRequest {
            label: self.label.clone(),
            context: self.context.clone(),
            turn: Some(turn),
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
