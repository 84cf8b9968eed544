//! `workflow_status` and `workflow_list`.

use lango_domain::automation::{Run, RunId, RunKind, RunQuery};
use lango_domain::{Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{LabeledLines, run_lines, step_line};
use super::arguments::limit;
use super::{AutomationTools, phrases};
use crate::planning::PlanError;
use crate::time_text::describe_time;

const DEFAULT_LIST: usize = 10;
const MAX_LIST: usize = 50;

#[derive(Deserialize, JsonSchema)]
struct WorkflowStatusArgs {
    /// The number of the run; the newest run of a workflow if left out.
    run_id: Option<u64>,
}

pub(super) fn workflow_status(parts: AutomationTools) -> Tool {
    let description = "Shows the steps of a workflow's run: their states and results, what was not repeated after a restart, \
        and which steps wait for an answer.";
    Tool::new(
        "workflow_status",
        description,
        Safety::Safe,
        move |context, args: WorkflowStatusArgs| {
            let parts = parts.clone();
            async move { run_status(&parts, &context, args.run_id).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::WORKFLOW_STATUS)
}

async fn run_status(
    parts: &AutomationTools,
    context: &ToolContext,
    id: Option<u64>,
) -> Result<ToolOutput, ToolError> {
    let run = match id {
        Some(id) => find_run(parts, context, id).await?,
        None => {
            let newest = runs(parts, context, 1).await?.pop();
            newest.ok_or_else(|| ToolError("no workflow has run yet".to_owned()))?
        }
    };
    let store = parts.store().await?;
    let steps = store
        .steps(&context.principal, run.id)
        .await
        .map_err(PlanError::from)?;
    let mut lines = LabeledLines::default();
    lines.line(run_lines(&run, &parts.time_zone, parts.now()).trim_end());
    lines.label.join(&run.label);
    lines.label.join(&run.spec.label);
    if steps.is_empty() {
        lines.line("  no step has started");
    }
    for step in &steps {
        lines.line(&step_line(step));
        lines.label.join(&step.label);
    }
    if !run.state.is_final() {
        lines.line(parts.scheduler_note().await?.unwrap_or_default());
    }
    Ok(lines.output())
}

/// Returns a run of a workflow, started directly or by a job.
pub(super) async fn find_run(
    parts: &AutomationTools,
    context: &ToolContext,
    id: u64,
) -> Result<Run, ToolError> {
    let planner = parts.planner().await?;
    let found = planner.run_of_kind(&context.principal, RunId::new(id), RunKind::Workflow);
    Ok(found.await?)
}

async fn runs(
    parts: &AutomationTools,
    context: &ToolContext,
    limit: usize,
) -> Result<Vec<Run>, ToolError> {
    let query = RunQuery {
        kinds: vec![RunKind::Workflow],
        ..RunQuery::newest(context.principal.clone(), limit)
    };
    let runs = parts.store().await?.runs(query).await;
    Ok(runs.map_err(PlanError::from)?)
}

#[derive(Deserialize, JsonSchema)]
struct WorkflowListArgs {
    /// Most runs, newest first; 10 if left out.
    limit: Option<usize>,
}

pub(super) fn workflow_list(parts: AutomationTools) -> Tool {
    let description = "Lists the saved workflows and the newest runs of workflows.";
    Tool::new(
        "workflow_list",
        description,
        Safety::Safe,
        move |context, args: WorkflowListArgs| {
            let parts = parts.clone();
            async move { run_list(&parts, &context, args.limit).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::WORKFLOW_LIST)
}

async fn run_list(
    parts: &AutomationTools,
    context: &ToolContext,
    given: Option<usize>,
) -> Result<ToolOutput, ToolError> {
    let store = parts.store().await?;
    let saved = store
        .saved_workflows(&context.principal)
        .await
        .map_err(PlanError::from)?;
    let mut lines = LabeledLines::default();
    match saved.is_empty() {
        true => lines.line("No workflow is saved."),
        false => lines.line("Saved workflows:"),
    }
    for workflow in &saved {
        let at = workflow.saved.to_zoned(parts.time_zone.clone());
        lines.line(&format!(
            "- {}, version {}, saved {}",
            workflow.name,
            workflow.version,
            describe_time(&at, parts.now())
        ));
    }
    let runs = runs(parts, context, limit(given, DEFAULT_LIST, MAX_LIST)).await?;
    if !runs.is_empty() {
        lines.line("Runs:");
    }
    for run in &runs {
        lines.line(run_lines(run, &parts.time_zone, parts.now()).trim_end());
        lines.label.join(&run.label);
        lines.label.join(&run.spec.label);
    }
    Ok(lines.output())
}
