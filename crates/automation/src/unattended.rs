//! Approval questions of turns that no one watches.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::automation::{
    DeliveryMessage, DeliveryOccasion, NewDelivery, Run, RunStep, StepDecision, StepState,
};
use lango_domain::event::Decider;
use lango_domain::{Label, StoreError};
use lango_text::sanitize::truncated_line;

use crate::execution::RunContext;
use crate::run_report::failure_targets;

const MAX_SHOWN_CHARS: usize = 500;
/// The beginning of the id of a row in which a question waits.
pub const APPROVAL_PREFIX: &str = "approval:";
/// The interval at which the answer of another process is looked for.
const ANSWER_INTERVAL: Duration = Duration::from_secs(2);

/// Shows a question as the state of its run, and tells the user, while it waits for an answer.
pub(crate) struct UnattendedApprover {
    pub inner: Option<Arc<dyn Approver>>,
    pub run: Arc<Run>,
    pub context: RunContext,
}

impl Approver for UnattendedApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let inner = self.inner.clone();
        let (run, context) = (Arc::clone(&self.run), self.context.clone());
        async move {
            if let Err(error) = announce(&run, &context, &question).await {
                tracing::warn!(run = %run.id, %error, "a waiting question cannot be stored");
            }
            let step = approval_step(&question);
            let _waiting = WaitingQuestion {
                run: Arc::clone(&run),
                context: context.clone(),
            };
            // A client of this process or another process answers. The engine ends the wait.
            let stored = stored_answer(&run, &context, &step);
            let answer = match inner {
                Some(inner) => tokio::select! {
                    answer = inner.ask(question) => match answer {
                        ApprovalDecision::NobodyThere => stored_answer(&run, &context, &step).await,
                        answer => answer,
                    },
                    answer = stored => answer,
                },
                None => stored.await,
            };
            record_answer(&run, &context, &step, answer).await;
            answer
        }
        .boxed()
    }
}

/// Returns the id of the row in which a question waits.
fn approval_step(question: &ApprovalQuestion) -> String {
    format!("{APPROVAL_PREFIX}{}", question.call)
}

/// Waits until another process stores the answer to a question.
async fn stored_answer(run: &Run, context: &RunContext, step: &str) -> ApprovalDecision {
    loop {
        tokio::time::sleep(ANSWER_INTERVAL).await;
        let steps = context.store.steps(&run.principal, run.id).await;
        let steps = steps.unwrap_or_default();
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
    }
}

async fn record_answer(run: &Run, context: &RunContext, step: &str, answer: ApprovalDecision) {
    let is_approved = matches!(answer, ApprovalDecision::Approved { .. });
    let row = RunStep {
        state: if is_approved {
            StepState::Done
        } else {
            StepState::Failed
        },
        ended: Some(context.now()),
        ..RunStep::pending(run.id, step)
    };
    if let Err(error) = context.record_steps(vec![row], Vec::new()).await {
        tracing::debug!(run = %run.id, %error, "the answer to a question was not stored");
    }
}

async fn announce(
    run: &Run,
    context: &RunContext,
    question: &ApprovalQuestion,
) -> Result<(), StoreError> {
    let shown = truncated_line(&question.intent.shows, MAX_SHOWN_CHARS);
    let reason = format!("for an approval of {}: {shown}", question.tool);
    context.record_waiting(run, &reason).await?;
    let step = approval_step(question);
    let row = RunStep {
        state: StepState::Waiting,
        started: Some(context.now()),
        reason: Some(shown.clone()),
        ..RunStep::pending(run.id, &step)
    };
    context.record_steps(vec![row], Vec::new()).await?;
    let session = &question.session;
    let text = format!(
        "`{}` wants to call {}, which was not allowed when it was created:\n\n{shown}\n\n\
         `lango workflow approve {id} {step}` allows it, `lango workflow deny {id} {step}` does not. \
         Session: {session}",
        run.name,
        question.tool,
        id = run.id
    );
    let notice = |target: String| NewDelivery {
        run: Some(run.id),
        principal: run.principal.clone(),
        occasion: DeliveryOccasion::Notice,
        target,
        message: DeliveryMessage {
            from: run.name.clone(),
            title: format!("Waits for approval: {}", run.name),
            text: text.clone(),
            session: Some(session.clone()),
            label: Label::default(),
        },
        created: context.now(),
    };
    let notices = failure_targets(&run.spec).into_iter().map(notice).collect();
    context.store.enqueue(context.lease, notices).await?;
    Ok(())
}

/// Ends the wait when the question is answered, or given up by the engine.
struct WaitingQuestion {
    run: Arc<Run>,
    context: RunContext,
}

impl Drop for WaitingQuestion {
    fn drop(&mut self) {
        self.context.activity.resume();
        let (run, context) = (Arc::clone(&self.run), self.context.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = context.record_running(&run).await {
                    tracing::debug!(run = %run.id, %error, "the end of a wait was not stored");
                }
            });
        }
    }
}
