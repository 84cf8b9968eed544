//! Executes runs by their action.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use lango_domain::StoreError;
use lango_domain::automation::{JobAction, Run, RunKind, SessionMode};
use lango_domain::event::{SessionId, TurnId};
use lango_domain::session::SessionKey;

use lango_runtime::TurnTarget;

use crate::execution::{RunContext, RunExecutor, RunOutcome};
use crate::turn_work::{TurnWork, TurnWorker};

/// Delivers reminders, runs prompts as turns, and passes workflows on.
pub struct ActionExecutor {
    pub turns: TurnWorker,
    pub is_background_enabled: bool,
    /// `None` if workflows are disabled.
    pub workflows: Option<Arc<dyn RunExecutor>>,
}

impl RunExecutor for ActionExecutor {
    fn execute<'a>(
        &'a self,
        run: &'a Run,
        context: &'a RunContext,
    ) -> BoxFuture<'a, Result<RunOutcome, StoreError>> {
        async move {
            if run.kind == RunKind::Background && !self.is_background_enabled {
                let error = "background tasks are disabled (background.enabled)";
                return Ok(RunOutcome::failed(error));
            }
            match &run.spec.action {
                // The end of the run stores the delivery; nothing else is to be done.
                JobAction::Reminder { text } => Ok(RunOutcome::Done {
                    result: text.clone(),
                    label: run.spec.label.clone(),
                }),
                JobAction::Prompt { text, agent } => {
                    let work = TurnWork {
                        session: session_of(run),
                        turn: TurnId::new(format!("run-{}", run.id)),
                        text: text.clone(),
                        label: run.spec.label.clone(),
                        context: Vec::new(),
                        target: agent.clone().map_or(TurnTarget::Team, TurnTarget::Agent),
                        step: None,
                        is_allowed: false,
                    };
                    context.record_session(run, &work.session.session).await?;
                    self.turns.run(run, work, context).await
                }
                JobAction::Workflow { .. } => match &self.workflows {
                    Some(workflows) => workflows.execute(run, context).await,
                    None => Ok(RunOutcome::failed(
                        "workflows are disabled (workflow.enabled)",
                    )),
                },
            }
        }
        .boxed()
    }
}

/// Returns the session of a run: the same for every attempt.
fn session_of(run: &Run) -> SessionKey {
    let name = match (run.spec.session_mode, run.job) {
        (SessionMode::Main, Some(job)) => format!("job-{job}"),
        _ => format!("run-{}", run.id),
    };
    SessionKey {
        session: SessionId::new(name),
        principal: run.principal.clone(),
    }
}
