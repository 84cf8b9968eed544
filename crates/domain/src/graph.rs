//! The seam to where the facts of the knowledge graph are kept, and where facts come from.

use std::fmt;

use crate::documents::{Place, Unit};
use crate::event::{Principal, SessionId};
use crate::flow::Label;
use crate::session::Answer;

/// Keeps facts as a log of batches that are written once. Ships as SQLite; whoever asks holds what is derived from it.
pub trait GraphStore: Send + Sync {
    /// Returns when the batches are durable.
    fn append<'a>(&'a self, of: &'a Principal, batches: Vec<NewBatch>) -> Answer<'a, ()>;

    /// What happened to a principal's facts behind what was seen, as one look; a part of it where it is much.
    fn changes<'a>(&'a self, of: &'a Principal, seen: Seen) -> Answer<'a, Changes>;

    /// Takes out everything that comes from there, words included; gives how many batches there were.
    fn forget<'a>(&'a self, of: &'a Principal, range: SourceRange) -> Answer<'a, usize>;

    /// Tells in microseconds that nobody wrote: the same pulse twice means no change between. Nothing where it cannot
    /// be told.
    fn pulse(&self) -> Option<Pulse>;
}

/// Facts of one source, in the form of whoever reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBatch {
    pub source: Source,
    /// What the facts were made from (B101).
    pub label: Label,
    pub body: Vec<u8>,
}

/// A batch with its number; numbers only grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub number: u64,
    pub source: Source,
    pub label: Label,
    pub body: Vec<u8>,
}

/// How far a log was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub batch: u64,
    pub gone: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub batches: Vec<Batch>,
    /// Batches that were taken out, by their numbers.
    pub gone: Vec<u64>,
    /// How far this goes.
    pub seen: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse(pub u128);

/// Where a fact comes from; its text form can be read back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Typed at the command line.
    User,
    /// A file of facts.
    Import(String),
    /// A document that is indexed, and where in it.
    Document { source: String, place: String },
    /// Something said or done in a session: the number of an event, or a call.
    Session { session: SessionId, event: String },
    /// As an imported file calls it.
    Other(String),
}

impl Source {
    pub fn document(source: impl Into<String>, place: Place) -> Self {
        let unit = match place.unit {
            Unit::Lines => "lines",
            Unit::Pages => "pages",
        };
        Self::Document { source: source.into(), place: format!("{unit} {}-{}", place.first, place.last) }
    }

    /// Whether its words are the user's own, said to Lango.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::User | Self::Session { .. })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Import(file) => write!(f, "import:{file}"),
            Self::Document { source, place } => write!(f, "document:{source}#{place}"),
            Self::Session { session, event } => write!(f, "session:{session}#{event}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        let divided = |rest: &str| rest.rsplit_once('#').map(|(name, at)| (name.to_owned(), at.to_owned()));
        match text.split_once(':') {
            _ if text == "user" => Self::User,
            Some(("import", file)) => Self::Import(file.to_owned()),
            Some(("document", rest)) => match divided(rest) {
                Some((source, place)) => Self::Document { source, place },
                None => Self::Other(text.to_owned()),
            },
            Some(("session", rest)) => match divided(rest) {
                Some((session, event)) => Self::Session { session: SessionId::new(session), event },
                None => Self::Other(text.to_owned()),
            },
            _ => Self::Other(text.to_owned()),
        }
    }
}

/// Where facts come from, and what they were made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    pub source: Source,
    pub label: Label,
}

/// Only what is typed at the command line is the user's own without a label that says so.
impl From<Source> for Provenance {
    fn from(source: Source) -> Self {
        let label = match &source {
            Source::User => Label::default(),
            other => Label::untrusted(other.to_string()),
        };
        Self { source, label }
    }
}

/// What is to be forgotten: one source, or all that a document or a session brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRange {
    One(Source),
    Document(String),
    Session(SessionId),
}

impl SourceRange {
    /// The text forms of its sources: this one, or all that begin so.
    pub fn text(&self) -> RangeText {
        match self {
            Self::One(source) => RangeText::Exactly(source.to_string()),
            Self::Document(source) => RangeText::Beginning(format!("document:{source}#")),
            Self::Session(session) => RangeText::Beginning(format!("session:{session}#")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeText {
    Exactly(String),
    /// What follows holds no further `#`.
    Beginning(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_back_from_their_text() {
        let place = Place { unit: Unit::Pages, first: 2, last: 3 };
        let session = Source::Session { session: SessionId::new("a#b:c"), event: "12".to_owned() };
        for source in [
            Source::User,
            Source::Import("C:\\facts 1.tsv".to_owned()),
            Source::document("https://example.org/#top", place),
            session,
            Source::Other("위키백과".to_owned()),
            Source::Other("session:without place".to_owned()),
            Source::Other(String::new()),
        ] {
            assert_eq!(Source::from(source.to_string().as_str()), source);
        }
    }
}
