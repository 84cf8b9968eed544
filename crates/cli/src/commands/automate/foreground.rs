//! `lango automate run`: the scheduler in the foreground.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use super::LocalScheduler;
use super::activity::ActivityWatch;
use crate::args::GlobalArgs;
use crate::commands::automation::AutomationView;
use crate::commands::multi_thread_runtime;
use crate::commands::serve::StopSignals;
use crate::output::{CliError, DIM, OutputFormat, print_stderr, styled, warn};

/// The interval at which runs and deliveries are read for printing. The scheduler itself does not poll.
const PRINT_INTERVAL: Duration = Duration::from_secs(1);
/// A scheduler that no other process holds up has its lease well before this.
const STORE_WARNING_SECONDS: u32 = 5;

pub fn run(global: &GlobalArgs, format: OutputFormat) -> Result<ExitCode, CliError> {
    let view = AutomationView::load(global)?;
    let runtime = multi_thread_runtime()?;
    runtime.block_on(run_until_stopped(&view, format))?;
    // Do not wait for tasks that hang in disk access or in a tool.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

async fn run_until_stopped(view: &AutomationView, format: OutputFormat) -> Result<(), CliError> {
    let mut signals = StopSignals::listen()?;
    if let Some(lease) = view.scheduler().await? {
        let owner = lango_text::sanitize::one_line(&lease.owner);
        let text = format!("{owner} runs the scheduler; this process waits until it ends");
        warn(&[text], format);
    }
    let mut activity = ActivityWatch::start(view).await?;
    let scheduler = LocalScheduler::start(view)?;
    let mut state = SchedulerState::Waiting { seconds: 0 };
    loop {
        tokio::select! {
            () = tokio::time::sleep(PRINT_INTERVAL) => {
                state = state.next(view, format).await;
                // The process that runs the scheduler prints what it does.
                match state {
                    SchedulerState::Running => activity.print_changes(view, format).await,
                    SchedulerState::Waiting { .. } => activity.skip_changes(view).await,
                }
            }
            () = signals.next() => break,
        }
    }
    print_stderr("Stopping: running work is suspended and continues with the next scheduler.");
    tokio::select! {
        () = scheduler.stop() => {}
        () = signals.next() => std::process::exit(130),
    }
    if let SchedulerState::Running = state {
        activity.print_changes(view, format).await;
    }
    Ok(())
}

/// The scheduler of this process, as the lease in the store shows it.
enum SchedulerState {
    /// Another process has the lease, or the store cannot be written.
    Waiting {
        seconds: u32,
    },
    Running,
}

impl SchedulerState {
    async fn next(self, view: &AutomationView, format: OutputFormat) -> Self {
        let lease = view.scheduler().await.ok().flatten();
        let process = format!("(process {})", std::process::id());
        let is_own = lease
            .as_ref()
            .is_some_and(|lease| lease.owner.ends_with(&process));
        match (self, is_own) {
            (Self::Running, true) => Self::Running,
            (Self::Waiting { .. }, true) => {
                announce(format);
                Self::Running
            }
            (Self::Running, false) => Self::Waiting { seconds: 0 },
            (Self::Waiting { seconds }, false) => {
                if lease.is_none() && seconds == STORE_WARNING_SECONDS {
                    let text = "the scheduler does not run yet: it cannot write to the store; -v shows why";
                    warn(&[text.to_owned()], format);
                }
                Self::Waiting {
                    seconds: seconds.saturating_add(1),
                }
            }
        }
    }
}

fn announce(format: OutputFormat) {
    let line = match format {
        OutputFormat::Plain => format!(
            "The scheduler is running {}",
            styled(DIM, "(press Ctrl-C to stop)")
        ),
        OutputFormat::Json => json!({ "type": "started" }).to_string(),
    };
    let mut stdout = anstream::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
