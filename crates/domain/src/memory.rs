//! Storage of conversation memory: observations, explicit memories, and reflections.

mod note;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::event::{Event, Principal, SessionId, TurnId, Usage};
use crate::session::{SessionKey, StoreFuture};

pub use note::{MemoryKind, MemoryNote, MemoryOrigin, MemoryPriority, MemorySpeaker};

/// Stores conversation memory. Implemented on SQLite, in the same file as the sessions.
pub trait MemoryStore: Send + Sync {
    /// Returns how far a session is observed.
    fn progress<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ObservationProgress>;

    /// Returns whole turns after an event, in order, without the running one. Stops at the turn that
    /// reaches this number of bytes.
    fn turns_after<'a>(
        &'a self,
        key: &'a SessionKey,
        seq: u64,
        bytes: usize,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Returns the user's request in a turn, with the number of its event.
    fn request<'a>(
        &'a self,
        key: &'a SessionKey,
        turn: &'a TurnId,
    ) -> StoreFuture<'a, Option<(u64, String)>>;

    /// Returns the events with these numbers, as far as they exist.
    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        seqs: Vec<u64>,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Returns the numbers of those events that must not be remembered any more.
    fn forgotten_events<'a>(
        &'a self,
        principal: &'a Principal,
        events: Vec<(TurnId, u64)>,
    ) -> StoreFuture<'a, Vec<u64>>;

    /// Saves the observations of a span and marks it as observed, atomically.
    fn save_span<'a>(
        &'a self,
        key: &'a SessionKey,
        span: ObservedSpan,
    ) -> StoreFuture<'a, MemoryWrite>;

    /// Makes the observations through this event replace it in requests.
    fn activate<'a>(&'a self, key: &'a SessionKey, through: u64) -> StoreFuture<'a, ()>;

    /// Returns the memories that replace the earlier part of a session: reflections, then the
    /// observations that no reflection condenses, in order.
    fn digest_memories<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>>;

    /// Returns a session's observations that no reflection condenses, active or not, in order.
    fn uncondensed_memories<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>>;

    /// Saves reflections, replacing the previous ones.
    fn save_reflections<'a>(
        &'a self,
        key: &'a SessionKey,
        reflections: NewReflections,
    ) -> StoreFuture<'a, MemoryWrite>;

    /// Saves a memory that was explicitly requested and returns its id.
    fn store<'a>(&'a self, key: &'a SessionKey, memory: NewMemory) -> StoreFuture<'a, MemoryId>;

    /// Saves when the observer may retry after a failure.
    fn save_backoff<'a>(
        &'a self,
        key: &'a SessionKey,
        backoff: ObserverBackoff,
    ) -> StoreFuture<'a, ()>;

    /// Records the usage of a model call of the observer.
    fn record_usage<'a>(
        &'a self,
        key: &'a SessionKey,
        turn: TurnId,
        usage: Usage,
    ) -> StoreFuture<'a, ()>;

    /// Returns a revision that changes with every change of the memories.
    fn revision<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, MemoryRevision>;

    /// Returns observations after an id, in order.
    fn observations_after<'a>(
        &'a self,
        principal: &'a Principal,
        id: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Memory>>;

    /// Returns observations or reflections, newest first.
    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        query: MemoryQuery,
    ) -> StoreFuture<'a, Vec<Memory>>;

    fn memory<'a>(
        &'a self,
        principal: &'a Principal,
        id: MemoryId,
    ) -> StoreFuture<'a, Option<Memory>>;

    fn stats<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, MemoryStats>;
}

/// The id of an observation (`o12`) or a reflection (`r3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryId {
    Observation(u64),
    Reflection(u64),
}

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observation(number) => write!(f, "o{number}"),
            Self::Reflection(number) => write!(f, "r{number}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid memory id `{0}`; expected an id such as o12 or r3")]
pub struct InvalidMemoryId(String);

impl FromStr for MemoryId {
    type Err = InvalidMemoryId;

    fn from_str(text: &str) -> Result<Self, InvalidMemoryId> {
        let mut letters = text.trim().chars();
        let kind = letters.next().map(|letter| letter.to_ascii_lowercase());
        let digits = letters.as_str();
        let number = digits
            .parse()
            .ok()
            .filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match (kind, number) {
            (Some('o'), Some(number)) => Ok(Self::Observation(number)),
            (Some('r'), Some(number)) => Ok(Self::Reflection(number)),
            _ => Err(InvalidMemoryId(text.to_owned())),
        }
    }
}

/// A memory with its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub id: MemoryId,
    pub session: SessionId,
    pub note: MemoryNote,
    pub origin: MemoryOrigin,
    /// The numbers of the events that it comes from.
    pub sources: Vec<u64>,
    /// The observations that a reflection condenses.
    pub condenses: Vec<u64>,
    /// 0 for an observation; for a reflection, how often it was condensed.
    pub generation: u32,
}

/// A memory to save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    pub note: MemoryNote,
    pub turn: TurnId,
    pub sources: Vec<u64>,
}

/// Whole turns that were observed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedSpan {
    /// The last event that was observed before the span.
    pub after: u64,
    pub last: u64,
    /// The tokens of its events in a request.
    pub tokens: usize,
    pub origin: MemoryOrigin,
    pub observations: Vec<NewMemory>,
}

/// Reflections and the observations they condense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReflections {
    /// The generation that these reflections are based on.
    pub base_generation: u32,
    pub origin: MemoryOrigin,
    /// The observations that the reflections replace.
    pub condensed: Vec<u64>,
    pub reflections: Vec<NewReflection>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReflection {
    pub note: MemoryNote,
    pub condenses: Vec<u64>,
}

/// The progress of observing a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservationProgress {
    /// The last event that was observed.
    pub observed_through: u64,
    /// The last event that active observations replace.
    pub active_through: u64,
    /// Spans after `active_through`: their last event and their tokens.
    pub pending: Vec<(u64, usize)>,
    /// The generation of the newest reflections.
    pub generation: u32,
    /// The tokens of the active observations that are not condensed.
    pub tokens: usize,
    pub backoff: Option<ObserverBackoff>,
}

/// The backoff of an observer after failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObserverBackoff {
    /// The number of failures in a row.
    pub failures: u32,
    /// The number of those failures with an unusable reply.
    pub unusable: u32,
    pub not_before: Timestamp,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWrite {
    Written,
    /// Another writer was first; nothing was written.
    Conflict,
}

/// A revision of the memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRevision {
    /// The newest observation.
    pub newest: u64,
    /// The number of deleted observations.
    pub removed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryQuery {
    pub level: MemoryLevel,
    pub session: Option<SessionId>,
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLevel {
    Observations,
    Reflections,
}

/// Statistics about memories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryStats {
    /// Everything but reflections.
    pub observations: u64,
    /// Observations that were explicitly requested.
    pub asked: u64,
    pub reflections: u64,
    /// Sessions that were observed.
    pub sessions: u64,
    /// Sessions in which observations replace the earlier part.
    pub condensed_sessions: u64,
    /// Sessions whose observer is backing off.
    pub put_off: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        for id in [MemoryId::Observation(12), MemoryId::Reflection(3)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(" O7 ".parse(), Ok(MemoryId::Observation(7)));
        for text in [
            "",
            "o",
            "12",
            "x1",
            "o-1",
            "o+1",
            "o1.5",
            "o99999999999999999999",
            "오1",
            "o1 ",
        ] {
            assert_eq!(text.parse::<MemoryId>().is_ok(), text == "o1 ", "{text}");
        }
    }

    #[test]
    fn names_are_parsed() {
        assert_eq!(
            MemoryKind::from_name(" Preference "),
            Some(MemoryKind::Preference)
        );
        assert_eq!(MemoryPriority::from_name("urgent"), None);
        assert_eq!(
            MemoryOrigin::from("x/y".to_owned()),
            MemoryOrigin::Model("x/y".to_owned())
        );
    }
}
