//! `lango automate …`: the scheduler of jobs, background tasks and workflows.

mod activity;
mod foreground;
mod local_scheduler;
mod systemd_unit;

use std::process::ExitCode;

use jiff::Timestamp;
use lango_domain::automation::{
    DeliveryQuery, DeliveryState, Job, RunQuery, RunState, SchedulerLease,
};
use lango_text::sanitize::one_line;
use serde_json::{Value, json};

use super::automation::{AutomationView, rows};
use super::runtime;
use crate::args::{AutomateCommand, GlobalArgs};
use crate::output::{CliError, CommandOutput, NAME, OutputFormat, styled};

pub use local_scheduler::{LocalScheduler, start_scheduler};

/// The jobs that are shown with their next occurrence.
const SHOWN_JOBS: usize = 5;
/// The most rows that are counted.
const COUNTED_ROWS: usize = 1_000;

pub fn run(
    global: &GlobalArgs,
    command: AutomateCommand,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let output = match command {
        AutomateCommand::Run => return foreground::run(global, format),
        AutomateCommand::Install { print } => systemd_unit::install(global, print)?,
        AutomateCommand::Status => {
            let view = AutomationView::load(global)?;
            runtime()?.block_on(status(&view))?
        }
    };
    Ok(output.print(format))
}

/// The state of the scheduler and its work.
struct SchedulerStatus {
    lease: Option<SchedulerLease>,
    /// The first time at which there is something to do.
    next: Option<Timestamp>,
    queued: usize,
    running: usize,
    waiting: usize,
    deliveries: usize,
    /// Jobs by their next occurrence.
    jobs: Vec<Job>,
}

async fn status(view: &AutomationView) -> Result<CommandOutput, CliError> {
    let status = SchedulerStatus::read(view).await?;
    let headline = match &status.lease {
        Some(lease) => {
            let owner = styled(NAME, one_line(&lease.owner));
            format!("{owner} runs the scheduler.\n")
        }
        None => "No process runs the scheduler.\n".to_owned(),
    };
    let plain = format!("{headline}{}", rows(&status.rows(view)));
    let notice = view.no_scheduler_notice().await?;
    let output = CommandOutput::new(plain, status.to_json());
    Ok(output.with_warnings(notice.into_iter().collect()))
}

impl SchedulerStatus {
    async fn read(view: &AutomationView) -> Result<Self, CliError> {
        let store = view.store();
        let agenda = store.agenda().await?;
        let times = [
            agenda.next_occurrence,
            agenda.next_resume,
            agenda.next_delivery,
        ];
        let mut jobs = store.jobs(&view.principal).await?;
        jobs.retain(|job| job.enabled && job.next_due.is_some());
        jobs.sort_by_key(|job| job.next_due);
        jobs.truncate(SHOWN_JOBS);
        let pending = DeliveryQuery {
            principal: view.principal.clone(),
            run: None,
            state: Some(DeliveryState::Pending),
            limit: COUNTED_ROWS,
        };
        Ok(Self {
            lease: view.scheduler().await?,
            next: match agenda.has_queued_runs {
                true => Some(view.times.now),
                false => times.into_iter().flatten().min(),
            },
            queued: count_runs(view, RunState::Queued).await?,
            running: count_runs(view, RunState::Running).await?,
            waiting: count_runs(view, RunState::Waiting).await?,
            deliveries: store.deliveries(pending).await?.len(),
            jobs,
        })
    }

    fn rows(&self, view: &AutomationView) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if let Some(lease) = &self.lease {
            rows.push(("since", view.times.both(lease.acquired)));
        }
        let next = self.next.map(|at| view.times.both(at));
        rows.push(("next", next.unwrap_or_else(|| "nothing is due".to_owned())));
        let counts = [
            ("queued", self.queued),
            ("running", self.running),
            ("waiting", self.waiting),
            ("to deliver", self.deliveries),
        ];
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        rows.extend(counts.map(|(name, count)| (*name, count.to_string())));
        for job in &self.jobs {
            let at = job.next_due.map(|at| view.times.both(at));
            let text = format!("{}: {}", one_line(&job.name), at.unwrap_or_default());
            rows.push(("job", text));
        }
        rows
    }

    fn to_json(&self) -> Value {
        let lease = self.lease.as_ref();
        json!({
            "running": lease.is_some(),
            "owner": lease.map(|lease| &lease.owner),
            "since": lease.map(|lease| lease.acquired),
            "until": lease.map(|lease| lease.until),
            "next": self.next,
            "runs": { "queued": self.queued, "running": self.running, "waiting": self.waiting },
            "deliveries": self.deliveries,
            "jobs": self.jobs.iter().map(next_json).collect::<Vec<_>>(),
        })
    }
}

async fn count_runs(view: &AutomationView, state: RunState) -> Result<usize, CliError> {
    let query = RunQuery {
        states: vec![state],
        ..RunQuery::newest(view.principal.clone(), COUNTED_ROWS)
    };
    Ok(view.store().runs(query).await?.len())
}

fn next_json(job: &Job) -> Value {
    json!({ "name": job.name, "due": job.next_due })
}
