//! `workflow_run`, `workflow_validate` and `workflow_save`.

use std::io::Read as _;

use lango_domain::automation::NewSavedWorkflow;
use lango_domain::{Intent, Label, Safety, Tool, ToolContext, ToolError};
use lango_text::sanitize::{escape_hidden_chars, truncated_line};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::terms_lines;
use super::arguments::{BudgetArg, filled, outgoing};
use super::{AutomationTools, phrases, requester};
use crate::planning::{
    PlanError, PlannedRun, Requester, RunOptions, WorkPlanner, WorkflowRequest, WorkflowSource,
    describe_action,
};
use crate::workflow::{MAX_FILE_BYTES, StepAction, Workflow, WorkflowError, parse_workflow};

/// Versions of a saved workflow that are kept.
const MAX_VERSIONS: usize = 20;
/// The longest name of a saved workflow.
const MAX_NAME_CHARS: usize = 64;
/// The name of a text without a file, for errors.
const INLINE_NAME: &str = "workflow";

#[derive(Deserialize, JsonSchema)]
struct WorkflowRunArgs {
    /// The name of a saved workflow.
    name: Option<String>,
    /// A workflow file of the workspace, such as "review.flow.yaml".
    file_path: Option<String>,
    /// The text of a workflow.
    yaml_content: Option<String>,
    /// Parameters of the workflow.
    params: Option<Map<String, Value>>,
    /// Instead of the workflow's own targets.
    deliver_to: Option<Vec<String>>,
    /// The longest time of the run, such as "2h".
    timeout: Option<String>,
    /// The most that the run may spend.
    budget: Option<BudgetArg>,
    /// Calls that run without asking: "fs_write", or "exec_shell df*". Only what the user wants; everything
    /// else waits for approval.
    allow: Option<Vec<String>>,
}

pub(super) fn workflow_run(parts: AutomationTools) -> Tool {
    let description = "Runs a workflow in the background: a saved one, a file, or a text.";
    let asked = parts.clone();
    Tool::new(
        "workflow_run",
        description,
        Safety::Moderate,
        move |context, args: WorkflowRunArgs| {
            let parts = parts.clone();
            async move { run_workflow(&parts, &context, args).await }
        },
    )
    .with_intent(move |context, args: WorkflowRunArgs| {
        let parts = asked.clone();
        async move {
            let planner = parts.planner().await?;
            let planned = plan(&parts, &planner, &context, args).await?;
            Ok(Intent {
                level: planned.level,
                shows: planned.question(),
                subject: planned.run.name.clone(),
                pattern: None,
            })
        }
    })
    .with_outgoing(|args: WorkflowRunArgs| {
        let params = args.params.map(|params| Value::Object(params).to_string());
        let mut targets = args.deliver_to.unwrap_or_default();
        targets.extend(
            args.yaml_content
                .as_deref()
                .map_or_else(Vec::new, file_targets),
        );
        outgoing(targets, params.unwrap_or_default())
    })
    .with_phrases(phrases::WORKFLOW_RUN)
}

/// Returns the targets that the text of a workflow names. A text with errors is refused later.
fn file_targets(text: &str) -> Vec<String> {
    let Ok(workflow) = parse_workflow("", text, None) else {
        return Vec::new();
    };
    let of_steps = workflow.steps.iter().flat_map(|step| &step.deliver_to);
    workflow
        .deliver_to
        .iter()
        .chain(of_steps)
        .cloned()
        .collect()
}

async fn plan(
    parts: &AutomationTools,
    planner: &WorkPlanner<'_>,
    context: &ToolContext,
    args: WorkflowRunArgs,
) -> Result<PlannedRun, ToolError> {
    let found = find_source(parts, args.name, args.file_path, args.yaml_content).await?;
    let requester = requester(context);
    let requester = Requester {
        label: requester.label.joined(&found.label),
        ..requester
    };
    let request = WorkflowRequest {
        source: found.source,
        params: args.params.unwrap_or_default(),
    };
    let options = RunOptions {
        deliver_to: args.deliver_to.unwrap_or_default(),
        timeout: filled(args.timeout),
        budget: args.budget.unwrap_or_default().into(),
        allow: args.allow.unwrap_or_default(),
        ..RunOptions::default()
    };
    let planned = planner.plan_workflow(&requester, &request, &options);
    Ok(planned.await?)
}

async fn run_workflow(
    parts: &AutomationTools,
    context: &ToolContext,
    args: WorkflowRunArgs,
) -> Result<String, ToolError> {
    let planner = parts.planner().await?;
    let planned = plan(parts, &planner, context, args).await?;
    let run = planner.submit(&planned).await?;
    parts.wake();
    let mut text = format!(
        "Run {}: {}\n{}",
        run.id,
        describe_action(&run.spec.action),
        terms_lines(&run.spec)
    );
    text.push_str(parts.scheduler_note().await?.unwrap_or_default());
    Ok(text.trim_end().to_owned())
}

/// The definition of a workflow, with the label of its file.
struct FoundSource {
    source: WorkflowSource,
    label: Label,
}

async fn find_source(
    parts: &AutomationTools,
    name: Option<String>,
    file_path: Option<String>,
    yaml_content: Option<String>,
) -> Result<FoundSource, ToolError> {
    let plain = |source| FoundSource {
        source,
        label: Label::default(),
    };
    match (filled(name), filled(file_path), filled(yaml_content)) {
        (Some(name), None, None) => Ok(plain(WorkflowSource::Saved(name))),
        (None, Some(path), None) => read_source(parts, path).await,
        // A name next to a text is the name of the workflow.
        (_, None, Some(text)) => Ok(plain(WorkflowSource::Text {
            file: INLINE_NAME.to_owned(),
            text,
        })),
        (None, None, None) => Err(ToolError(
            "say which workflow: give `name`, `file_path` or `yaml_content`".to_owned(),
        )),
        _ => Err(ToolError(
            "give one of `name`, `file_path` and `yaml_content`, not several".to_owned(),
        )),
    }
}

/// Reads a workflow file of the workspace. Its content is not the user's own words.
async fn read_source(parts: &AutomationTools, path: String) -> Result<FoundSource, ToolError> {
    let Some(workspace) = parts.workspace.clone() else {
        return Err(ToolError(
            "there is no workspace to read files from".to_owned(),
        ));
    };
    let name = path.clone();
    let read = move || -> Result<String, ToolError> {
        let (real, _) = workspace.resolve_for_rules(&path)?;
        let failed = |error: std::io::Error| ToolError(format!("cannot read `{path}`: {error}"));
        let (file, _) = workspace.open_file(&real).map_err(failed)?;
        let mut text = String::new();
        let limit = MAX_FILE_BYTES as u64 + 1;
        file.take(limit).read_to_string(&mut text).map_err(failed)?;
        Ok(text)
    };
    let text = tokio::task::spawn_blocking(read)
        .await
        .map_err(|stopped| ToolError(stopped.to_string()))??;
    let cited = format!("workflow file {name}");
    Ok(FoundSource {
        source: WorkflowSource::Text { file: name, text },
        label: Label::untrusted(&cited).joined(&Label::private(&cited)),
    })
}

#[derive(Deserialize, JsonSchema)]
struct WorkflowValidateArgs {
    /// The text of a workflow.
    yaml_content: Option<String>,
    /// A workflow file of the workspace.
    file_path: Option<String>,
    /// The name of a saved workflow.
    name: Option<String>,
}

pub(super) fn workflow_validate(parts: AutomationTools) -> Tool {
    let description = "Checks a workflow and lists every error with its line, column and a suggestion. \
        Keys: name, description, params, schedule, timezone, concurrency, deliver_to, steps; of a step: id, agent and prompt \
        (with input), or tool and with, depends_on, if, retry, timeout, approval, on_failure, deliver_to.";
    Tool::new(
        "workflow_validate",
        description,
        Safety::Safe,
        move |context, args: WorkflowValidateArgs| {
            let parts = parts.clone();
            async move { run_validate(&parts, &context, args).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::WORKFLOW_VALIDATE)
}

async fn run_validate(
    parts: &AutomationTools,
    context: &ToolContext,
    args: WorkflowValidateArgs,
) -> Result<lango_domain::ToolOutput, ToolError> {
    let found = find_source(parts, args.name, args.file_path, args.yaml_content).await?;
    let planner = parts.planner().await?;
    let checked = planner
        .check_workflow(&context.principal, &found.source)
        .await;
    let text = match checked {
        Ok(workflow) => format!("The workflow is correct.\n{}", summary(&workflow)),
        Err(PlanError::Workflow(errors)) => errors_text(&errors),
        Err(error) => return Err(error.into()),
    };
    Ok(lango_domain::ToolOutput::from_labeled(
        lango_domain::LabeledText {
            text,
            label: found.label,
        },
    ))
}

fn errors_text(errors: &[WorkflowError]) -> String {
    let count = match errors.len() {
        1 => "1 error".to_owned(),
        count => format!("{count} errors"),
    };
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    format!("The workflow has {count}:\n{}", lines.join("\n"))
}

fn summary(workflow: &Workflow) -> String {
    let step = |step: &crate::workflow::WorkflowStep| {
        let action = match &step.action {
            StepAction::Agent { agent, .. } => agent.as_deref().unwrap_or("the team").to_owned(),
            StepAction::Tool { tool, .. } => tool.clone(),
        };
        match step.depends_on.as_slice() {
            [] => format!("  {}: {action}", step.id),
            after => format!("  {}: {action}, after {}", step.id, after.join(", ")),
        }
    };
    let steps: Vec<String> = workflow.steps.iter().map(step).collect();
    let schedule = workflow.schedule.as_ref().map(|schedule| {
        format!(
            "\nIt has the schedule `{schedule}`; it starts with a job: cron_add with this workflow."
        )
    });
    format!(
        "{} ({} steps)\n{}{}",
        workflow.name,
        workflow.steps.len(),
        steps.join("\n"),
        schedule.unwrap_or_default()
    )
}

#[derive(Deserialize, JsonSchema)]
struct WorkflowSaveArgs {
    /// The name; that of the workflow itself if left out.
    name: Option<String>,
    /// The text of the workflow.
    yaml_content: String,
}

pub(super) fn workflow_save(parts: AutomationTools) -> Tool {
    let description = "Saves a workflow under a name, so that it can be run and scheduled by it. Earlier versions are kept.";
    let asked = parts.clone();
    Tool::new(
        "workflow_save",
        description,
        Safety::Moderate,
        move |context, args: WorkflowSaveArgs| {
            let parts = parts.clone();
            async move { run_save(&parts, &context, args).await }
        },
    )
    .with_intent(move |context, args: WorkflowSaveArgs| {
        let parts = asked.clone();
        async move {
            let (name, _) = check_save(&parts, &args)?;
            // The saved text counts as the user's own later, so content of others is asked about.
            let level = match context.label.is_untrusted() {
                true => Safety::Dangerous,
                false => Safety::Moderate,
            };
            let shows = format!(
                "saves the workflow `{name}`:\n{}",
                escape_hidden_chars(&args.yaml_content)
            );
            Ok(Intent {
                level,
                shows,
                subject: name,
                pattern: None,
            })
        }
    })
}

fn check_save(
    parts: &AutomationTools,
    args: &WorkflowSaveArgs,
) -> Result<(String, Workflow), ToolError> {
    let catalog = parts.catalog.get();
    let names = catalog.as_ref().map(|catalog| &catalog.names);
    let workflow = parse_workflow(INLINE_NAME, &args.yaml_content, names)
        .map_err(|errors| ToolError(errors_text(&errors)))?;
    let name = filled(args.name.clone()).unwrap_or_else(|| workflow.name.clone());
    let name = name.trim().to_owned();
    let is_hidden = |c: char| c == '\n' || lango_text::sanitize::is_hidden(c);
    if name.chars().count() > MAX_NAME_CHARS || name.chars().any(is_hidden) {
        return Err(ToolError(format!(
            "`{}` cannot be a name: it has one line of at most {MAX_NAME_CHARS} visible characters",
            truncated_line(&name, 80)
        )));
    }
    Ok((name, workflow))
}

async fn run_save(
    parts: &AutomationTools,
    context: &ToolContext,
    args: WorkflowSaveArgs,
) -> Result<String, ToolError> {
    let (name, workflow) = check_save(parts, &args)?;
    let saved = parts.store().await?.save_workflow(NewSavedWorkflow {
        principal: context.principal.clone(),
        name,
        definition: args.yaml_content,
        saved: parts.now(),
        max_versions: MAX_VERSIONS,
    });
    let saved = saved.await.map_err(PlanError::from)?;
    Ok(format!(
        "Saved the workflow `{}`, version {}.\n{}",
        saved.name,
        saved.version,
        summary(&workflow)
    ))
}
