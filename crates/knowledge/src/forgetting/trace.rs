//! Something that was learned, wherever it is kept.

use std::fmt;

use lango_domain::event::{SessionId, TurnId};
use lango_domain::graph::FactSource;
use lango_domain::inquiries::Inquiry;
use lango_domain::knowledge::{KnowledgeEntry, Learning};
use lango_domain::memory::{Memory, MemoryId};
use lango_domain::text::one_line;
use serde_json::{Value, json};

/// Something that was learned, with the words that it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub id: TraceId,
    pub text: String,
    pub(super) origin: Origin,
}

/// What it is known under, by where it is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceId {
    Memory(MemoryId),
    /// A version of a key.
    Entry {
        key: String,
        version: u32,
    },
    Learning(u64),
    Inquiry(u64),
    /// A statement of a batch.
    Fact {
        batch: u64,
        at: usize,
    },
}

/// Where it was learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Events {
        session: SessionId,
        seqs: Vec<u64>,
    },
    Turn {
        session: SessionId,
        turn: TurnId,
    },
    /// A call, or the number of an event.
    Call {
        session: SessionId,
        call: String,
    },
    Elsewhere,
}

impl TraceId {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Memory(MemoryId::Observation(_)) => "observation",
            Self::Memory(MemoryId::Reflection(_)) => "reflection",
            Self::Entry { .. } => "knowledge",
            Self::Learning(_) => "learning",
            Self::Inquiry(_) => "inquiry",
            Self::Fact { .. } => "fact",
        }
    }
}

/// A key, a number, or the number of a batch with the place in it.
impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(id) => id.fmt(f),
            Self::Entry { key, .. } => f.write_str(key),
            Self::Learning(id) | Self::Inquiry(id) => id.fmt(f),
            Self::Fact { batch, at } => write!(f, "{batch}.{at}"),
        }
    }
}

impl Trace {
    /// For people, with its words.
    pub fn line(&self) -> String {
        format!("- {} {}: {}", self.id.kind(), one_line(&self.id.to_string()), one_line(&self.text))
    }

    pub fn item(&self) -> Value {
        json!({ "kind": self.id.kind(), "id": self.id.to_string(), "text": self.text })
    }

    pub(super) fn of_memory(memory: &Memory) -> Self {
        let (session, seqs) = (memory.session.clone(), memory.sources.clone());
        let text = memory.note.text.clone();
        Self { id: TraceId::Memory(memory.id), text, origin: Origin::Events { session, seqs } }
    }

    pub(super) fn of_entry(entry: &KnowledgeEntry) -> Self {
        let id = TraceId::Entry { key: entry.key.clone(), version: entry.version };
        Self { id, text: entry.content.clone(), origin: Origin::of(&entry.source) }
    }

    pub(super) fn of_learning(learning: &Learning) -> Self {
        let text = format!("{}: {}", learning.trigger, learning.fix);
        Self { id: TraceId::Learning(learning.id), text, origin: Origin::of(&learning.source) }
    }

    pub(super) fn of_inquiry(inquiry: &Inquiry) -> Self {
        let (session, turn) = (inquiry.session.clone(), inquiry.turn.clone());
        let answer = inquiry.answer.as_deref().unwrap_or_default();
        let text = format!("{} {answer}", inquiry.question).trim().to_owned();
        Self { id: TraceId::Inquiry(inquiry.id), text, origin: Origin::Turn { session, turn } }
    }
}

impl Origin {
    fn of(source: &lango_domain::knowledge::Provenance) -> Self {
        match &source.session {
            Some(session) => Self::Turn { session: session.clone(), turn: source.turn.clone() },
            None => Self::Elsewhere,
        }
    }

    pub fn of_fact(source: &FactSource) -> Self {
        match source {
            FactSource::Session { session, event } => {
                Self::Call { session: session.clone(), call: event.clone() }
            }
            _ => Self::Elsewhere,
        }
    }

    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Events { session, .. } | Self::Turn { session, .. } | Self::Call { session, .. } => {
                Some(session)
            }
            Self::Elsewhere => None,
        }
    }
}
