//! The scheduler of this process. The only place where commands start it.

use lango_app::{
    Assistant, AssistantOptions, Recording, RunningScheduler, SchedulerOptions, Toolset,
    build_scheduler,
};

use crate::commands::CommandContext;
use crate::commands::automation::AutomationView;
use crate::output::CliError;

/// A scheduler that runs next to a command until it is stopped.
pub struct LocalScheduler {
    running: RunningScheduler,
    assistant: Assistant,
}

impl LocalScheduler {
    /// Starts the scheduler with a team of its own. It waits for its turn if another process holds the
    /// lease.
    pub fn start(view: &AutomationView) -> Result<Self, CliError> {
        let context = &view.context;
        let toolset = context.toolset()?;
        let options = AssistantOptions {
            stores: &context.stores,
            tools: context.toolset_tools(&toolset)?,
            catalog: toolset.catalog().clone(),
            approver: None,
            recording: &Recording::Off,
            secrets: None,
            remote_agents: None,
        };
        let assistant = Assistant::open(&context.loaded, &context.environment, options)?;
        let running = start_scheduler(context, &assistant, &toolset, "lango automate")?;
        Ok(Self { running, assistant })
    }

    /// Suspends running work so that the next scheduler continues it, and releases the lease.
    pub async fn stop(self) {
        self.running.stop().await;
        self.assistant.runtime.suspend_turns().cancel();
        self.assistant.runtime.tasks().close();
        self.assistant.runtime.tasks().wait().await;
    }
}

/// Starts a scheduler that runs turns with the team of an assistant.
pub fn start_scheduler(
    context: &CommandContext,
    assistant: &Assistant,
    toolset: &Toolset,
    owner: &str,
) -> Result<RunningScheduler, CliError> {
    let options = SchedulerOptions {
        stores: &assistant.stores,
        runtime: &assistant.runtime,
        toolset,
        approver: None,
        owner,
        lazy_stores: &context.stores,
        remote_agents: &assistant.remote_agents,
    };
    let scheduler = build_scheduler(&context.loaded, &context.environment, options)?;
    Ok(RunningScheduler::start(scheduler))
}
