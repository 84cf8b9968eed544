//! Reading workflows from files and from the store.

use std::io::Read as _;
use std::path::Path;

use lango_app::capability::automation::workflow::{
    MAX_FILE_BYTES, Workflow, WorkflowCatalog, WorkflowError, parse_workflow,
};
use lango_text::sanitize::{one_line, truncated_line};
use lango_text::suggest;

use crate::commands::automation::AutomationView;
use crate::output::CliError;

/// The text of a workflow, with a name for errors.
pub struct WorkflowText {
    pub file: String,
    pub text: String,
}

impl WorkflowText {
    /// Reads a file, but not more of it than a workflow may have.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let file = one_line(&path.display().to_string());
        let failed = |reason: String| {
            CliError::usage(format!("cannot read {file}: {reason}"))
                .with_hint("pass a workflow file, such as review.flow.yaml")
        };
        let metadata = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if !metadata.is_file() {
            return Err(failed("it is not a file".to_owned()));
        }
        let opened = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
        let mut bytes = Vec::new();
        let limited = opened
            .take(MAX_FILE_BYTES as u64 + 1)
            .read_to_end(&mut bytes);
        limited.map_err(|error| failed(error.to_string()))?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // The end of a file that is too large may be in the middle of a character.
            Err(error) if error.as_bytes().len() > MAX_FILE_BYTES => {
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
            Err(_) => return Err(failed("it is not text in UTF-8".to_owned())),
        };
        Ok(Self { file, text })
    }

    /// Finds a workflow: a file, or else a saved workflow.
    pub async fn find(view: &AutomationView, name: &str) -> Result<Self, CliError> {
        let path = view.context.environment.working_folder.join(name);
        if path.exists() || name.contains(['/', '\\']) || is_file_name(name) {
            return Self::read(Path::new(name));
        }
        let saved = view
            .store()
            .saved_workflow(&view.principal, name, None)
            .await?;
        if let Some(saved) = saved {
            return Ok(Self {
                file: saved.name,
                text: saved.definition,
            });
        }
        let all = view.store().saved_workflows(&view.principal).await?;
        let names = all.iter().map(|saved| saved.name.as_str());
        let hint = suggest::did_you_mean(name, names).unwrap_or_else(|| {
            "`lango workflow list` lists the saved workflows; a file is named by its path"
                .to_owned()
        });
        let message = format!("there is no workflow `{}`", truncated_line(name, 80));
        Err(CliError::usage(message).with_hint(one_line(&hint)))
    }

    /// Parses the workflow and checks the names in it. The first error names its line; others are counted.
    pub fn parse(&self, catalog: &WorkflowCatalog) -> Result<Workflow, CliError> {
        parse_workflow(&self.file, &self.text, Some(catalog)).map_err(|errors| first_error(&errors))
    }
}

fn is_file_name(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}

pub fn first_error(errors: &[WorkflowError]) -> CliError {
    let Some(first) = errors.first() else {
        return CliError::usage("the workflow cannot be read");
    };
    let WorkflowError {
        file,
        line,
        column,
        message,
        ..
    } = first;
    let more = match errors.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more; `lango workflow validate` lists all)"),
    };
    let error = CliError::usage(format!("{file}:{line}:{column}: {message}{more}"));
    match &first.hint {
        Some(hint) => error.with_hint(hint.clone()),
        None => error,
    }
}
