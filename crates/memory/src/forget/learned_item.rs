//! Items that were learned, from all stores.

use std::fmt;

use lango_domain::event::{SessionId, TurnId};
use lango_domain::graph::FactSource;
use lango_domain::inquiries::Inquiry;
use lango_domain::knowledge::{KnowledgeEntry, Learning};
use lango_domain::memory::{Memory, MemoryId};
use lango_text::sanitize::one_line;
use serde_json::{Value, json};

/// A learned item with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedItem {
    pub id: LearnedItemId,
    pub text: String,
    pub(super) origin: LearnedItemOrigin,
}

/// The id of a learned item in its store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LearnedItemId {
    Memory(MemoryId),
    /// A version of a knowledge entry.
    Entry {
        key: String,
        version: u32,
    },
    Learning(u64),
    Inquiry(u64),
    /// A statement in a batch of facts.
    Fact {
        batch: u64,
        at: usize,
    },
}

/// The part of a session that an item was learned from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LearnedItemOrigin {
    Events {
        session: SessionId,
        seqs: Vec<u64>,
    },
    Turn {
        session: SessionId,
        turn: TurnId,
    },
    /// A tool call id, or the sequence number of an event.
    Call {
        session: SessionId,
        call: String,
    },
    NoSession,
}

impl LearnedItemId {
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

/// Formats the key, the number, or the batch number with the position in the batch.
impl fmt::Display for LearnedItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(id) => id.fmt(f),
            Self::Entry { key, .. } => f.write_str(key),
            Self::Learning(id) | Self::Inquiry(id) => id.fmt(f),
            Self::Fact { batch, at } => write!(f, "{batch}.{at}"),
        }
    }
}

impl LearnedItem {
    /// Formats the item on one line, for people.
    pub fn display_line(&self) -> String {
        format!(
            "- {} {}: {}",
            self.id.kind(),
            one_line(&self.id.to_string()),
            one_line(&self.text)
        )
    }

    pub fn to_json(&self) -> Value {
        json!({ "kind": self.id.kind(), "id": self.id.to_string(), "text": self.text })
    }

    pub(super) fn from_memory(memory: &Memory) -> Self {
        let (session, seqs) = (memory.session.clone(), memory.sources.clone());
        let text = memory.note.text.clone();
        Self {
            id: LearnedItemId::Memory(memory.id),
            text,
            origin: LearnedItemOrigin::Events { session, seqs },
        }
    }

    pub(super) fn from_entry(entry: &KnowledgeEntry) -> Self {
        let id = LearnedItemId::Entry {
            key: entry.key.clone(),
            version: entry.version,
        };
        Self {
            id,
            text: entry.content.clone(),
            origin: LearnedItemOrigin::from_source(&entry.source),
        }
    }

    pub(super) fn from_learning(learning: &Learning) -> Self {
        let text = format!("{}: {}", learning.trigger, learning.fix);
        Self {
            id: LearnedItemId::Learning(learning.id),
            text,
            origin: LearnedItemOrigin::from_source(&learning.source),
        }
    }

    pub(super) fn from_inquiry(inquiry: &Inquiry) -> Self {
        let (session, turn) = (inquiry.session.clone(), inquiry.turn.clone());
        let answer = inquiry.answer.as_deref().unwrap_or_default();
        let text = format!("{} {answer}", inquiry.question).trim().to_owned();
        Self {
            id: LearnedItemId::Inquiry(inquiry.id),
            text,
            origin: LearnedItemOrigin::Turn { session, turn },
        }
    }
}

impl LearnedItemOrigin {
    fn from_source(source: &lango_domain::knowledge::Provenance) -> Self {
        match &source.session {
            Some(session) => Self::Turn {
                session: session.clone(),
                turn: source.turn.clone(),
            },
            None => Self::NoSession,
        }
    }

    pub fn from_fact_source(source: &FactSource) -> Self {
        match source {
            FactSource::Session { session, event } => Self::Call {
                session: session.clone(),
                call: event.clone(),
            },
            _ => Self::NoSession,
        }
    }

    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Events { session, .. }
            | Self::Turn { session, .. }
            | Self::Call { session, .. } => Some(session),
            Self::NoSession => None,
        }
    }
}
