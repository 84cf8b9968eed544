//! Facts as they are told, before they are kept.

use serde_json::{Map, Value};

use super::validity::Moment;

/// Longer names are texts, not names.
pub const MAX_NAME: usize = 4_096;
/// So much may be said about a fact.
pub const MAX_PROPERTIES: usize = 16_384;

/// Subject, predicate, object, and what else is known about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewFact {
    pub subject: String,
    pub predicate: String,
    pub object: String,
    pub subject_type: String,
    pub object_type: String,
    pub properties: Map<String, Value>,
    pub valid_from: Option<Moment>,
    /// The first moment at which it does not hold any more.
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

/// The end of facts: they do not hold any more from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRetirement {
    pub subject: String,
    pub predicate: String,
    pub object: String,
    pub at: Moment,
}

/// What is wrong with a fact that somebody told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    #[error("the {0} is empty")]
    Empty(&'static str),
    #[error("the {part} has {bytes} bytes; at most {MAX_NAME} are a name")]
    TooLong { part: &'static str, bytes: usize },
    #[error("the properties have {0} bytes; at most {MAX_PROPERTIES} are kept")]
    PropertiesTooLong(usize),
    #[error("it would end ({to}) before it begins ({from})")]
    EndsBeforeStart { from: Moment, to: Moment },
}

/// A fact as it is kept: borrowed, checked, in one spelling of spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FactRef<'a> {
    pub subject: &'a str,
    pub predicate: &'a str,
    pub object: &'a str,
    pub subject_type: &'a str,
    pub object_type: &'a str,
    /// JSON, or nothing.
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
