//! `cron_run`, `cron_pause`, `cron_resume` and `cron_remove`.

use lango_domain::automation::Job;
use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{job_lines, terms_lines};
use super::{AutomationTools, phrases};
use crate::planning::{PlanError, describe_action};
use crate::time_text::{describe_time, in_zone};

#[derive(Deserialize, JsonSchema)]
struct JobArgs {
    /// The name or id of the job.
    job: String,
}

pub(super) fn cron_run(parts: AutomationTools) -> Tool {
    let description = "Runs a job now, besides its schedule.";
    let asked = parts.clone();
    Tool::new(
        "cron_run",
        description,
        Safety::Moderate,
        move |context, args: JobArgs| {
            let parts = parts.clone();
            async move { run_now(&parts, &context, &args.job).await }
        },
    )
    .with_intent(move |context, args: JobArgs| {
        let parts = asked.clone();
        async move {
            let job = parts.find_job(&context, &args.job).await?;
            let shows = format!(
                "runs the job `{}` now: {}\n{}",
                job.name,
                describe_action(&job.spec.action),
                terms_lines(&job.spec).trim_end()
            );
            Ok(intent(Safety::Moderate, shows, &job))
        }
    })
    .with_phrases(phrases::CRON_RUN)
}

async fn run_now(
    parts: &AutomationTools,
    context: &ToolContext,
    job: &str,
) -> Result<String, ToolError> {
    // A job that runs itself would never end.
    parts.require_user(context, "run a job out of turn").await?;
    let job = parts.find_job(context, job).await?;
    let planner = parts.planner().await?;
    let run = planner.submit(&planner.plan_job_run(&job).await?).await?;
    parts.wake();
    let note = parts.scheduler_note().await?.unwrap_or_default();
    let text = format!(
        "The job `{}` runs now, as run {}.\n{note}",
        job.name, run.id
    );
    Ok(text.trim_end().to_owned())
}

pub(super) fn cron_pause(parts: AutomationTools) -> Tool {
    let description = "Pauses a job until it is resumed. A run that has started goes on.";
    Tool::new(
        "cron_pause",
        description,
        Safety::Moderate,
        move |context, args: JobArgs| {
            let parts = parts.clone();
            async move {
                let job = parts.find_job(&context, &args.job).await?;
                let planner = parts.planner().await?;
                planner.pause_job(&job).await?;
                parts.wake();
                Ok(format!("Paused the job `{}` (#{}).", job.name, job.id))
            }
        },
    )
    .with_phrases(phrases::CRON_PAUSE)
}

pub(super) fn cron_resume(parts: AutomationTools) -> Tool {
    let description = "Resumes a paused job. Runs that were due meanwhile are not made up for.";
    Tool::new(
        "cron_resume",
        description,
        Safety::Moderate,
        move |context, args: JobArgs| {
            let parts = parts.clone();
            async move { run_resume(&parts, &context, &args.job).await }
        },
    )
    .with_phrases(phrases::CRON_RESUME)
}

async fn run_resume(
    parts: &AutomationTools,
    context: &ToolContext,
    job: &str,
) -> Result<String, ToolError> {
    parts.require_user(context, "resume a job").await?;
    let job = parts.find_job(context, job).await?;
    let planner = parts.planner().await?;
    let job = planner.resume_job(&job).await?;
    parts.wake();
    let next = match job.next_due {
        None => "It has no runs to come.".to_owned(),
        Some(at) => {
            let at = in_zone(at, &job.schedule.time_zone);
            format!("Next: {}.", describe_time(&at, planner.now))
        }
    };
    let note = parts.scheduler_note().await?.unwrap_or_default();
    let text = format!(
        "Resumed the job `{}` (#{}).\n{next}\n{note}",
        job.name, job.id
    );
    Ok(text.trim_end().to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct RemoveArgs {
    /// The name or id of the job, or `all`. May be left out if there is only one job.
    job: Option<String>,
}

/// Words for all jobs, as the phrases capture them.
const ALL: [&str; 10] = [
    "all", "every", "alle", "todos", "todas", "tous", "toutes", "tutti", "tutte", "tutto",
];

pub(super) fn cron_remove(parts: AutomationTools) -> Tool {
    let description =
        "Removes a job with its history, or all jobs. A run that has started is stopped.";
    let asked = parts.clone();
    Tool::new(
        "cron_remove",
        description,
        Safety::Dangerous,
        move |context, args: RemoveArgs| {
            let parts = parts.clone();
            async move {
                let jobs = jobs_to_remove(&parts, &context, args).await?;
                let store = parts.store().await?;
                let mut lines = Vec::new();
                for job in jobs {
                    let removed = store.remove_job(&context.principal, job.id, parts.now());
                    removed.await.map_err(PlanError::from)?;
                    lines.push(format!("Removed the job `{}` (#{}).", job.name, job.id));
                }
                parts.wake();
                Ok(lines.join("\n"))
            }
        },
    )
    .with_intent(move |context, args: RemoveArgs| {
        let parts = asked.clone();
        async move {
            let jobs = jobs_to_remove(&parts, &context, args).await?;
            let lines: String = jobs
                .iter()
                .map(|job| job_lines(job, None, parts.now()))
                .collect();
            let what = match jobs.len() {
                1 => "removes this job with its history",
                _ => "removes these jobs with their history",
            };
            let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
            Ok(Intent {
                level: Safety::Dangerous,
                shows: format!("{what}:\n{}", lines.trim_end()),
                subject: names.join(", "),
                pattern: None,
            })
        }
    })
    .with_phrases(phrases::CRON_REMOVE)
}

/// Returns the jobs that are to be removed. Without a name it has to be clear which.
async fn jobs_to_remove(
    parts: &AutomationTools,
    context: &ToolContext,
    args: RemoveArgs,
) -> Result<Vec<Job>, ToolError> {
    let name = args.job.as_deref().map(str::trim).unwrap_or_default();
    let is_all = ALL.contains(&name.to_lowercase().as_str());
    if !name.is_empty() && !is_all {
        return Ok(vec![parts.find_job(context, name).await?]);
    }
    let store = parts.store().await?;
    let jobs = store.jobs(&context.principal);
    let mut jobs = jobs.await.map_err(PlanError::from)?;
    // A job that is over is kept for its history.
    jobs.retain(|job| job.next_due.is_some() || !job.enabled);
    let names: Vec<String> = jobs
        .iter()
        .map(|job| format!("`{}` (#{})", job.name, job.id))
        .collect();
    match names.len() {
        0 => Err(ToolError("there are no jobs to come".to_owned())),
        1 => Ok(jobs),
        _ if is_all => Ok(jobs),
        _ => Err(ToolError(format!(
            "say which one: {}; or say `all`",
            names.join(", ")
        ))),
    }
}

fn intent(level: Safety, shows: String, job: &Job) -> Intent {
    Intent {
        level,
        shows,
        subject: job.name.clone(),
        pattern: None,
    }
}
