//! `cron_list` and `cron_history`.

use lango_domain::automation::{Job, RunKind, RunQuery};
use lango_domain::{Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{LabeledLines, job_lines, run_lines};
use super::arguments::{RunStateArg, filled, limit};
use super::{AutomationTools, phrases};
use crate::planning::PlanError;

const MAX_LISTED_JOBS: usize = 50;
const DEFAULT_HISTORY: usize = 20;
const MAX_HISTORY: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct CronListArgs {
    /// Lists jobs whose runs are all over, too.
    all: Option<bool>,
}

pub(super) fn cron_list(parts: AutomationTools) -> Tool {
    let description = "Lists the jobs: when they run next, what they do, what they may do without asking, where results \
        go, and how the last run ended.";
    Tool::new(
        "cron_list",
        description,
        Safety::Safe,
        move |context, args: CronListArgs| {
            let parts = parts.clone();
            async move { run_list(&parts, &context, args.all.unwrap_or(false)).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::CRON_LIST)
}

async fn run_list(
    parts: &AutomationTools,
    context: &ToolContext,
    all: bool,
) -> Result<ToolOutput, ToolError> {
    let store = parts.store().await?;
    let now = parts.now();
    let mut jobs = store
        .jobs(&context.principal)
        .await
        .map_err(PlanError::from)?;
    let is_over = |job: &Job| job.enabled && job.next_due.is_none();
    let over = jobs.iter().filter(|job| is_over(job)).count();
    if !all {
        jobs.retain(|job| !is_over(job));
    }
    // The next one first; paused jobs and those that are over come last.
    jobs.sort_by_key(|job| (job.next_due.is_none(), job.next_due));
    let mut lines = LabeledLines::default();
    for job in jobs.iter().take(MAX_LISTED_JOBS) {
        let query = RunQuery {
            job: Some(job.id),
            ..RunQuery::newest(context.principal.clone(), 1)
        };
        let runs = store.runs(query).await.map_err(PlanError::from)?;
        lines.line(job_lines(job, runs.first(), now).trim_end());
        lines.label.join(&job.spec.label);
    }
    match jobs.len() {
        0 => lines.line("Nothing is scheduled."),
        count if count > MAX_LISTED_JOBS => {
            lines.line(&format!("and {} more", count - MAX_LISTED_JOBS));
        }
        _ => {}
    }
    if over > 0 && !all {
        lines.line(&format!("{over} more are over."));
    }
    if !jobs.is_empty() {
        lines.line(parts.scheduler_note().await?.unwrap_or_default());
    }
    Ok(lines.output())
}

#[derive(Deserialize, JsonSchema)]
struct CronHistoryArgs {
    /// The name or id of a job; all jobs if left out.
    job: Option<String>,
    /// Most runs, newest first; 20 if left out.
    limit: Option<usize>,
    /// Only runs in this state.
    state: Option<RunStateArg>,
}

pub(super) fn cron_history(parts: AutomationTools) -> Tool {
    let description = "Lists the runs of jobs, newest first: when each was due, how it ended, its result, and why runs \
        were skipped or missed.";
    Tool::new(
        "cron_history",
        description,
        Safety::Safe,
        move |context, args: CronHistoryArgs| {
            let parts = parts.clone();
            async move { run_history(&parts, &context, args).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::CRON_HISTORY)
}

async fn run_history(
    parts: &AutomationTools,
    context: &ToolContext,
    args: CronHistoryArgs,
) -> Result<ToolOutput, ToolError> {
    let job = match filled(args.job) {
        Some(text) => Some(parts.find_job(context, &text).await?),
        None => None,
    };
    let query = RunQuery {
        job: job.as_ref().map(|job| job.id),
        kinds: vec![RunKind::Job],
        states: args.state.map(Into::into).into_iter().collect(),
        ..RunQuery::newest(
            context.principal.clone(),
            limit(args.limit, DEFAULT_HISTORY, MAX_HISTORY),
        )
    };
    let store = parts.store().await?;
    let runs = store.runs(query).await.map_err(PlanError::from)?;
    let mut lines = LabeledLines::default();
    if let Some(job) = &job {
        lines.line(job_lines(job, None, parts.now()).trim_end());
        lines.label.join(&job.spec.label);
    }
    if runs.is_empty() {
        lines.line("There are no runs yet.");
    }
    for run in &runs {
        lines.line(run_lines(run, &parts.time_zone, parts.now()).trim_end());
        lines.label.join(&run.label);
        lines.label.join(&run.spec.label);
    }
    Ok(lines.output())
}
