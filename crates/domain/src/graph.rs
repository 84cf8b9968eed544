//! The seam to where the facts of the knowledge graph are kept, and where facts come from.

use std::fmt;

use crate::documents::{DocumentSpan, SpanUnit};
use crate::event::{Principal, SessionId};
use crate::flow::Label;
use crate::session::StoreFuture;

/// Keeps facts as a log of batches that are written once. Ships as SQLite; whoever asks holds what is derived from it.
pub trait GraphStore: Send + Sync {
    /// Returns when the batches are durable.
    fn append<'a>(&'a self, of: &'a Principal, batches: Vec<NewFactBatch>) -> StoreFuture<'a, ()>;

    /// What happened to a principal's facts behind what was seen, as one look; a part of it where it is much.
    fn changes<'a>(
        &'a self,
        of: &'a Principal,
        seen: FactLogPosition,
    ) -> StoreFuture<'a, FactChanges>;

    /// Takes out everything that comes from there, words included; gives how many batches there were.
    fn forget<'a>(&'a self, of: &'a Principal, range: FactSourceFilter) -> StoreFuture<'a, usize>;

    /// Tells in microseconds that nobody wrote: the same pulse twice means no change between. Nothing where it cannot
    /// be told.
    fn log_version(&self) -> Option<FactLogVersion>;
}

/// Facts of one source, in the form of whoever reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFactBatch {
    pub source: FactSource,
    /// What the facts were made from (B101).
    pub label: Label,
    pub body: Vec<u8>,
}

/// A batch with its number; numbers only grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactBatch {
    pub number: u64,
    pub source: FactSource,
    pub label: Label,
    pub body: Vec<u8>,
}

/// How far a log was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactLogPosition {
    pub batch: u64,
    pub removed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactChanges {
    pub batches: Vec<FactBatch>,
    /// Batches that were taken out, by their numbers.
    pub removed: Vec<u64>,
    /// How far this goes.
    pub position: FactLogPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactLogVersion(pub u128);

/// Where a fact comes from; its text form can be read back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FactSource {
    /// Typed at the command line.
    User,
    /// A file of facts.
    Import(String),
    /// A document that is indexed, and where in it.
    Document { source: String, span: String },
    /// Something said or done in a session: the number of an event, or a call.
    Session { session: SessionId, event: String },
    /// As an imported file calls it.
    Other(String),
}

impl FactSource {
    pub fn document(source: impl Into<String>, place: DocumentSpan) -> Self {
        let unit = match place.unit {
            SpanUnit::Lines => "lines",
            SpanUnit::Pages => "pages",
        };
        Self::Document {
            source: source.into(),
            span: format!("{unit} {}-{}", place.first, place.last),
        }
    }

    /// Whether its words are the user's own, said to Lango.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::User | Self::Session { .. })
    }
}

impl fmt::Display for FactSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Import(file) => write!(f, "import:{file}"),
            Self::Document {
                source,
                span: place,
            } => write!(f, "document:{source}#{place}"),
            Self::Session { session, event } => write!(f, "session:{session}#{event}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<&str> for FactSource {
    fn from(text: &str) -> Self {
        let divided = |rest: &str| {
            rest.rsplit_once('#')
                .map(|(name, at)| (name.to_owned(), at.to_owned()))
        };
        match text.split_once(':') {
            _ if text == "user" => Self::User,
            Some(("import", file)) => Self::Import(file.to_owned()),
            Some(("document", rest)) => match divided(rest) {
                Some((source, place)) => Self::Document {
                    source,
                    span: place,
                },
                None => Self::Other(text.to_owned()),
            },
            Some(("session", rest)) => match divided(rest) {
                Some((session, event)) => Self::Session {
                    session: SessionId::new(session),
                    event,
                },
                None => Self::Other(text.to_owned()),
            },
            _ => Self::Other(text.to_owned()),
        }
    }
}

/// Where facts come from, and what they were made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactProvenance {
    pub source: FactSource,
    pub label: Label,
}

/// Only what is typed at the command line is the user's own without a label that says so.
impl From<FactSource> for FactProvenance {
    fn from(source: FactSource) -> Self {
        let label = match &source {
            FactSource::User => Label::default(),
            other => Label::untrusted(other.to_string()),
        };
        Self { source, label }
    }
}

/// What is to be forgotten: one source, or all that a document or a session brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactSourceFilter {
    One(FactSource),
    Document(String),
    Session(SessionId),
}

impl FactSourceFilter {
    /// The text forms of its sources: this one, or all that begin so.
    pub fn text(&self) -> FactSourceText {
        match self {
            Self::One(source) => FactSourceText::Exact(source.to_string()),
            Self::Document(source) => FactSourceText::Prefix(format!("document:{source}#")),
            Self::Session(session) => FactSourceText::Prefix(format!("session:{session}#")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactSourceText {
    Exact(String),
    /// What follows holds no further `#`.
    Prefix(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_back_from_their_text() {
        let place = DocumentSpan {
            unit: SpanUnit::Pages,
            first: 2,
            last: 3,
        };
        let session = FactSource::Session {
            session: SessionId::new("a#b:c"),
            event: "12".to_owned(),
        };
        for source in [
            FactSource::User,
            FactSource::Import("C:\\facts 1.tsv".to_owned()),
            FactSource::document("https://example.org/#top", place),
            session,
            FactSource::Other("위키백과".to_owned()),
            FactSource::Other("session:without place".to_owned()),
            FactSource::Other(String::new()),
        ] {
            assert_eq!(FactSource::from(source.to_string().as_str()), source);
        }
    }
}
