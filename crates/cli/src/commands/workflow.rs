//! `lango workflow …`: workflows and their runs.

mod answer;
mod graph;
mod list;
mod progress;
mod source;
mod start;
mod status;
mod validate;

use std::process::ExitCode;

pub use source::{WorkflowText, first_error};

use super::automation::AutomationView;
use super::{runtime, with_damage_warnings};
use crate::args::{GlobalArgs, WorkflowCommand};
use crate::output::{CliError, CommandOutput, OutputFormat};

pub fn run(
    global: &GlobalArgs,
    command: &WorkflowCommand,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let view = AutomationView::load(global)?;
    let output = match command {
        WorkflowCommand::Validate { files } => return validate::validate(&view, files, format),
        WorkflowCommand::Run {
            workflow,
            params,
            wait,
            delivery,
        } => {
            let request = start::StartRequest {
                workflow,
                params,
                delivery,
            };
            return start::start(&view, &request, *wait, format);
        }
        command => runtime()?.block_on(run_command(&view, command))?,
    };
    Ok(with_damage_warnings(output, &view.stores).print(format))
}

async fn run_command(
    view: &AutomationView,
    command: &WorkflowCommand,
) -> Result<CommandOutput, CliError> {
    match command {
        WorkflowCommand::List { limit } => list::list(view, limit.get()).await,
        WorkflowCommand::Status { run } => status::status(view, run).await,
        WorkflowCommand::Graph { workflow, output } => {
            graph::graph(view, workflow, output.as_deref()).await
        }
        WorkflowCommand::Cancel { run } => answer::cancel(view, run).await,
        WorkflowCommand::Retry { run, from, skip } => {
            answer::retry(view, run, from.as_deref(), skip).await
        }
        WorkflowCommand::Approve { run, step } => answer::answer(view, run, step, true).await,
        WorkflowCommand::Deny { run, step } => answer::answer(view, run, step, false).await,
        WorkflowCommand::Save { file } => list::save(view, file).await,
        WorkflowCommand::Run { .. } | WorkflowCommand::Validate { .. } => {
            Err(CliError::usage("this command has no plain result"))
        }
    }
}
