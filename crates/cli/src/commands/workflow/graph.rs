//! `lango workflow graph`: draws a workflow or a run.

use std::path::Path;

use lango_app::capability::automation::workflow::{parse_workflow, render_workflow};
use lango_text::sanitize::one_line;
use serde_json::json;

use super::source::{WorkflowText, first_error};
use super::status::{run_steps, stored_definition};
use crate::commands::automation::AutomationView;
use crate::output::{CliError, CommandOutput};

pub async fn graph(
    view: &AutomationView,
    workflow: &str,
    output: Option<&Path>,
) -> Result<CommandOutput, CliError> {
    let is_run = !workflow.is_empty() && workflow.chars().all(|c| c.is_ascii_digit());
    let svg = match is_run {
        true => draw_run(view, workflow).await?,
        false => {
            let source = WorkflowText::find(view, workflow).await?;
            // A drawing needs no agents and tools, so their names are not checked.
            let parsed = parse_workflow(&source.file, &source.text, None);
            render_workflow(&parsed.map_err(|errors| first_error(&errors))?, None)
        }
    };
    let Some(file) = output else {
        return Ok(CommandOutput::new(svg.clone(), json!({ "svg": svg })));
    };
    let shown = one_line(&file.display().to_string());
    std::fs::write(file, &svg).map_err(|error| {
        CliError::usage(format!("cannot write {shown}: {error}"))
            .with_hint("choose another file with -o FILE.svg")
    })?;
    Ok(CommandOutput::new(
        format!("Wrote {shown}.\n"),
        json!({ "file": file.display().to_string(), "bytes": svg.len() }),
    ))
}

async fn draw_run(view: &AutomationView, run: &str) -> Result<String, CliError> {
    let run = view.workflow_run(run).await?;
    let workflow = stored_definition(&run).ok_or_else(|| {
        CliError::store(format!(
            "the stored workflow of run {} cannot be read",
            run.id
        ))
    })?;
    let steps = run_steps(view, &run).await?;
    Ok(render_workflow(&workflow, Some(&steps)))
}
