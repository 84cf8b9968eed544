//! Errors in workflow files, with their positions.

use std::fmt;

use lango_domain::spanned::{SpannedEntry, SpannedValue};
use lango_text::sanitize;
use serde::{Deserialize, Serialize};

/// Most errors that are reported of one file.
const MAX_ERRORS: usize = 50;

/// An error in a workflow file, as `lango workflow validate` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowError {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
    /// A correct form.
    pub hint: Option<String>,
}

impl fmt::Display for WorkflowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            message,
            hint,
        } = self;
        write!(f, "{file}:{line}:{column}: {message}")?;
        match hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for WorkflowError {}

/// A line and a column, both starting at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilePosition {
    pub line: usize,
    pub column: usize,
}

impl FilePosition {
    pub const START: Self = Self { line: 1, column: 1 };
}

impl From<&SpannedValue> for FilePosition {
    fn from(value: &SpannedValue) -> Self {
        Self {
            line: value.line,
            column: value.column,
        }
    }
}

impl From<&SpannedEntry> for FilePosition {
    fn from(entry: &SpannedEntry) -> Self {
        Self {
            line: entry.line,
            column: entry.column,
        }
    }
}

/// Collects the errors of a file.
pub(super) struct ErrorList<'a> {
    file: &'a str,
    source: &'a str,
    errors: Vec<WorkflowError>,
}

impl<'a> ErrorList<'a> {
    pub fn new(file: &'a str, source: &'a str) -> Self {
        Self {
            file,
            source,
            errors: Vec::new(),
        }
    }

    pub fn push(&mut self, at: impl Into<FilePosition>, message: impl AsRef<str>) {
        self.add(at.into(), message.as_ref(), None);
    }

    pub fn push_with_hint(
        &mut self,
        at: impl Into<FilePosition>,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
    ) {
        self.add(at.into(), message.as_ref(), Some(hint.as_ref()));
    }

    /// Adds an error. Messages quote the file and are shown in terminals, so control characters go.
    fn add(&mut self, at: FilePosition, message: &str, hint: Option<&str>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(WorkflowError {
                file: self.file.to_owned(),
                line: at.line,
                column: at.column,
                message: sanitize::strip_control_chars(message),
                hint: hint.map(sanitize::strip_control_chars),
            });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the position of a byte offset in a text of the file. Escapes and blocks of several lines
    /// cannot be mapped; there it is the start of the text.
    pub fn position_in(&self, value: &SpannedValue, text: &str, offset: usize) -> FilePosition {
        let start = FilePosition::from(value);
        let precise = || {
            let line = self.source.lines().nth(value.line.checked_sub(1)?)?;
            let mut rest = line.chars();
            rest.by_ref().take(value.column.checked_sub(1)?).count();
            let rest = rest.as_str();
            let unquoted = rest.strip_prefix(['\'', '"']).unwrap_or(rest);
            let before = text.get(..offset)?;
            let quote = usize::from(unquoted.len() < rest.len());
            unquoted.starts_with(before).then(|| FilePosition {
                line: value.line,
                column: value.column + quote + before.chars().count(),
            })
        };
        precise().unwrap_or(start)
    }

    /// Returns the errors in the order of the file.
    pub fn into_errors(mut self) -> Vec<WorkflowError> {
        self.errors.sort_by_key(|error| (error.line, error.column));
        self.errors
    }
}
