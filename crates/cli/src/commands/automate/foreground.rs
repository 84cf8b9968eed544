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
        let text =
            format!("{owner} runs the scheduler already; this process takes over when it ends");
        warn(&[text], format);
    }
    let mut activity = ActivityWatch::start(view).await?;
    let scheduler = LocalScheduler::start(view)?;
    announce(format);
    loop {
        tokio::select! {
            () = tokio::time::sleep(PRINT_INTERVAL) => activity.print_changes(view, format).await,
            () = signals.next() => break,
        }
    }
    print_stderr("Stopping: running work is suspended and continues with the next scheduler.");
    tokio::select! {
        () = scheduler.stop() => {}
        () = signals.next() => std::process::exit(130),
    }
    activity.print_changes(view, format).await;
    Ok(())
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
