//! `lango bg submit`: queues a background task.

use lango_app::capability::automation::planning::RunRequest;
use serde_json::json;

use super::task_json;
use crate::args::DeliveryArgs;
use crate::commands::automation::{
    ArgumentNames, AutomationView, confirm_permission, plan_error, run_options,
};
use crate::output::{CliError, CommandOutput};

const NAMES: ArgumentNames = ArgumentNames {
    schedule: "TEXT",
    work: "TEXT",
};

pub async fn submit(
    view: &AutomationView,
    text: &str,
    agent: Option<&str>,
    delivery: &DeliveryArgs,
) -> Result<CommandOutput, CliError> {
    let request = RunRequest {
        prompt: text.to_owned(),
        agent: agent.map(str::to_owned),
        options: run_options(delivery),
    };
    let (limits, catalog) = (view.limits(), view.catalog()?);
    let planner = view.planner(&limits, &catalog);
    let planned = planner.plan_task(&view.requester(), &request).await;
    let mut planned = planned.map_err(|error| plan_error(error, NAMES))?;
    let question = planned.question();
    confirm_permission(&mut planned.run.spec, &question, delivery.yes)?;
    let run = planner.submit(&planned).await;
    let run = run.map_err(|error| plan_error(error, NAMES))?;
    let id = run.id;
    let plain = format!(
        "Submitted task {id}. `lango bg status {id}` shows its state, `lango bg result {id}` its result.\n"
    );
    let mut json = task_json(&run);
    json["deliver_to"] = json!(run.spec.deliver_to);
    let notice = view.no_scheduler_notice().await?;
    Ok(CommandOutput::new(plain, json).with_warnings(notice.into_iter().collect()))
}
