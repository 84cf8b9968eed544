//! `lango workflow list` and `lango workflow save`.

use std::fmt::Write as _;
use std::path::Path;

use lango_app::capability::automation::workflow::parse_workflow;
use lango_domain::automation::{NewSavedWorkflow, Run, RunKind, RunQuery, SavedWorkflow};
use lango_text::sanitize::{one_line, truncated_line};
use serde_json::{Value, json};

use super::source::WorkflowText;
use crate::commands::automation::{AutomationView, is_workflow, run_reason, state_with_time};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// Versions of a saved workflow that are kept.
const MAX_VERSIONS: usize = 20;
/// The newest runs among which those of workflows are looked for.
const SEARCHED_RUNS: usize = 2_000;

pub async fn list(view: &AutomationView, limit: usize) -> Result<CommandOutput, CliError> {
    let saved = view.store().saved_workflows(&view.principal).await?;
    let query = RunQuery {
        kinds: vec![RunKind::Workflow, RunKind::Job],
        ..RunQuery::newest(view.principal.clone(), SEARCHED_RUNS.max(limit))
    };
    let mut runs = view.store().runs(query).await?;
    // Jobs have other runs too, which do not count.
    runs.retain(is_workflow);
    runs.truncate(limit);
    let mut plain = String::new();
    for workflow in &saved {
        plain.push_str(&saved_line(view, workflow));
    }
    if saved.is_empty() {
        plain.push_str("No workflow is saved. Save one with `lango workflow save FILE`.\n");
    }
    if !runs.is_empty() {
        plain.push_str("Runs:\n");
    }
    for run in &runs {
        let reason = run_reason(run).map(|reason| format!("; {}", truncated_line(reason, 120)));
        let _ = writeln!(
            plain,
            "  {}  {}  {}{}",
            styled(NAME, run.id),
            one_line(&run.name),
            state_with_time(run, &view.times),
            reason.unwrap_or_default()
        );
    }
    let json = json!({
        "items": runs.iter().map(run_json).collect::<Vec<_>>(),
        "saved": saved.iter().map(saved_json).collect::<Vec<_>>(),
    });
    Ok(CommandOutput::new(plain, json))
}

fn saved_line(view: &AutomationView, saved: &SavedWorkflow) -> String {
    let parsed = parse_workflow(&saved.name, &saved.definition, None).ok();
    let description = parsed.map(|workflow| truncated_line(&workflow.description, 100));
    let at = view.times.both(saved.saved);
    format!(
        "{}  {} {}\n",
        styled(NAME, one_line(&saved.name)),
        description.unwrap_or_default(),
        styled(DIM, format!("(version {}, saved {at})", saved.version))
    )
}

fn run_json(run: &Run) -> Value {
    json!({
        "run": run.id.to_string(),
        "workflow": run.name,
        "state": run.state,
        "reason": run_reason(run),
        "started": run.started,
        "ended": run.ended,
    })
}

fn saved_json(saved: &SavedWorkflow) -> Value {
    json!({ "name": saved.name, "version": saved.version, "saved": saved.saved })
}

pub async fn save(view: &AutomationView, file: &Path) -> Result<CommandOutput, CliError> {
    let read = WorkflowText::read(file)?;
    let workflow = read.parse(&view.catalog()?.names)?;
    let saved = view
        .store()
        .save_workflow(NewSavedWorkflow {
            principal: view.principal.clone(),
            name: workflow.name.clone(),
            definition: read.text,
            saved: view.times.now,
            max_versions: MAX_VERSIONS,
        })
        .await?;
    let name = one_line(&saved.name);
    let mut plain = format!(
        "Saved {name} (version {}). `lango workflow run {name}` runs it.\n",
        saved.version
    );
    if let Some(schedule) = &workflow.schedule {
        let _ = writeln!(
            plain,
            "Its schedule is {}; `lango cron add {name} --workflow {name}` turns it on.",
            one_line(schedule)
        );
    }
    Ok(CommandOutput::new(plain, saved_json(&saved)))
}
