//! New facts and their validation, before they are stored.

use serde_json::{Map, Value};

use super::validity::Moment;

/// Maximum length of a name in bytes.
pub const MAX_NAME: usize = 4_096;
/// Maximum length of a fact's properties in bytes.
pub const MAX_PROPERTIES: usize = 16_384;

/// A fact to add: subject, predicate, object, and optional details.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewFact {
    pub subject: String,
    pub predicate: String,
    pub object: String,
    pub subject_type: String,
    pub object_type: String,
    pub properties: Map<String, Value>,
    pub valid_from: Option<Moment>,
    /// The first moment at which the fact is no longer valid.
    pub valid_to: Option<Moment>,
}

impl NewFact {
    pub fn new(
        subject: impl Into<String>,
        predicate: impl Into<String>,
        object: impl Into<String>,
    ) -> Self {
        let (subject, predicate, object) = (subject.into(), predicate.into(), object.into());
        Self {
            subject,
            predicate,
            object,
            ..Self::default()
        }
    }
}

/// Ends the validity of all facts with this triple at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRetirement {
    pub subject: String,
    pub predicate: String,
    pub object: String,
    pub at: Moment,
}

/// Error from validating a fact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    #[error("the {0} is empty")]
    Empty(&'static str),
    #[error("the {part} has {bytes} bytes; the limit is {MAX_NAME}")]
    TooLong { part: &'static str, bytes: usize },
    #[error("the properties have {0} bytes; the limit is {MAX_PROPERTIES}")]
    PropertiesTooLong(usize),
    #[error("the end of its validity ({to}) is before the start ({from})")]
    EndsBeforeStart { from: Moment, to: Moment },
}

/// A borrowed fact in the form in which it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FactRef<'a> {
    pub subject: &'a str,
    pub predicate: &'a str,
    pub object: &'a str,
    pub subject_type: &'a str,
    pub object_type: &'a str,
    /// A JSON object, or empty.
    pub properties: &'a str,
    pub valid_from: Option<Moment>,
    pub valid_to: Option<Moment>,
}

impl FactRef<'_> {
    pub fn check(&self) -> Result<(), FactError> {
        let parts = [
            ("subject", self.subject),
            ("predicate", self.predicate),
            ("object", self.object),
        ];
        for (part, text) in parts {
            if text.trim().is_empty() {
                return Err(FactError::Empty(part));
            }
        }
        let types = [
            ("subject's type", self.subject_type),
            ("object's type", self.object_type),
        ];
        for (part, text) in parts.into_iter().chain(types) {
            if text.len() > MAX_NAME {
                return Err(FactError::TooLong {
                    part,
                    bytes: text.len(),
                });
            }
        }
        if self.properties.len() > MAX_PROPERTIES {
            return Err(FactError::PropertiesTooLong(self.properties.len()));
        }
        match (self.valid_from, self.valid_to) {
            (Some(from), Some(to)) if to < from => Err(FactError::EndsBeforeStart { from, to }),
            _ => Ok(()),
        }
    }
}
