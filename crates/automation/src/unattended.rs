//! Approval questions of turns that no one watches. Every question is a row of its own, so that an answer
//! is for one call and no other (B121).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use lango_domain::StoreError;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::automation::{Run, RunStep, StepDecision, StepState};
use lango_domain::event::Decider;
use lango_text::sanitize::truncated_line;
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::execution::RunContext;
use crate::run_report::question_notices;

const MAX_SHOWN_CHARS: usize = 500;
/// The beginning of the id of a row in which a question waits.
pub const APPROVAL_PREFIX: &str = "approval:";
/// The interval at which the answer of another process is looked for.
const ANSWER_INTERVAL: Duration = Duration::from_secs(2);

/// Shows a question as the state of its run, and tells the user, while it waits for an answer.
#[derive(Clone)]
pub(crate) struct UnattendedApprover {
    pub inner: Option<Arc<dyn Approver>>,
    pub run: Arc<Run>,
    /// The step of a workflow whose turn asks.
    pub step: Option<String>,
    pub context: RunContext,
    pub wait: Duration,
}

impl Approver for UnattendedApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let asking = self.clone();
        async move {
            let row = match asking.announce(&question).await {
                Ok(row) => row,
                Err(error) => return asking.not_announced(&error).await,
            };
            let mut waiting = WaitingQuestion {
                asking: asking.clone(),
                row: Some(row.clone()),
            };
            // A client of this process or another process answers. The engine ends the wait.
            let stored = asking.stored_answer(&row.step);
            let answer = match &asking.inner {
                Some(inner) => tokio::select! {
                    answer = inner.ask(question) => match answer {
                        ApprovalDecision::NobodyThere => asking.stored_answer(&row.step).await,
                        answer => answer,
                    },
                    answer = stored => answer,
                },
                None => stored.await,
            };
            waiting.row = None;
            asking
                .close(answered(row, answer, asking.context.now()))
                .await;
            answer
        }
        .boxed()
    }
}

impl UnattendedApprover {
    /// Stores the question and tells the user. A question that an earlier process left open keeps its row,
    /// and with it an answer that came in between.
    async fn announce(&self, question: &ApprovalQuestion) -> Result<RunStep, StoreError> {
        let (run, context) = (&*self.run, &self.context);
        let shown = truncated_line(&question.intent.shows, MAX_SHOWN_CHARS);
        let rows = context.store.steps(&run.principal, run.id).await?;
        let call = call_fingerprint(question);
        let is_same = |row: &&RunStep| {
            row.question.as_ref() == Some(&call) && row.state == StepState::Waiting
        };
        let now = context.now();
        let left = rows.iter().find(is_same).cloned();
        let is_new = left.is_none();
        let wait = SignedDuration::try_from(self.wait).unwrap_or(SignedDuration::MAX);
        let row = RunStep {
            state: StepState::Waiting,
            started: Some(now),
            deadline: Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX)),
            reason: Some(format!("{} wants to run: {shown}", question.tool)),
            session: Some(question.session.clone()),
            question: Some(call),
            ..left.unwrap_or_else(|| RunStep::pending(run.id, self.question_id(&rows)))
        };
        let notices = match is_new {
            true => question_notices(run, &row, question, now),
            false => Vec::new(),
        };
        context.record_steps(vec![row.clone()], notices).await?;
        let reason = format!("for an approval of {}: {shown}", question.tool);
        context.record_waiting(run, &reason).await?;
        Ok(row)
    }

    /// Returns an id that the run has not used: `approval:STEP` or `approval:1`, then `approval:STEP.2` or
    /// `approval:2`. It is short because people type it.
    fn question_id(&self, rows: &[RunStep]) -> String {
        let numbered = |number: usize| match (&self.step, number) {
            (Some(step), 1) => format!("{APPROVAL_PREFIX}{step}"),
            (Some(step), number) => format!("{APPROVAL_PREFIX}{step}.{number}"),
            (None, number) => format!("{APPROVAL_PREFIX}{number}"),
        };
        let is_free = |id: &String| rows.iter().all(|row| row.step != *id);
        let mut ids = (1..=rows.len() + 1).map(numbered);
        ids.find(is_free)
            .unwrap_or_else(|| numbered(rows.len() + 2))
    }

    /// A question that cannot be stored cannot be answered. Without the lease, another process asks it.
    async fn not_announced(&self, error: &StoreError) -> ApprovalDecision {
        tracing::warn!(run = %self.run.id, %error, "a waiting question cannot be stored");
        if *error == StoreError::LeaseLost {
            self.context.lease_lost.cancel();
            return futures::future::pending().await;
        }
        ApprovalDecision::NobodyThere
    }

    /// Waits until another process stores the answer to a question.
    async fn stored_answer(&self, step: &str) -> ApprovalDecision {
        loop {
            let (run, store) = (&self.run, &self.context.store);
            let steps = store
                .steps(&run.principal, run.id)
                .await
                .unwrap_or_default();
            let row = steps.into_iter().find(|row| row.step == step);
            match row.and_then(|row| row.decision) {
                Some(StepDecision::Approve | StepDecision::Repeat) => {
                    return ApprovalDecision::Approved {
                        scope: ApprovalScope::Once,
                        by: Decider::User,
                    };
                }
                Some(StepDecision::Deny | StepDecision::Skip) => return ApprovalDecision::Denied,
                None => {}
            }
            tokio::time::sleep(ANSWER_INTERVAL).await;
        }
    }

    /// Stores the end of a question, and that the run goes on.
    async fn close(&self, row: RunStep) {
        let (run, context) = (&self.run, &self.context);
        let closed = match context.record_steps(vec![row], Vec::new()).await {
            Ok(()) => context.record_answered(run).await,
            Err(error) => Err(error),
        };
        if let Err(error) = closed {
            tracing::warn!(run = %run.id, %error, "the end of a question was not stored");
        }
    }
}

/// Identifies a call: the same call of the same turn has the same fingerprint in every process.
fn call_fingerprint(question: &ApprovalQuestion) -> String {
    let call = json!([question.session, question.tool, question.args]);
    let hash = digest(&SHA256, call.to_string().as_bytes());
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn answered(row: RunStep, answer: ApprovalDecision, now: Timestamp) -> RunStep {
    let (state, reason) = match answer {
        ApprovalDecision::Approved { .. } => (StepState::Done, "approved"),
        ApprovalDecision::Denied => (StepState::Failed, "denied"),
        ApprovalDecision::TimedOut | ApprovalDecision::NobodyThere => {
            (StepState::Failed, "not answered in time")
        }
    };
    RunStep {
        state,
        reason: Some(reason.to_owned()),
        ended: Some(now),
        ..row
    }
}

/// Closes a question that the engine gives up, so that a late answer releases no other call.
struct WaitingQuestion {
    asking: UnattendedApprover,
    /// `None` once it is answered.
    row: Option<RunStep>,
}

impl Drop for WaitingQuestion {
    fn drop(&mut self) {
        let context = &self.asking.context;
        let Some(row) = self.row.take() else {
            return;
        };
        // The next process asks it again, in the same row.
        if context.suspend.is_cancelled() || context.lease_lost.is_cancelled() {
            return;
        }
        let row = match context.cancel.is_cancelled() {
            true => RunStep {
                state: StepState::Cancelled,
                ended: Some(context.now()),
                ..row
            },
            false => answered(row, ApprovalDecision::TimedOut, context.now()),
        };
        let asking = self.asking.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { asking.close(row).await });
        }
    }
}
