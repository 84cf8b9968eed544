//! Fact files: TSV, N-Triples and JSON Lines. An exported file can be imported again.

mod export;
mod import;
mod json_lines;
mod ntriples;
mod tsv;

use std::borrow::Cow;
use std::path::Path;

use super::fact::{FactError, FactRef};
use super::validity::{DateError, Moment};

pub use export::export;
pub use import::{ImportProgress, ImportReport, import};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactFileFormat {
    Tsv,
    NTriples,
    JsonLines,
}

impl FactFileFormat {
    /// Returns the format for a file's extension.
    pub fn from_path(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "txt" | "tab" => Some(Self::Tsv),
            "nt" | "ntriples" => Some(Self::NTriples),
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// One parsed line.
#[derive(Clone, Debug, Default, PartialEq)]
struct FactLine<'a> {
    subject: Cow<'a, str>,
    predicate: Cow<'a, str>,
    object: Cow<'a, str>,
    subject_type: Cow<'a, str>,
    object_type: Cow<'a, str>,
    properties: Cow<'a, str>,
    valid_from: Option<Moment>,
    valid_to: Option<Moment>,
    /// The source that the line names; empty means the file itself.
    source: Cow<'a, str>,
}

impl FactLine<'_> {
    fn fact_ref(&self) -> FactRef<'_> {
        FactRef {
            subject: &self.subject,
            predicate: &self.predicate,
            object: &self.object,
            subject_type: &self.subject_type,
            object_type: &self.object_type,
            properties: &self.properties,
            valid_from: self.valid_from,
            valid_to: self.valid_to,
        }
    }
}

/// Error in one line of a fact file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactLineError {
    #[error("the line is not valid UTF-8")]
    NotUtf8,
    #[error("the line is longer than 1 MiB")]
    TooLong,
    #[error("found {0} of the 3 tab-separated columns subject, predicate and object")]
    MissingColumns(usize),
    #[error("unknown column `{0}`")]
    UnknownColumn(String),
    #[error("the properties are not a JSON object")]
    InvalidProperties,
    #[error("{0}")]
    Json(String),
    #[error("invalid triple: {0}")]
    Triple(&'static str),
    #[error(transparent)]
    Date(#[from] DateError),
    #[error(transparent)]
    Fact(#[from] FactError),
}

fn parse_moment(text: &str) -> Result<Option<Moment>, DateError> {
    if text.trim().is_empty() {
        Ok(None)
    } else {
        text.parse().map(Some)
    }
}
