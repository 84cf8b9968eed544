//! Facts in files: lines of columns, N-Triples, lines of JSON. What is written can be read back.

mod exporting;
mod importing;
mod json_lines;
mod ntriples;
mod tsv;

use std::borrow::Cow;
use std::path::Path;

use super::fact::{FactError, FactRef};
use super::validity::{DateError, Moment};

pub use exporting::export;
pub use importing::{ImportProgress, ImportReport, import};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactFileFormat {
    Tsv,
    NTriples,
    JsonLines,
}

impl FactFileFormat {
    /// By the end of its name.
    pub fn from_path(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "txt" | "tab" => Some(Self::Tsv),
            "nt" | "ntriples" => Some(Self::NTriples),
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// One line, as it was read.
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
    /// As the file calls it; the file itself when empty.
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

/// What is wrong with a line, for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactLineError {
    #[error("it is no UTF-8 text")]
    NotUtf8,
    #[error("it is longer than a million bytes")]
    TooLong,
    #[error("it has {0} of the 3 columns subject, predicate and object, with tabs between them")]
    MissingColumns(usize),
    #[error("the column `{0}` means nothing here")]
    UnknownColumn(String),
    #[error("the properties are no JSON object")]
    InvalidProperties,
    #[error("{0}")]
    Json(String),
    #[error("it is no triple: {0}")]
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
