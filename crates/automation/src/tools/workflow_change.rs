//! `workflow_cancel`, `workflow_retry` and `workflow_approve`.

use lango_domain::automation::{Run, RunStep, StepDecision, StepState};
use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{cancelled_text, step_line};
use super::arguments::filled;
use super::workflow_status::find_run;
use super::{AutomationTools, phrases};
use crate::planning::{ControlError, PlanError, describe_step};

#[derive(Deserialize, JsonSchema)]
struct RunArgs {
    /// The number of the run.
    run_id: u64,
}

pub(super) fn workflow_cancel(parts: AutomationTools) -> Tool {
    let description = "Cancels a run of a workflow. Steps that are done stay done.";
    Tool::new(
        "workflow_cancel",
        description,
        Safety::Moderate,
        move |context, args: RunArgs| {
            let parts = parts.clone();
            async move {
                let run = find_run(&parts, &context, args.run_id).await?;
                parts.planner().await?.cancel(&run).await?;
                parts.wake();
                Ok(cancelled_text("Run", &run))
            }
        },
    )
    .with_phrases(phrases::WORKFLOW_CANCEL)
}

#[derive(Deserialize, JsonSchema)]
struct WorkflowRetryArgs {
    /// The number of the run.
    run_id: u64,
    /// The first step that runs again although it is done; only failed ones run again if left out.
    from: Option<String>,
    /// Steps to go on without.
    skip: Option<Vec<String>>,
}

pub(super) fn workflow_retry(parts: AutomationTools) -> Tool {
    let description = "Tries a run of a workflow again that failed or was cancelled. Steps that are done are not repeated.";
    let asked = parts.clone();
    Tool::new(
        "workflow_retry",
        description,
        Safety::Moderate,
        move |context, args: WorkflowRetryArgs| {
            let parts = parts.clone();
            async move { run_retry(&parts, &context, args).await }
        },
    )
    .with_intent(move |context, args: WorkflowRetryArgs| {
        let parts = asked.clone();
        async move { describe_retry(&parts, &context, args).await }
    })
    .with_phrases(phrases::WORKFLOW_RETRY)
}

async fn describe_retry(
    parts: &AutomationTools,
    context: &ToolContext,
    args: WorkflowRetryArgs,
) -> Result<Intent, ToolError> {
    let run = find_run(parts, context, args.run_id).await?;
    let skip = args.skip.unwrap_or_default();
    let planner = parts.planner().await?;
    let from = filled(args.from);
    let steps = planner.steps_to_retry(&run, from.as_deref(), &skip).await?;
    Ok(Intent {
        level: Safety::Moderate,
        shows: format!(
            "tries run {} of `{}` again: {}",
            run.id,
            run.name,
            steps_text(&steps)
        ),
        subject: run.name.clone(),
        pattern: None,
    })
}

async fn run_retry(
    parts: &AutomationTools,
    context: &ToolContext,
    args: WorkflowRetryArgs,
) -> Result<String, ToolError> {
    parts.require_user(context, "try a run again").await?;
    let run = find_run(parts, context, args.run_id).await?;
    let skip = args.skip.unwrap_or_default();
    let planner = parts.planner().await?;
    let from = filled(args.from);
    let steps = planner.retry(&run, from.as_deref(), &skip).await?;
    parts.wake();
    let note = parts.scheduler_note().await?.unwrap_or_default();
    let text = format!(
        "Run {} is queued again: {}. All other steps keep their results.\n{note}",
        run.id,
        steps_text(&steps)
    );
    Ok(text.trim_end().to_owned())
}

fn steps_text(steps: &[(String, StepState)]) -> String {
    let step = |(id, state): &(String, StepState)| match state {
        StepState::Skipped => format!("`{id}` is skipped"),
        _ => format!("`{id}` runs again"),
    };
    match steps {
        [] => "no step runs again".to_owned(),
        steps => steps.iter().map(step).collect::<Vec<_>>().join(", "),
    }
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DecisionArg {
    #[default]
    Approve,
    Deny,
    Repeat,
    Skip,
}

impl From<DecisionArg> for StepDecision {
    fn from(decision: DecisionArg) -> Self {
        match decision {
            DecisionArg::Approve => Self::Approve,
            DecisionArg::Deny => Self::Deny,
            DecisionArg::Repeat => Self::Repeat,
            DecisionArg::Skip => Self::Skip,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct WorkflowApproveArgs {
    /// The number of the run.
    run_id: u64,
    /// The step that waits; may be left out if only one waits.
    step: Option<String>,
    /// The user's answer: approve (default), deny, skip, or repeat for a step whose effect is unknown.
    decision: Option<DecisionArg>,
}

pub(super) fn workflow_approve(parts: AutomationTools) -> Tool {
    let description = "Answers a step that waits for the user. Only with the user's own decision, never on your own.";
    let asked = parts.clone();
    Tool::new(
        "workflow_approve",
        description,
        Safety::Moderate,
        move |context, args: WorkflowApproveArgs| {
            let parts = parts.clone();
            async move { run_approve(&parts, &context, args).await }
        },
    )
    .with_intent(move |context, args: WorkflowApproveArgs| {
        let parts = asked.clone();
        async move { describe_approve(&parts, &context, args).await }
    })
    .with_phrases(phrases::WORKFLOW_APPROVE)
}

async fn find_step(
    parts: &AutomationTools,
    context: &ToolContext,
    args: &WorkflowApproveArgs,
) -> Result<(Run, RunStep), ToolError> {
    let run = find_run(parts, context, args.run_id).await?;
    let planner = parts.planner().await?;
    let given = filled(args.step.clone());
    let step = planner.waiting_step(&run, given.as_deref()).await?;
    Ok((run, step))
}

/// A step that starts with the answer is dangerous: it waits so that a person decides.
async fn describe_approve(
    parts: &AutomationTools,
    context: &ToolContext,
    args: WorkflowApproveArgs,
) -> Result<Intent, ToolError> {
    let (run, step) = find_step(parts, context, &args).await?;
    let decision = StepDecision::from(args.decision.unwrap_or_default());
    let level = match decision {
        StepDecision::Approve | StepDecision::Repeat => Safety::Dangerous,
        StepDecision::Deny | StepDecision::Skip => Safety::Moderate,
    };
    let shows = format!(
        "answers step `{}` of run {} (`{}`) with: {}\n{}\n{}",
        step.step,
        run.id,
        run.name,
        decision.as_str(),
        describe_step(&run, &step.step).trim_end(),
        step_line(&step),
    );
    Ok(Intent {
        level,
        shows,
        subject: format!("{} {}", run.name, step.step),
        pattern: None,
    })
}

async fn run_approve(
    parts: &AutomationTools,
    context: &ToolContext,
    args: WorkflowApproveArgs,
) -> Result<String, ToolError> {
    parts.require_user(context, "answer a step").await?;
    let (run, step) = find_step(parts, context, &args).await?;
    let decision = args.decision.unwrap_or_default().into();
    let store = parts.store().await?;
    let answered = store.answer_step(&context.principal, run.id, &step.step, decision);
    if !answered.await.map_err(PlanError::from)? {
        return Err(ControlError::NotWaiting {
            run: run.id,
            step: step.step,
        }
        .into());
    }
    parts.wake();
    let note = parts.scheduler_note().await?.unwrap_or_default();
    let text = format!(
        "Step `{}` of run {}: {}.\n{note}",
        step.step,
        run.id,
        decision.as_str()
    );
    Ok(text.trim_end().to_owned())
}
