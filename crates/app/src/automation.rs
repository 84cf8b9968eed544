//! Assembles the scheduler: what runs jobs, background tasks and workflows, and delivers their results.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use lango_automation::delivery::{
    CommandChannel, DeliveryChannels, DeliveryOutbox, DesktopChannel, MailChannel, SessionChannel,
    TargetCheck, WebhookChannel,
};
use lango_automation::planning::{AutomationCatalog, PlanLimits};
use lango_automation::workflow::{RuntimeSteps, WorkflowDriver, WorkflowSettings};
use lango_automation::{
    ActionExecutor, AutomationTools, LazyAutomationStore, OutboxLoop, RunExecutor, Scheduler,
    SchedulerParts, ToolGroups, TurnWorker, WorkspaceTeams, running_scheduler,
};
use lango_domain::approval::Approver;
use lango_domain::automation::LeaseNumber;
use lango_domain::{AgentTree, Clock, StoreError, Stores, Tool};
use lango_remote::RemoteTeam;
use lango_runtime::Runtime;
use lango_text::sanitize::one_line;
use lango_tools::files::Workspace;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::capabilities::CapabilityContext;
use crate::config::{ConfigError, LoadedConfig};
use crate::doctor::{CheckStatus, DoctorCheck};
use crate::environment::Environment;
use crate::folder_teams::FolderTeams;
use crate::lazy_stores::LazyStores;
use crate::store::store_file;
use crate::toolset::{Toolset, shell_parts, undo_storage};

/// Returns the automator's tools that the settings enable (S87).
pub(crate) fn automation_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    let settings = &context.loaded.settings;
    let workspace = Some(context.toolset.workspace().clone());
    let limits = plan_limits(context.loaded, context.environment, workspace);
    let (stores, wake) = (
        context.stores.clone(),
        context.toolset.scheduler_wake().clone(),
    );
    Ok(lango_automation::tools(AutomationTools {
        store: LazyAutomationStore::new(move || stores.open().map(|stores| stores.automation)),
        clock: Arc::new(Timestamp::now),
        time_zone: TimeZone::system(),
        groups: ToolGroups {
            cron: settings.cron.enabled,
            background: settings.background.enabled,
            workflow: settings.workflow.enabled,
        },
        limits: Arc::new(limits),
        catalog: context.toolset.catalog().clone(),
        workspace: Some(context.toolset.workspace().clone()),
        wake: Arc::new(move || wake.wake()),
    }))
}

/// Returns the names of a team that jobs and workflows can use.
pub fn team_catalog(tree: &AgentTree) -> AutomationCatalog {
    let tools: Vec<&Tool> = tree.agents().flat_map(|agent| &agent.tools).collect();
    AutomationCatalog::new(tree.agents().map(|agent| agent.name.as_str()), tools)
}

/// Returns the limits of new work. Paths of files are not checked without a workspace.
pub fn plan_limits(
    loaded: &LoadedConfig,
    environment: &Environment,
    workspace: Option<Workspace>,
) -> PlanLimits {
    let settings = &loaded.settings;
    let target_check = TargetCheck {
        settings: settings.automation.clone(),
        address_policy: settings.net.address_policy(),
        workspace,
        variables: environment.variables.clone(),
    };
    PlanLimits::new(
        &settings.cron,
        &settings.background,
        &settings.workflow,
        target_check,
    )
}

/// Reports which process runs the scheduler.
pub(crate) fn automation_checks<'a>(
    loaded: &'a LoadedConfig,
    environment: &'a Environment,
) -> BoxFuture<'a, Vec<DoctorCheck>> {
    Box::pin(async move {
        // The check of the store reports a store that cannot be opened.
        if store_file(loaded, environment).is_none_or(|file| !file.exists()) {
            return Vec::new();
        }
        match LazyStores::new(loaded, environment).open() {
            Ok(stores) => vec![scheduler_check(&stores).await],
            Err(_) => Vec::new(),
        }
    })
}

async fn scheduler_check(stores: &Stores) -> DoctorCheck {
    let check = |status, detail: &str| DoctorCheck::new("scheduler", status, detail);
    match running_scheduler(&*stores.automation, Timestamp::now()).await {
        Ok(Some(lease)) => {
            let owner = one_line(&lease.owner);
            check(CheckStatus::Pass, &format!("{owner} runs the scheduler"))
        }
        Ok(None) => match stores.automation.agenda().await {
            Ok(agenda) if agenda.next_occurrence.is_some() || agenda.has_queued_runs => check(
                CheckStatus::Warn,
                "jobs are waiting, and no process runs the scheduler",
            )
            .with_hint(
                "start `lango automate run` or `lango serve`, or run `lango automate install`",
            ),
            _ => check(CheckStatus::Pass, "nothing is scheduled"),
        },
        Err(error) => check(CheckStatus::Fail, &error.to_string()),
    }
}

/// The parts from which [`build_scheduler`] assembles a scheduler.
pub struct SchedulerOptions<'a> {
    pub stores: &'a Stores,
    /// Runs the turns, also those of other clients of this process.
    pub runtime: &'a Runtime,
    pub toolset: &'a Toolset,
    /// Answers questions beyond the permission of a job; `None` if no one can.
    pub approver: Option<Arc<dyn Approver>>,
    /// The kind of process, for people.
    pub owner: &'a str,
    /// The stores again, for teams of other folders.
    pub lazy_stores: &'a LazyStores,
    pub remote_agents: &'a RemoteTeam,
}

/// Builds the scheduler of this process. It does nothing until it runs, and then only while no other
/// process of the store runs one.
pub fn build_scheduler(
    loaded: &LoadedConfig,
    environment: &Environment,
    options: SchedulerOptions<'_>,
) -> Result<Scheduler, ConfigError> {
    let settings = &loaded.settings;
    let clock: Clock = Arc::new(Timestamp::now);
    let teams = Arc::new(FolderTeams {
        loaded: loaded.clone(),
        environment: environment.clone(),
        stores: options.lazy_stores.clone(),
        remote_agents: options.remote_agents.clone(),
        wake: options.toolset.scheduler_wake().clone(),
        own: options.toolset.workspace_root().to_path_buf(),
        built: Mutex::default(),
    });
    let turns = TurnWorker {
        runtime: options.runtime.clone(),
        sessions: Arc::clone(&options.stores.sessions),
        approver: options.approver.clone(),
        approval_wait: settings.cron.approval_wait(),
        teams: Arc::clone(&teams) as Arc<dyn WorkspaceTeams>,
    };
    let steps = Arc::new(RuntimeSteps {
        turns: turns.clone(),
    });
    let hours = u64::from(settings.workflow.approval_wait_hours.get());
    let driver_settings = WorkflowSettings {
        approval_deadline: std::time::Duration::from_secs(60 * 60 * hours),
        ..WorkflowSettings::default()
    };
    let workflows = WorkflowDriver::new(steps, driver_settings);
    let workflows: Arc<dyn RunExecutor> = Arc::new(workflows);
    let executor = ActionExecutor {
        turns,
        is_background_enabled: settings.background.enabled,
        workflows: settings.workflow.enabled.then_some(workflows),
    };
    let mut channels = delivery_channels(loaded, environment, &options);
    channels.folders = Some(teams);
    let store = Arc::clone(&options.stores.automation);
    let outbox = DeliveryOutbox::new(Arc::clone(&store), channels, Arc::clone(&clock));
    let scheduler = Scheduler::new(SchedulerParts {
        store,
        executor: Arc::new(executor),
        outbox: Some(Arc::new(SharedOutbox(outbox))),
        clock,
        owner: format!("{} (process {})", options.owner, std::process::id()),
        settings: settings.cron.clone(),
        wake: options.toolset.scheduler_wake().clone(),
    });
    let log_file = store_file(loaded, environment).map(|file| lango_store::log_file(&file));
    Ok(scheduler.watching(log_file))
}

/// A scheduler that runs next to other work.
pub struct RunningScheduler {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningScheduler {
    /// Starts the scheduler. Must be called within a tokio runtime.
    pub fn start(scheduler: Scheduler) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { scheduler.run(&stopped).await });
        Self { stop, task }
    }

    /// Suspends running work, so that the next scheduler continues it, and releases the lease.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

fn delivery_channels(
    loaded: &LoadedConfig,
    environment: &Environment,
    options: &SchedulerOptions<'_>,
) -> DeliveryChannels {
    let settings = &loaded.settings;
    let runtime = options.runtime.clone();
    let publish = move |key: &_, update: &_| runtime.subscribers().publish(key, update);
    let workspace = options.toolset.workspace().clone();
    let shell = shell_parts(
        loaded,
        environment,
        workspace.clone(),
        &undo_storage(environment),
    );
    DeliveryChannels {
        sessions: SessionChannel::new(Arc::clone(&options.stores.sessions), publish),
        workspace,
        webhooks: WebhookChannel::new(&settings.automation.webhook, settings.net.address_policy()),
        commands: CommandChannel::new(shell),
        desktop: DesktopChannel::from_variables(&environment.variables),
        mail: MailChannel::new(&settings.automation.smtp),
        folders: None,
    }
}

/// The outbox as the scheduler drives it.
struct SharedOutbox(DeliveryOutbox);

impl OutboxLoop for SharedOutbox {
    fn run<'a>(
        &'a self,
        lease: LeaseNumber,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.0.run(lease, stop))
    }

    fn send_due(&self, lease: LeaseNumber) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.0.deliver_due(lease).await.map(drop) })
    }

    fn wake(&self) {
        self.0.wake();
    }
}
