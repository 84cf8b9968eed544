//! Storage of the knowledge graph's facts, and their sources.

use std::collections::BTreeSet;
use std::fmt;

use crate::StoreError;
use crate::documents::{DocumentSpan, SpanUnit};
use crate::event::{Principal, SessionId};
use crate::flow::Label;
use crate::session::StoreFuture;

/// Stores facts as a log of immutable batches. Implemented on SQLite; the reader holds the graph that
/// is derived from it.
pub trait GraphStore: Send + Sync {
    /// Appends batches. Returns when they are durable.
    fn append<'a>(
        &'a self,
        principal: &'a Principal,
        batches: Vec<NewFactBatch>,
    ) -> StoreFuture<'a, ()>;

    /// Returns a consistent snapshot of the changes to a principal's facts after a position. Returns
    /// only a part of them if there are many.
    fn changes<'a>(
        &'a self,
        principal: &'a Principal,
        after: FactLogPosition,
    ) -> StoreFuture<'a, FactChanges>;

    /// Deletes all facts of the matching sources, including their text. Returns the number of batches.
    fn forget<'a>(
        &'a self,
        principal: &'a Principal,
        filter: FactSourceFilter,
    ) -> StoreFuture<'a, usize>;

    /// Returns the version of the log within microseconds: if it is the same twice, nothing was written
    /// in between. Returns `None` if the version is unknown.
    fn log_version(&self) -> Option<FactLogVersion>;
}

/// Reads the statements in the encoded facts of a batch. Implemented by the graph, which defines the
/// encoding.
pub trait FactBatchFormat: Send + Sync {
    /// Returns one text per fact, followed by one text per retirement.
    fn statements(&self, body: &[u8]) -> Result<Vec<String>, StoreError>;

    /// Returns the batch without the statements at these indexes, or `None` if nothing remains.
    fn remove_statements(
        &self,
        body: &[u8],
        removed: &BTreeSet<usize>,
    ) -> Result<Option<Vec<u8>>, StoreError>;
}

/// The encoded facts of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFactBatch {
    pub source: FactSource,
    /// The label of the content that the facts were derived from (B101).
    pub label: Label,
    pub body: Vec<u8>,
}

/// A batch with its number; numbers only increase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactBatch {
    pub number: u64,
    pub source: FactSource,
    pub label: Label,
    pub body: Vec<u8>,
}

/// A position in the log of facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactLogPosition {
    pub batch: u64,
    pub removed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactChanges {
    pub batches: Vec<FactBatch>,
    /// The numbers of deleted batches.
    pub removed: Vec<u64>,
    /// The position after these changes.
    pub position: FactLogPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactLogVersion(pub u128);

/// The source of a fact. Its text form can be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FactSource {
    /// Typed at the command line.
    User,
    /// A file with facts.
    Import(String),
    /// An indexed document, and the span in it.
    Document { source: String, span: String },
    /// A session, and the number of an event or the id of a call in it.
    Session { session: SessionId, event: String },
    /// The source as named in an imported file.
    Other(String),
}

impl FactSource {
    pub fn document(source: impl Into<String>, span: DocumentSpan) -> Self {
        let unit = match span.unit {
            SpanUnit::Lines => "lines",
            SpanUnit::Pages => "pages",
        };
        Self::Document {
            source: source.into(),
            span: format!("{unit} {}-{}", span.first, span.last),
        }
    }

    /// Returns true if the user said the fact to Lango.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::User | Self::Session { .. })
    }
}

impl fmt::Display for FactSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Import(file) => write!(f, "import:{file}"),
            Self::Document { source, span } => write!(f, "document:{source}#{span}"),
            Self::Session { session, event } => write!(f, "session:{session}#{event}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<&str> for FactSource {
    fn from(text: &str) -> Self {
        let split = |rest: &str| {
            rest.rsplit_once('#')
                .map(|(name, suffix)| (name.to_owned(), suffix.to_owned()))
        };
        match text.split_once(':') {
            _ if text == "user" => Self::User,
            Some(("import", file)) => Self::Import(file.to_owned()),
            Some(("document", rest)) => match split(rest) {
                Some((source, span)) => Self::Document { source, span },
                None => Self::Other(text.to_owned()),
            },
            Some(("session", rest)) => match split(rest) {
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

/// The source of facts, and the label of the content they were derived from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactProvenance {
    pub source: FactSource,
    pub label: Label,
}

/// Only facts typed at the command line are plain; all others need an explicit label for that.
impl From<FactSource> for FactProvenance {
    fn from(source: FactSource) -> Self {
        let label = match &source {
            FactSource::User => Label::default(),
            other => Label::untrusted(other.to_string()),
        };
        Self { source, label }
    }
}

/// The sources to forget: one source, or all spans of a document or events of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactSourceFilter {
    One(FactSource),
    Document(String),
    Session(SessionId),
}

impl FactSourceFilter {
    /// Returns the text form of the sources: an exact text or a prefix.
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
    /// The rest of the text contains no further `#`.
    Prefix(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_round_trip() {
        let span = DocumentSpan {
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
            FactSource::document("https://example.org/#top", span),
            session,
            FactSource::Other("위키백과".to_owned()),
            FactSource::Other("session:without place".to_owned()),
            FactSource::Other(String::new()),
        ] {
            assert_eq!(FactSource::from(source.to_string().as_str()), source);
        }
    }
}
