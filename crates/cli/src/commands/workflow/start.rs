//! `lango workflow run`: queues a run of a workflow, and follows it with `--wait`.

use std::process::ExitCode;

use lango_domain::automation::{Run, RunState};
use lango_text::sanitize::{one_line, strip_control_chars};
use serde_json::json;

use super::progress::follow;
use super::status::{run_steps, status_json};
use crate::args::DeliveryArgs;
use crate::commands::automate::LocalScheduler;
use crate::commands::automation::{
    ArgumentNames, AutomationView, confirm_permission, plan_error, run_options, run_reason,
    workflow_request,
};
use crate::commands::{multi_thread_runtime, with_damage_warnings};
use crate::output::{CliError, CommandOutput, OutputFormat, warn};

const NAMES: ArgumentNames = ArgumentNames {
    schedule: "FILE|NAME",
    work: "FILE|NAME",
};

/// The workflow to run.
pub struct StartRequest<'a> {
    pub workflow: &'a str,
    pub params: &'a [String],
    pub delivery: &'a DeliveryArgs,
}

pub fn start(
    view: &AutomationView,
    request: &StartRequest<'_>,
    wait: bool,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let runtime = multi_thread_runtime()?;
    let (run, waiting) = runtime.block_on(submit(view, request))?;
    if wait {
        warn(&Vec::from_iter(waiting), format);
        return runtime.block_on(wait_for(view, &run, format));
    }
    let (id, name) = (run.id, one_line(&run.name));
    let plain =
        format!("Queued {name} (run {id}). `lango workflow status {id}` shows its steps.\n");
    let json = json!({ "run": id.to_string(), "workflow": run.name, "state": run.state });
    let notice = runtime.block_on(view.no_scheduler_notice())?;
    let output =
        CommandOutput::new(plain, json).with_warnings(waiting.into_iter().chain(notice).collect());
    Ok(with_damage_warnings(output, &view.stores).print(format))
}

/// Queues the run. Returns a warning about steps that the user did not allow, too.
async fn submit(
    view: &AutomationView,
    request: &StartRequest<'_>,
) -> Result<(Run, Option<String>), CliError> {
    let workflow = workflow_request(view, request.workflow, request.params).await?;
    let options = run_options(request.delivery);
    let (limits, team) = (view.limits(), view.team()?);
    let catalog = AutomationView::catalog_of(&team);
    let planner = view.planner(&limits, &catalog);
    let planned = planner
        .plan_workflow(&view.requester(), &workflow, &options)
        .await;
    let mut planned = planned.map_err(|error| plan_error(error, NAMES))?;
    view.step_permissions(&team.tree)
        .allow_in_run(&mut planned)
        .await;
    let question = planned.question();
    let waiting = confirm_permission(&mut planned.run.spec, &question, request.delivery.yes)?;
    let run = planner.submit(&planned).await;
    let run = run.map_err(|error| plan_error(error, NAMES))?;
    Ok((run, waiting))
}

/// Waits until the run is over. If no process runs the scheduler, or the one that does has ended, this one does.
async fn wait_for(
    view: &AutomationView,
    run: &Run,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    // It waits while another process holds the lease, and takes over from one that was killed.
    let scheduler = LocalScheduler::start(view)?;
    let followed = follow(view, run, format == OutputFormat::Json).await;
    scheduler.stop().await;
    match followed? {
        Some(run) => print_end(view, &run, format).await,
        None => {
            let id = run.id;
            let hint = format!(
                "`lango workflow status {id}` shows it, `lango workflow cancel {id}` cancels it"
            );
            let message = "stopped waiting; the run continues with the scheduler that runs, or with the next one";
            Err(CliError::cancelled(message).with_hint(hint))
        }
    }
}

/// Prints the result of a run that is over. The exit code says how it ended.
async fn print_end(
    view: &AutomationView,
    run: &Run,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let steps = run_steps(view, run).await?;
    let result = strip_control_chars(run.result.as_deref().unwrap_or_default());
    let plain = match result.trim().is_empty() {
        true => format!("{} (run {}): {}\n", one_line(&run.name), run.id, run.state),
        false => result,
    };
    let is_done = run.state == RunState::Done;
    if format == OutputFormat::Json || is_done || run.result.is_some() {
        let printed = CommandOutput::new(plain, status_json(run, &steps)).print(format);
        if is_done {
            return Ok(printed);
        }
    }
    let reason = run_reason(run).map_or(String::new(), |reason| format!(": {}", one_line(reason)));
    let message = format!("run {} is {}{reason}", run.id, run.state);
    Err(match run.state {
        RunState::Cancelled => CliError::cancelled(message),
        _ => CliError::run_failed(message).with_hint(format!(
            "`lango workflow retry {}` runs the steps that failed again",
            run.id
        )),
    })
}
