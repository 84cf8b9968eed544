//! Shared parts of the commands of automation: the store, and finding jobs and runs by name or number.

mod permission;
mod planning;
mod times;

use std::sync::Arc;

use lango_app::capability::automation::planning::{JobNotFound, find_job};
use lango_domain::Stores;
use lango_domain::automation::{
    AutomationStore, Job, JobAction, Run, RunId, RunKind, RunQuery, RunState, SchedulerLease,
};
use lango_domain::event::Principal;
use lango_text::sanitize::{one_line, strip_control_chars, truncated_line};
use lango_text::suggest;
use serde_json::{Value, json};

use super::CommandContext;
use crate::args::GlobalArgs;
use crate::output::{CliError, DIM, styled};

pub use permission::confirm_permission;
pub use planning::{ArgumentNames, plan_error, run_options, workflow_request};
pub use times::TimeFormat;

/// The most runs that are looked through for a suggestion.
const SEARCHED_RUNS: usize = 200;

/// The configuration and the store of a command of automation, at one moment.
pub struct AutomationView {
    pub context: CommandContext,
    pub stores: Stores,
    pub principal: Principal,
    pub times: TimeFormat,
}

impl AutomationView {
    pub fn load(global: &GlobalArgs) -> Result<Self, CliError> {
        let context = CommandContext::load(global)?;
        let stores = context.stores.open()?;
        Ok(Self {
            context,
            stores,
            principal: Principal::local(),
            times: TimeFormat::local(),
        })
    }

    pub fn store(&self) -> &Arc<dyn AutomationStore> {
        &self.stores.automation
    }

    /// Returns the job with this name, id, or part of a name. An unknown one is an error with similar ones.
    pub async fn job(&self, name: &str) -> Result<Job, CliError> {
        let found = find_job(self.store().as_ref(), &self.principal, name).await;
        found.map_err(|error| match error {
            JobNotFound::Store(error) => error.into(),
            error => CliError::usage(strip_control_chars(&error.to_string()))
                .with_hint("`lango cron list` lists the jobs"),
        })
    }

    /// Returns the background task with this number.
    pub async fn task(&self, id: &str) -> Result<Run, CliError> {
        let run = self.find_run(id).await?;
        match run {
            Some(run) if run.kind == RunKind::Background => Ok(run),
            run => Err(self.unknown_run("task", id, run.as_ref()).await),
        }
    }

    /// Returns the run of a workflow with this number, whether it was started directly or by a job.
    pub async fn workflow_run(&self, id: &str) -> Result<Run, CliError> {
        let run = self.find_run(id).await?;
        match run {
            Some(run) if is_workflow(&run) => Ok(run),
            run => Err(self.unknown_run("workflow run", id, run.as_ref()).await),
        }
    }

    /// Returns a run of any kind.
    pub async fn any_run(&self, id: &str) -> Result<Run, CliError> {
        match self.find_run(id).await? {
            Some(run) => Ok(run),
            None => Err(self.unknown_run("workflow run", id, None).await),
        }
    }

    async fn find_run(&self, id: &str) -> Result<Option<Run>, CliError> {
        match id.parse::<RunId>() {
            Ok(id) => Ok(self.store().run(&self.principal, id).await?),
            Err(_) => Ok(None),
        }
    }

    /// Explains a number that does not fit. `other` is what it belongs to.
    async fn unknown_run(&self, noun: &str, id: &str, other: Option<&Run>) -> CliError {
        let list = match noun {
            "task" => "`lango bg list` lists the tasks",
            _ => "`lango workflow list` lists the runs",
        };
        let shown = truncated_line(id, 80);
        if let Some(other) = other {
            let (is, hint) = match (is_workflow(other), other.kind) {
                (true, _) => (
                    "a run of a workflow",
                    format!("use `lango workflow status {id}`"),
                ),
                (false, RunKind::Background) => {
                    ("a background task", format!("use `lango bg status {id}`"))
                }
                (false, _) => {
                    let name = one_line(&other.name);
                    (
                        "a run of a job",
                        format!("use `lango cron history \"{name}\"`"),
                    )
                }
            };
            return CliError::usage(format!("{shown} is {is}, not a {noun}")).with_hint(hint);
        }
        let message = match id.parse::<RunId>() {
            Ok(_) => format!("there is no {noun} {shown}"),
            Err(_) => format!("`{shown}` is not the number of a {noun}"),
        };
        let hint = self.newest_run_hint(noun, id).await;
        CliError::usage(message).with_hint(hint.unwrap_or_else(|| list.to_owned()))
    }

    /// Returns the newest run whose name is like the text, for people who typed a name.
    async fn newest_run_hint(&self, noun: &str, text: &str) -> Option<String> {
        let query = RunQuery::newest(self.principal.clone(), SEARCHED_RUNS);
        let runs = self.store().runs(query).await.ok()?;
        let is_candidate = |run: &&Run| match noun {
            "task" => run.kind == RunKind::Background,
            _ => is_workflow(run),
        };
        let runs: Vec<&Run> = runs.iter().filter(is_candidate).collect();
        let near = suggest::nearest(text, runs.iter().map(|run| run.name.as_str()));
        match near.first() {
            Some(name) => {
                let run = runs.iter().find(|run| run.name == *name)?;
                let name = truncated_line(name, 40);
                Some(format!("the newest {noun} of `{name}` is {}", run.id))
            }
            None => {
                let run = runs.first()?;
                let name = truncated_line(&run.name, 40);
                Some(format!("the newest {noun} is {} (`{name}`)", run.id))
            }
        }
    }

    /// Cancels a run that is not over. Returns what happens now.
    pub async fn cancel(&self, run: &Run, noun: &str) -> Result<String, CliError> {
        let id = run.id;
        let is_open = self
            .store()
            .cancel_run(&self.principal, id, self.times.now)
            .await?;
        if !is_open {
            let message = format!("{noun} {id} is already over ({})", run.state);
            return Err(
                CliError::usage(message).with_hint("only work that is not over can be cancelled")
            );
        }
        let stored = self.store().run(&self.principal, id).await?;
        let is_over = stored.is_none_or(|run| run.state.is_final());
        Ok(match is_over {
            true => format!("Cancelled {noun} {id}.\n"),
            false => format!("Asked {noun} {id} to stop.\n"),
        })
    }

    /// Returns the lease of the process that runs the scheduler now.
    pub async fn scheduler(&self) -> Result<Option<SchedulerLease>, CliError> {
        let lease = self.store().lease().await?;
        Ok(lease.filter(|lease| lease.until > self.times.now))
    }

    /// Returns a warning if no process runs work that was just added.
    pub async fn no_scheduler_notice(&self) -> Result<Option<String>, CliError> {
        let notice = "no scheduler is running, so nothing happens yet; start one with `lango automate run`, \
                      `lango serve` or an open `lango chat`, or install it with `lango automate install`";
        if !self.context.loaded.settings.cron.enabled {
            return Ok(Some("cron.enabled is false, so no job runs".to_owned()));
        }
        Ok(match self.scheduler().await? {
            Some(_) => None,
            None => Some(notice.to_owned()),
        })
    }
}

/// Returns true for a run of a workflow, also if it is an occurrence of a job.
pub fn is_workflow(run: &Run) -> bool {
    matches!(run.spec.action, JobAction::Workflow { .. })
}

/// Returns the state of a run with its time, as in `done, 5 min ago (…)`.
pub fn state_with_time(run: &Run, times: &TimeFormat) -> String {
    let cancelling = match run.is_cancel_requested && !run.state.is_final() {
        true => ", stopping",
        false => "",
    };
    let at = match run.state {
        RunState::Running | RunState::Waiting => run.started.unwrap_or(run.due),
        RunState::Queued => run.due,
        _ => run.ended.unwrap_or(run.due),
    };
    format!("{}{cancelling}, {}", run.state, times.both(at))
}

/// Returns why a run is in its state: the reason, or the error.
pub fn run_reason(run: &Run) -> Option<&str> {
    run.reason.as_deref().or(run.error.as_deref())
}

/// Returns the value of a flag for lists: what a run may do and where its result goes.
pub fn texts<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

/// Returns the lines of a table of two columns, with indented names.
pub fn rows(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        let gap = " ".repeat(width - name.len());
        format!("  {}{gap}  {value}\n", styled(DIM, name))
    };
    rows.iter().map(line).collect()
}

/// Returns the JSON of a list, as every command prints it.
pub fn items_json(items: Vec<Value>) -> Value {
    json!({ "items": items })
}
