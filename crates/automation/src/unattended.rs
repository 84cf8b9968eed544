//! Approval questions of turns that nobody watches.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, Approver};
use lango_domain::automation::{DeliveryMessage, DeliveryOccasion, NewDelivery, Run};
use lango_domain::{Label, StoreError};
use lango_text::sanitize::truncated_line;

use crate::execution::RunContext;
use crate::run_report::failure_targets;

const MAX_SHOWN_CHARS: usize = 500;

/// Shows a question as the state of its run, and tells the user, while it waits for an answer.
pub(crate) struct UnattendedApprover {
    pub inner: Option<Arc<dyn Approver>>,
    pub run: Arc<Run>,
    pub context: RunContext,
}

impl Approver for UnattendedApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let Some(inner) = self.inner.clone() else {
            return async { ApprovalDecision::NobodyThere }.boxed();
        };
        let (run, context) = (Arc::clone(&self.run), self.context.clone());
        async move {
            if let Err(error) = announce(&run, &context, &question).await {
                tracing::warn!(run = %run.id, %error, "a waiting question cannot be stored");
            }
            let _waiting = WaitingQuestion { run, context };
            inner.ask(question).await
        }
        .boxed()
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
    let session = &question.session;
    let text = format!(
        "`{}` wants to call {}, which was not allowed when it was created:\n\n{shown}\n\nSession: {session}",
        run.name, question.tool
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
