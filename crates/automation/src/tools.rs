//! The automator's tools (S87).

mod answer;
mod arguments;
mod background;
mod cron_add;
mod cron_change;
mod cron_list;
mod phrases;
mod workflow_change;
mod workflow_run;
mod workflow_status;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use lango_domain::automation::{AutomationStore, Job};
use lango_domain::lazy::Lazy;
use lango_domain::{Clock, Tool, ToolContext, ToolError};
use lango_tools::files::Workspace;

use crate::planning::{
    ControlError, JobNotFound, PlanError, PlanLimits, Requester, SharedCatalog, WorkPlanner,
    find_job,
};

pub type LazyAutomationStore = Lazy<dyn AutomationStore>;

/// Tells the scheduler of this process that something changed in the store.
pub type WakeFn = Arc<dyn Fn() + Send + Sync>;

/// The groups of tools that the settings enable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolGroups {
    pub cron: bool,
    pub background: bool,
    pub workflow: bool,
}

/// Everything that the tools use. Cheap to clone.
#[derive(Clone)]
pub struct AutomationTools {
    pub store: LazyAutomationStore,
    pub clock: Clock,
    /// The user's zone, in which times are read and shown.
    pub time_zone: TimeZone,
    pub groups: ToolGroups,
    pub limits: Arc<PlanLimits>,
    /// Set once the whole team is known.
    pub catalog: SharedCatalog,
    /// Where workflow files are; without it, they cannot be read.
    pub workspace: Option<Workspace>,
    pub wake: WakeFn,
}

/// Returns the tools of the enabled groups (S87).
pub fn tools(parts: AutomationTools) -> Vec<Tool> {
    let parts = || parts.clone();
    let groups = parts().groups;
    let mut tools = Vec::new();
    if groups.cron {
        tools.extend([
            cron_add::cron_add(parts()),
            cron_list::cron_list(parts()),
            cron_list::cron_history(parts()),
            cron_change::cron_run(parts()),
            cron_change::cron_pause(parts()),
            cron_change::cron_resume(parts()),
            cron_change::cron_remove(parts()),
        ]);
    }
    if groups.background {
        tools.extend([
            background::bg_submit(parts()),
            background::bg_status(parts()),
            background::bg_result(parts()),
            background::bg_list(parts()),
            background::bg_cancel(parts()),
        ]);
    }
    if groups.workflow {
        tools.extend([
            workflow_run::workflow_run(parts()),
            workflow_status::workflow_status(parts()),
            workflow_status::workflow_list(parts()),
            workflow_run::workflow_validate(parts()),
            workflow_change::workflow_cancel(parts()),
            workflow_run::workflow_save(parts()),
            workflow_change::workflow_retry(parts()),
            workflow_change::workflow_approve(parts()),
        ]);
    }
    tools
}

impl AutomationTools {
    async fn store(&self) -> Result<&dyn AutomationStore, ToolError> {
        let store = self.store.get().await;
        store
            .map(|store| &**store)
            .map_err(|error| ToolError(format!("{error}; {}", error.hint())))
    }

    async fn planner(&self) -> Result<WorkPlanner<'_>, ToolError> {
        Ok(WorkPlanner {
            store: self.store().await?,
            now: self.now(),
            time_zone: &self.time_zone,
            workspace: self.workspace.as_ref().map(|own| own.root().to_path_buf()),
            limits: &self.limits,
            catalog: self.catalog.get(),
        })
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn wake(&self) {
        (self.wake)();
    }

    async fn find_job(&self, context: &ToolContext, text: &str) -> Result<Job, ToolError> {
        Ok(find_job(self.store().await?, &context.principal, text).await?)
    }

    /// Fails if the call comes from a run. What only the user may decide, no run decides for itself (B121).
    async fn require_user(&self, context: &ToolContext, what: &str) -> Result<(), ToolError> {
        let planner = self.planner().await?;
        match planner.calling_run(&requester(context)).await? {
            None => Ok(()),
            Some(run) => Err(ToolError(format!(
                "`{}` runs without a user, and only a user can {what}",
                run.name
            ))),
        }
    }

    /// Returns a note for answers if no process runs the scheduler.
    async fn scheduler_note(&self) -> Result<Option<&'static str>, ToolError> {
        let lease = self.store().await?.lease().await.map_err(PlanError::from)?;
        let is_running = lease.is_some_and(|lease| lease.until > self.now());
        Ok((!is_running).then_some(
            "Nothing runs it at the moment: start `lango automate run` or `lango serve`, or keep a chat open.",
        ))
    }
}

fn requester(context: &ToolContext) -> Requester {
    Requester {
        principal: context.principal.clone(),
        session: Some(context.session.clone()),
        label: context.label.clone(),
    }
}

impl From<PlanError> for ToolError {
    fn from(error: PlanError) -> Self {
        Self(error.to_string())
    }
}

impl From<ControlError> for ToolError {
    fn from(error: ControlError) -> Self {
        Self(error.to_string())
    }
}

impl From<JobNotFound> for ToolError {
    fn from(error: JobNotFound) -> Self {
        Self(error.to_string())
    }
}
