//! Runs the steps of workflows as turns.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lango_domain::automation::Run;
use lango_domain::event::{SessionId, TurnId};
use lango_domain::session::SessionKey;
use lango_domain::{AgentName, Label, LabeledText, StoreError};
use lango_engine::NO_OUTPUT;
use lango_runtime::TurnTarget;
use serde_json::Value;

use super::step_executor::{
    StepCall, StepExecutor, StepFailure, StepOutcome, StepRequest, limit_result,
};
use crate::execution::RunOutcome;
use crate::turn_work::{TurnWork, TurnWorker};

/// The wait of a step whose turn cannot start yet.
const START_RETRY: Duration = Duration::from_secs(5);

/// Runs agent steps as turns of an agent, and tool steps as turns of one call. Both are continued after a
/// crash, approved and logged like any other turn.
pub struct RuntimeSteps {
    pub turns: TurnWorker,
}

impl StepExecutor for RuntimeSteps {
    fn execute<'a>(&'a self, request: StepRequest<'a>) -> BoxFuture<'a, StepOutcome> {
        async move {
            let work = match turn_work(&request) {
                Ok(work) => work,
                Err(failure) => return StepOutcome::Failed(failure),
            };
            let mut context = request.context.clone();
            context.cancel = request.cancel.clone();
            loop {
                let outcome = self.turns.run(request.run, work.clone(), &context).await;
                let Ok(RunOutcome::Waiting { .. }) = outcome else {
                    return step_outcome(outcome, &request.label);
                };
                // Not a failure of the step: it uses no attempt.
                tokio::select! {
                    () = tokio::time::sleep(START_RETRY) => {}
                    () = context.suspend.cancelled() => return StepOutcome::Suspended,
                    () = context.cancel.cancelled() => {
                        return StepOutcome::Failed(StepFailure::permanent("cancelled"));
                    }
                }
            }
        }
        .boxed()
    }

    fn is_read_only(&self, run: &Run, tool: &str, arguments: &Value) -> bool {
        self.turns.is_read_only(run, tool, arguments)
    }

    fn is_progress_known(&self, session: SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        async move {
            let turn = step_turn(&session.session);
            self.turns.is_progress_known(&session, &turn).await
        }
        .boxed()
    }
}

/// Returns the id of the turn of a step. Every attempt has a session of its own.
fn step_turn(session: &SessionId) -> TurnId {
    TurnId::new(session.as_str())
}

/// Returns the turn of a step. Values of other steps are context, never part of the text (B122).
fn turn_work(request: &StepRequest<'_>) -> Result<TurnWork, StepFailure> {
    let (text, context, target) = match &request.call {
        StepCall::Agent {
            agent,
            prompt,
            input,
        } => {
            let target = match agent {
                Some(name) => TurnTarget::Agent(
                    AgentName::new(name.clone())
                        .map_err(|error| StepFailure::permanent(error.to_string()))?,
                ),
                None => TurnTarget::Team,
            };
            let input = input
                .iter()
                .map(|item| (item.source.clone(), item.content.clone()));
            (prompt.clone(), input.collect(), target)
        }
        StepCall::Tool { tool, arguments } => {
            let target = TurnTarget::Call {
                tool: tool.clone(),
                arguments: arguments.clone(),
            };
            (format!("Step {}: {tool}", request.step), Vec::new(), target)
        }
    };
    Ok(TurnWork {
        session: SessionKey {
            session: request.session.clone(),
            principal: request.run.principal.clone(),
        },
        text,
        label: request.label.clone(),
        context,
        target,
        turn: step_turn(&request.session),
        step: Some(request.step.clone()),
        is_allowed: request.run.spec.allowed_steps.contains(&request.step),
    })
}

fn step_outcome(outcome: Result<RunOutcome, StoreError>, made_from: &Label) -> StepOutcome {
    match outcome {
        Ok(RunOutcome::Done { result, label }) => StepOutcome::Done(LabeledText {
            text: match result == NO_OUTPUT {
                true => String::new(),
                false => limit_result(&result),
            },
            label: label.joined(made_from),
        }),
        Ok(RunOutcome::Failed { error, label, .. }) => StepOutcome::Failed(StepFailure {
            label: label.joined(made_from),
            ..StepFailure::new(error)
        }),
        // The caller waits and tries again.
        Ok(RunOutcome::Waiting { reason, .. }) => StepOutcome::Failed(StepFailure::new(reason)),
        Ok(RunOutcome::Cancelled) => StepOutcome::Failed(StepFailure::permanent("cancelled")),
        Ok(RunOutcome::Suspended) => StepOutcome::Suspended,
        Err(error) => StepOutcome::StoreFailed(error),
    }
}
