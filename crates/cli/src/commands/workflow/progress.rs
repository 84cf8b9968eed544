//! Follows a run in the store and shows its progress.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use lango_domain::automation::{Run, RunStep, StepState};
use lango_text::sanitize::truncated_line;

use super::status::{question, run_steps, step_line};
use crate::commands::automation::AutomationView;
use crate::output::{CliError, DIM, print_stderr, styled};

/// The run may be in another process, so the store is read at this interval.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Waits until a run is over. Returns `None` if the user pressed Ctrl-C.
pub async fn follow(
    view: &AutomationView,
    run: &Run,
    quiet: bool,
) -> Result<Option<Run>, CliError> {
    let mut progress = StepProgress {
        is_quiet: quiet,
        is_terminal: std::io::stderr().is_terminal(),
        seen: HashMap::new(),
    };
    loop {
        let Some(current) = view.store().run(&view.principal, run.id).await? else {
            return Err(CliError::run_failed(format!("run {} was removed", run.id)));
        };
        progress.show(&current, &run_steps(view, &current).await?);
        if current.state.is_final() {
            return Ok(Some(current));
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            Ok(()) = tokio::signal::ctrl_c() => return Ok(None),
        }
    }
}

/// Prints every change of a step once.
struct StepProgress {
    is_quiet: bool,
    /// Without one, only questions are printed: the run waits until someone answers them.
    is_terminal: bool,
    /// The state and the attempt of each step as they were last printed.
    seen: HashMap<String, (StepState, u32)>,
}

impl StepProgress {
    fn show(&mut self, run: &Run, steps: &[RunStep]) {
        let width = steps.iter().map(|row| row.step.chars().count()).max();
        for row in steps {
            let now = (row.state, row.attempt);
            let before = self.seen.insert(row.step.clone(), now);
            let question = question(run, row);
            let is_shown = !self.is_quiet && (self.is_terminal || question.is_some());
            if row.state == StepState::Pending || before == Some(now) || !is_shown {
                continue;
            }
            print_stderr(&step_line(row, width.unwrap_or(0)));
            let detail = row.error.as_deref().or(row.reason.as_deref());
            if let Some(detail) = detail {
                print_stderr(&format!("      {}", truncated_line(detail, 300)));
            }
            if let Some(question) = question {
                print_stderr(&format!("      {}", styled(DIM, question)));
            }
        }
    }
}
