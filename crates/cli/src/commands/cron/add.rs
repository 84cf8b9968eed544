//! `lango cron add`: adds a job.

use lango_app::capability::automation::planning::{
    JobRequest, PlannedJob, RunOptions, WorkRequest, WorkTime,
};
use lango_app::capability::automation::time_text::absolute_time;
use lango_domain::automation::{
    CatchUp, Job, JobAction, OverlapRule, RunBudget, ScheduleKind, SessionMode,
};
use lango_text::sanitize::one_line;

use super::{in_both_zones, job_json, schedule_text};
use crate::args::{CatchUpChoice, CronAddArgs, OverlapChoice, SessionChoice};
use crate::commands::automation::{
    ArgumentNames, AutomationView, confirm_permission, plan_error, rows, run_options,
    workflow_request,
};
use crate::output::{CliError, CommandOutput, NAME, styled};

pub async fn add(view: &AutomationView, args: &CronAddArgs) -> Result<CommandOutput, CliError> {
    let names = argument_names(args);
    let request = JobRequest {
        name: Some(args.name.clone()),
        time: work_time(args)?,
        work: work_request(view, args).await?,
        timezone: args.timezone.clone(),
        catch_up: match args.catch_up {
            CatchUpChoice::Once => CatchUp::Once,
            CatchUpChoice::Skip => CatchUp::Skip,
            CatchUpChoice::All => CatchUp::All,
        },
        overlap: match args.overlap {
            OverlapChoice::Skip => OverlapRule::Skip,
            OverlapChoice::Queue => OverlapRule::Queue,
            OverlapChoice::Replace => OverlapRule::Replace,
        },
        options: RunOptions {
            session_mode: match args.session_mode {
                SessionChoice::Isolated => SessionMode::Isolated,
                SessionChoice::Main => SessionMode::Main,
            },
            budget: RunBudget {
                tokens: args.budget_tokens,
                usd: args.budget_usd,
            },
            ..run_options(&args.delivery)
        },
    };
    let (limits, team) = (view.limits(), view.team()?);
    let catalog = AutomationView::catalog_of(&team);
    let planner = view.planner(&limits, &catalog);
    let planned = planner.plan_job(&view.requester(), &request).await;
    let mut planned = planned.map_err(|error| plan_error(error, names))?;
    view.step_permissions(&team.tree)
        .allow_in_job(&mut planned)
        .await;
    let question = planned.question(view.times.now);
    let waiting = confirm_permission(&mut planned.job.spec, &question, args.delivery.yes)?;
    let job = planner.add_job(&planned).await;
    let job = job.map_err(|error| plan_error(error, names))?;
    let title = styled(NAME, one_line(&job.name));
    let mut plain = format!("Added {title}  {}\n", schedule_text(&job));
    plain.push_str(&rows(&added_rows(view, &job, &planned)));
    let notice = view.no_scheduler_notice().await?;
    let output = CommandOutput::new(plain, job_json(view, &job, None));
    Ok(output.with_warnings(waiting.into_iter().chain(notice).collect()))
}

/// Returns when the job runs, what it may do, and where its results go.
fn added_rows(
    view: &AutomationView,
    job: &Job,
    planned: &PlannedJob,
) -> Vec<(&'static str, String)> {
    let spec = &planned.job.spec;
    let mut rows = Vec::new();
    for (at, number) in planned.next.iter().zip(0..) {
        rows.push(match number {
            0 => ("next", in_both_zones(view, job, at.timestamp())),
            _ => ("then", absolute_time(at)),
        });
    }
    if !matches!(spec.action, JobAction::Reminder { .. }) {
        rows.push((
            "may",
            match spec.permissions() {
                none if none.is_empty() => {
                    "only what needs no approval; everything else waits".to_owned()
                }
                allowed => one_line(&allowed.join(", ")),
            },
        ));
    }
    rows.push(("to", one_line(&spec.deliver_to.join(", "))));
    rows
}

fn argument_names(args: &CronAddArgs) -> ArgumentNames {
    let schedule = match (&args.cron, &args.every, &args.at) {
        (Some(_), _, _) => "--cron",
        (_, Some(_), _) => "--every",
        (_, _, Some(_)) => "--at",
        _ if args.when.is_some() => "--when",
        _ => "--workflow",
    };
    let work = match (&args.prompt, &args.remind) {
        (Some(_), _) => "--prompt",
        (_, Some(_)) => "--remind",
        _ => "--workflow",
    };
    ArgumentNames { schedule, work }
}

fn work_time(args: &CronAddArgs) -> Result<WorkTime, CliError> {
    let schedule = |kind, text: &String| WorkTime::Schedule {
        kind,
        text: text.clone(),
    };
    let given = args
        .cron
        .as_ref()
        .map(|text| schedule(ScheduleKind::Cron, text));
    let given = given.or_else(|| Some(schedule(ScheduleKind::Every, args.every.as_ref()?)));
    let given = given.or_else(|| Some(schedule(ScheduleKind::At, args.at.as_ref()?)));
    let given = given.or_else(|| Some(WorkTime::Words(args.when.clone()?)));
    match (given, &args.workflow) {
        (Some(time), _) => Ok(time),
        (None, Some(_)) => Ok(WorkTime::OfWorkflow),
        (None, None) => Err(
            CliError::usage("one of --cron, --every, --at and --when is required")
                .with_hint("for example --when \"tomorrow at 9\" or --cron \"0 7 * * MON-FRI\""),
        ),
    }
}

async fn work_request(view: &AutomationView, args: &CronAddArgs) -> Result<WorkRequest, CliError> {
    if args.agent.is_some() && args.prompt.is_none() {
        let error = CliError::usage("--agent: only a request has an agent");
        return Err(error.with_hint("give the request with --prompt TEXT"));
    }
    if !args.params.is_empty() && args.workflow.is_none() {
        let error = CliError::usage("--param: only a workflow has parameters");
        return Err(error.with_hint("name the workflow with --workflow FILE|NAME"));
    }
    if let Some(text) = &args.remind {
        return Ok(WorkRequest::Reminder(text.clone()));
    }
    if let Some(workflow) = &args.workflow {
        let request = workflow_request(view, workflow, &args.params).await?;
        return Ok(WorkRequest::Workflow(request));
    }
    Ok(WorkRequest::Prompt {
        text: args.prompt.clone().unwrap_or_default(),
        agent: args.agent.clone(),
    })
}
