//! Checks of what the user wants to add, with errors that name the argument.

use std::path::PathBuf;
use std::sync::Arc;

use lango_app::capability::automation::planning::{
    AutomationCatalog, PlanError, PlanLimits, Requester, RunOptions, WorkPlanner, WorkflowRequest,
    WorkflowSource,
};
use lango_app::capability::automation::schedule::ScheduleError;
use lango_app::{AssembledTeam, plan_limits, team_catalog, workspace_folder};
use lango_domain::automation::{RunBudget, SessionMode};
use lango_text::sanitize::{one_line, truncated_line};
use serde_json::{Map, Value};

use super::AutomationView;
use crate::args::{DeliveryArgs, ToolNames};
use crate::commands::workflow::{WorkflowText, first_error};
use crate::output::CliError;

/// The arguments of a command that errors name.
#[derive(Clone, Copy)]
pub struct ArgumentNames {
    pub schedule: &'static str,
    /// The request, the reminder or the workflow.
    pub work: &'static str,
}

impl AutomationView {
    /// Returns the agents and tools that jobs and workflows can name.
    pub fn catalog(&self) -> Result<Arc<AutomationCatalog>, CliError> {
        Ok(Self::catalog_of(&self.team()?))
    }

    pub fn team(&self) -> Result<AssembledTeam, CliError> {
        self.context.team(&ToolNames { tools: None })
    }

    pub fn catalog_of(team: &AssembledTeam) -> Arc<AutomationCatalog> {
        Arc::new(team_catalog(&team.tree))
    }

    pub fn limits(&self) -> PlanLimits {
        let context = &self.context;
        let workspace = context.toolset().ok();
        let workspace = workspace.map(|toolset| toolset.workspace().clone());
        plan_limits(&context.loaded, &context.environment, workspace)
    }

    pub fn planner<'a>(
        &'a self,
        limits: &'a PlanLimits,
        catalog: &Arc<AutomationCatalog>,
    ) -> WorkPlanner<'a> {
        WorkPlanner {
            store: self.store().as_ref(),
            now: self.times.now,
            time_zone: &self.times.zone,
            workspace: self.workspace(),
            limits,
            catalog: Some(Arc::clone(catalog)),
        }
    }

    /// Returns the real path of the folder in which work that is added here runs.
    fn workspace(&self) -> Option<PathBuf> {
        let (folder, _) = workspace_folder(&self.context.loaded, &self.context.environment);
        folder.canonicalize().ok()
    }

    pub fn requester(&self) -> Requester {
        Requester::user(self.principal.clone())
    }
}

/// Returns the options that all kinds of work have.
pub fn run_options(delivery: &DeliveryArgs) -> RunOptions {
    RunOptions {
        session_mode: SessionMode::Isolated,
        deliver_to: delivery.deliver_to.clone(),
        failure_deliver_to: delivery.failure_deliver_to.clone(),
        timeout: delivery.timeout.clone(),
        budget: RunBudget::default(),
        allow: delivery.allow.clone(),
    }
}

/// Finds the workflow that the user named, with its parameters.
pub async fn workflow_request(
    view: &AutomationView,
    workflow: &str,
    params: &[String],
) -> Result<WorkflowRequest, CliError> {
    let WorkflowText { file, text } = WorkflowText::find(view, workflow).await?;
    Ok(WorkflowRequest {
        source: WorkflowSource::Text { file, text },
        params: parse_params(params)?,
    })
}

/// Reads `--param KEY=VALUE`. Values are texts; the workflow reads them as the type that it declares.
fn parse_params(params: &[String]) -> Result<Map<String, Value>, CliError> {
    let mut map = Map::new();
    for param in params {
        let shown = truncated_line(param, 80);
        let (name, value) = param.split_once('=').ok_or_else(|| {
            CliError::usage(format!("--param: `{shown}` has no value"))
                .with_hint("write --param NAME=VALUE")
        })?;
        let name = name.trim();
        if name.is_empty() {
            let error = CliError::usage(format!("--param: `{shown}` has no name"));
            return Err(error.with_hint("write --param NAME=VALUE"));
        }
        if map.insert(name.to_owned(), value.into()).is_some() {
            let error = CliError::usage(format!("--param: `{}` is given twice", one_line(name)));
            return Err(error.with_hint("give every parameter once"));
        }
    }
    Ok(map)
}

/// Converts an error of planning. The message starts with the argument that is wrong.
pub fn plan_error(error: PlanError, names: ArgumentNames) -> CliError {
    let argument = match &error {
        PlanError::Store(error) => return error.clone().into(),
        PlanError::Workflow(errors) => return first_error(errors),
        PlanError::Schedule(ScheduleError::UnknownZone { .. }) => "--timezone",
        PlanError::Schedule(_) => names.schedule,
        PlanError::Time(_) | PlanError::NoWork => "--when",
        PlanError::EmptyText { .. } | PlanError::LongText { .. } => names.work,
        PlanError::UnknownWorkflow { .. } | PlanError::NoScheduleInWorkflow(_) => names.work,
        PlanError::Name { .. } | PlanError::NameTaken { .. } => "NAME",
        PlanError::UnknownAgent { .. } => "--agent",
        PlanError::UnknownTool { .. }
        | PlanError::Rule(_)
        | PlanError::HiddenInRule(_)
        | PlanError::TooManyRules(_)
        | PlanError::Widened { .. } => "--allow",
        PlanError::Target(_) | PlanError::Undeliverable { .. } | PlanError::WidenedTarget(_) => {
            "--deliver-to"
        }
        PlanError::Timeout(error) => {
            let text = format!("--timeout: {error}; write for example 90s, 10m or 1h");
            return CliError::usage(text);
        }
        PlanError::Budget => "--budget-tokens, --budget-usd",
        PlanError::Param(_) => "--param",
        PlanError::TooDeep(_)
        | PlanError::TooManyNested(_)
        | PlanError::TooManyOpen { .. }
        | PlanError::NotOver { .. } => {
            return CliError::usage(error.to_string());
        }
    };
    CliError::usage(format!(
        "{argument}: {}",
        lango_text::sanitize::strip_control_chars(&error.to_string())
    ))
}
