//! `lango cron …`: jobs with schedules.

mod add;
mod show;

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use lango_app::capability::automation::planning::{AutomationCatalog, describe_action};
use lango_app::capability::automation::schedule::Timetable;
use lango_app::capability::automation::time_text::{absolute_time, format_span, in_zone};
use lango_domain::automation::{Job, Run, RunKind, RunQuery, RunState, ScheduleKind};
use lango_text::sanitize::{one_line, truncated_line};
use serde_json::{Value, json};

use super::automation::{AutomationView, items_json, rows, run_reason, state_with_time, texts};
use super::{runtime, with_damage_warnings};
use crate::args::{CronCommand, GlobalArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The next occurrences that are shown for a job.
const SHOWN_OCCURRENCES: usize = 3;

pub fn run(global: &GlobalArgs, command: &CronCommand) -> Result<CommandOutput, CliError> {
    let view = AutomationView::load(global)?;
    let output = runtime()?.block_on(async {
        match command {
            CronCommand::Add(args) => add::add(&view, args).await,
            CronCommand::List { all } => list(&view, *all).await,
            CronCommand::Show { name } => show::show(&view, name).await,
            CronCommand::History { name, state, limit } => {
                let state = state.map(RunState::from);
                history(&view, name.as_deref(), state, limit.get()).await
            }
            CronCommand::Run { name } => run_now(&view, name).await,
            CronCommand::Pause { name } => pause(&view, name).await,
            CronCommand::Resume { name } => resume(&view, name).await,
            CronCommand::Remove { name } => remove(&view, name).await,
        }
    })?;
    Ok(with_damage_warnings(output, &view.stores))
}

async fn list(view: &AutomationView, all: bool) -> Result<CommandOutput, CliError> {
    let mut jobs = view.store().jobs(&view.principal).await?;
    let number = jobs.len();
    jobs.retain(|job| all || !is_over(job));
    let hidden = number - jobs.len();
    let mut plain = String::new();
    let mut items = Vec::new();
    for job in &jobs {
        let last = last_run(view, job).await?;
        items.push(job_json(view, job, last.as_ref()));
        let _ = writeln!(
            plain,
            "{}  {}",
            styled(NAME, one_line(&job.name)),
            schedule_text(job)
        );
        plain.push_str(&rows(&job_rows(view, job, last.as_ref())));
    }
    if number == 0 {
        plain.push_str("There are no jobs. Add one with `lango cron add`.\n");
    }
    if hidden > 0 {
        let line =
            format!("Not shown: {hidden} that will not run again (`lango cron list --all`).");
        let _ = writeln!(plain, "{}", styled(DIM, line));
    }
    Ok(CommandOutput::new(plain, items_json(items)))
}

/// Returns true for a job without occurrences to come, such as a reminder that was delivered.
fn is_over(job: &Job) -> bool {
    job.enabled && job.next_due.is_none()
}

/// Returns the newest run of a job.
async fn last_run(view: &AutomationView, job: &Job) -> Result<Option<Run>, CliError> {
    let query = RunQuery {
        job: Some(job.id),
        ..RunQuery::newest(view.principal.clone(), 1)
    };
    Ok(view.store().runs(query).await?.into_iter().next())
}

/// Returns the item of `cron list`.
fn job_json(view: &AutomationView, job: &Job, last: Option<&Run>) -> Value {
    let last = last.map(|run| json!({ "due": run.due, "state": run.state, "error": run.error }));
    json!({
        "name": job.name,
        "schedule": job.schedule.text,
        "timezone": job.schedule.time_zone,
        "next": upcoming(view, job),
        "enabled": job.enabled && job.next_due.is_some(),
        "last": last,
        "allow": texts(&job.spec.allow),
        "deliver_to": job.spec.deliver_to,
    })
}

fn job_rows(view: &AutomationView, job: &Job, last: Option<&Run>) -> Vec<(&'static str, String)> {
    let next = match (job.enabled, upcoming(view, job).first()) {
        (false, _) => "paused".to_owned(),
        (true, Some(at)) if *at <= view.times.now => {
            format!("overdue, {}", view.times.both(*at))
        }
        (true, Some(at)) => in_both_zones(view, job, *at),
        (true, None) => "over".to_owned(),
    };
    let last = last.map_or("has not run yet".to_owned(), |run| {
        let reason = run_reason(run).map(|reason| format!(": {}", truncated_line(reason, 200)));
        format!(
            "{}{}",
            state_with_time(run, &view.times),
            reason.unwrap_or_default()
        )
    });
    let mut rows = vec![
        ("does", one_line(&describe_action(&job.spec.action))),
        ("next", next),
        ("last", last),
    ];
    let allowed = job.spec.permissions();
    if !allowed.is_empty() {
        rows.push(("may", one_line(&allowed.join(", "))));
    }
    if !job.spec.deliver_to.is_empty() {
        rows.push(("to", one_line(&job.spec.deliver_to.join(", "))));
    }
    rows
}

/// Describes a time of a job in the job's zone, and in the machine's if that is another one.
fn in_both_zones(view: &AutomationView, job: &Job, at: Timestamp) -> String {
    let there = in_zone(at, &job.schedule.time_zone);
    let here = at.to_zoned(view.times.zone.clone());
    match there.offset() == here.offset() {
        true => view.times.both(at),
        false => format!("{} ({})", absolute_time(&there), view.times.both(at)),
    }
}

/// Returns the next occurrences of a job: none if it is paused or over. One that is overdue comes first.
fn upcoming(view: &AutomationView, job: &Job) -> Vec<Timestamp> {
    let timetable = Timetable::read(&job.schedule).ok();
    let (Some(timetable), Some(due), true) = (timetable, job.next_due, job.enabled) else {
        return Vec::new();
    };
    let overdue = Some(due).filter(|due| *due <= view.times.now);
    let to_come = timetable.occurrences_after(view.times.now.max(job.decided_until));
    overdue
        .into_iter()
        .chain(to_come)
        .take(SHOWN_OCCURRENCES)
        .collect()
}

/// Returns the schedule in one line, as in `every 2h (Europe/Berlin)`.
fn schedule_text(job: &Job) -> String {
    let kind = match job.schedule.kind {
        ScheduleKind::Cron => "",
        ScheduleKind::Every => "every ",
        ScheduleKind::At => "at ",
    };
    let text = one_line(&job.schedule.text);
    format!("{kind}{text} ({})", one_line(&job.schedule.time_zone))
}

async fn history(
    view: &AutomationView,
    name: Option<&str>,
    state: Option<RunState>,
    limit: usize,
) -> Result<CommandOutput, CliError> {
    let job = match name {
        Some(name) => Some(view.job(name).await?.id),
        None => None,
    };
    let query = RunQuery {
        job,
        kinds: vec![RunKind::Job],
        states: state.into_iter().collect(),
        ..RunQuery::newest(view.principal.clone(), limit)
    };
    let runs = view.store().runs(query).await?;
    let mut plain = String::new();
    for run in &runs {
        plain.push_str(&history_line(view, run));
    }
    if runs.is_empty() {
        plain.push_str(match state {
            Some(_) => "There are no runs in this state.\n",
            None => "There are no runs yet.\n",
        });
    }
    let items = runs.iter().map(history_json).collect();
    Ok(CommandOutput::new(plain, items_json(items)))
}

fn history_line(view: &AutomationView, run: &Run) -> String {
    let mut details = vec![format!("due {}", view.times.both(run.due))];
    if let (Some(started), Some(ended)) = (run.started, run.ended) {
        let took = format_span(ended.duration_since(started));
        details.push(format!("took {took}"));
    }
    if run.attempt > 1 {
        details.push(format!("attempt {}", run.attempt));
    }
    if let Some(delivery) = run.delivery {
        details.push(format!("delivery {delivery}"));
    }
    if let Some(reason) = run_reason(run) {
        details.push(truncated_line(reason, 300));
    }
    let name = styled(NAME, one_line(&run.name));
    let id = styled(DIM, format!("(run {})", run.id));
    format!("{name} {id}  {}  {}\n", run.state, details.join("; "))
}

fn history_json(run: &Run) -> Value {
    json!({
        "job": run.name,
        "due": run.due,
        "started": run.started,
        "ended": run.ended,
        "state": run.state,
        "reason": run_reason(run),
        "delivery": run.delivery,
    })
}

async fn run_now(view: &AutomationView, name: &str) -> Result<CommandOutput, CliError> {
    let job = view.job(name).await?;
    let (limits, catalog) = (view.limits(), Arc::<AutomationCatalog>::default());
    let planned = view.planner(&limits, &catalog).plan_job_run(&job).await;
    let planned = planned.map_err(|error| CliError::usage(error.to_string()))?;
    let run = view.store().submit_run(planned.run).await?;
    let notice = view.no_scheduler_notice().await?;
    let plain = format!(
        "Queued {} (run {}). `lango cron history \"{}\"` shows how it ends.\n",
        one_line(&job.name),
        run.id,
        one_line(&job.name)
    );
    let json = json!({ "job": job.name, "run": run.id, "state": run.state, "due": run.due });
    Ok(CommandOutput::new(plain, json).with_warnings(notice.into_iter().collect()))
}

async fn pause(view: &AutomationView, name: &str) -> Result<CommandOutput, CliError> {
    let job = view.job(name).await?;
    let (limits, catalog) = (view.limits(), Arc::<AutomationCatalog>::default());
    let paused = view.planner(&limits, &catalog).pause_job(&job).await;
    let job = paused.map_err(|error| CliError::usage(error.to_string()))?;
    let plain = format!("Paused {}.\n", one_line(&job.name));
    Ok(CommandOutput::new(
        plain,
        json!({ "name": job.name, "enabled": job.enabled }),
    ))
}

async fn resume(view: &AutomationView, name: &str) -> Result<CommandOutput, CliError> {
    let job = view.job(name).await?;
    if job.enabled {
        let error = CliError::usage(format!("job `{}` is not paused", one_line(&job.name)));
        return Err(error.with_hint("`lango cron list` shows when it runs next"));
    }
    let (limits, catalog) = (view.limits(), Arc::<AutomationCatalog>::default());
    let resumed = view.planner(&limits, &catalog).resume_job(&job).await;
    let job = resumed
        .map_err(|error| CliError::usage(format!("job `{}`: {error}", one_line(&job.name))))?;
    let next = job.next_due.map_or("it never runs again".to_owned(), |at| {
        format!("it runs next {}", view.times.both(at))
    });
    let plain = format!("Resumed {}; {next}.\n", one_line(&job.name));
    let notice = view.no_scheduler_notice().await?;
    let json = json!({ "name": job.name, "enabled": job.enabled, "next": upcoming(view, &job) });
    Ok(CommandOutput::new(plain, json).with_warnings(notice.into_iter().collect()))
}

async fn remove(view: &AutomationView, name: &str) -> Result<CommandOutput, CliError> {
    let job = view.job(name).await?;
    // What cannot be undone needs the whole name.
    let id = job.id.to_string();
    let is_whole = job.name.to_lowercase() == name.trim().to_lowercase()
        || name.trim().trim_start_matches('#') == id;
    if !is_whole {
        let error = CliError::usage(format!("there is no job `{}`", one_line(name)));
        return Err(error.with_hint(format!("did you mean `{}`?", one_line(&job.name))));
    }
    let (store, now) = (view.store(), view.times.now);
    store.remove_job(&view.principal, job.id, now).await?;
    let plain = format!("Removed {} and its history.\n", one_line(&job.name));
    Ok(CommandOutput::new(plain, json!({ "removed": job.name })))
}
