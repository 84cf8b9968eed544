//! `lango workflow validate`: names every error of workflow files.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use lango_app::capability::automation::workflow::{WorkflowError, parse_workflow};
use lango_text::sanitize::one_line;
use serde_json::json;

use super::source::WorkflowText;
use crate::commands::automation::AutomationView;
use crate::output::{CliError, CommandOutput, DIM, ERROR, OutputFormat, styled};

/// The exit code of files with errors, as for other errors of what the user wrote.
const INVALID_EXIT_CODE: u8 = 2;

pub fn validate(
    view: &AutomationView,
    files: &[PathBuf],
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let catalog = view.catalog()?;
    let mut plain = String::new();
    let mut all: Vec<WorkflowError> = Vec::new();
    for file in files {
        let source = WorkflowText::read(file)?;
        match parse_workflow(&source.file, &source.text, Some(&catalog.names)) {
            Ok(workflow) => {
                let steps = match workflow.steps.len() {
                    1 => "1 step".to_owned(),
                    count => format!("{count} steps"),
                };
                let name = one_line(&workflow.name);
                let _ = writeln!(plain, "{}: {name} is valid ({steps}).", source.file);
            }
            Err(errors) => {
                errors
                    .iter()
                    .for_each(|error| plain.push_str(&error_lines(error)));
                all.extend(errors);
            }
        }
    }
    let is_valid = all.is_empty();
    let printed = CommandOutput::new(plain, json!({ "ok": is_valid, "errors": all })).print(format);
    Ok(match is_valid {
        true => printed,
        false => ExitCode::from(INVALID_EXIT_CODE),
    })
}

fn error_lines(error: &WorkflowError) -> String {
    let WorkflowError {
        file,
        line,
        column,
        message,
        hint,
    } = error;
    let mut text = format!(
        "{file}:{line}:{column}: {} {message}\n",
        styled(ERROR, "error:")
    );
    if let Some(hint) = hint {
        let _ = writeln!(text, "  {} {hint}", styled(DIM, "hint:"));
    }
    text
}
