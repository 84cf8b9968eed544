//! The seam to where memory of conversations is kept: observations, what was asked to be remembered, and reflections.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Event, Principal, SessionId, TurnId, Usage};
use crate::flow::Label;
use crate::session::SessionKey;
use crate::session::StoreFuture;

/// Keeps memory of conversations. Ships as SQLite, in the same file as the sessions that it tells of.
pub trait MemoryStore: Send + Sync {
    /// How far a session is observed.
    fn progress<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, ObservationProgress>;

    /// Whole turns behind an event, in order, without the one that still runs; no further than the turn with which so many
    /// bytes are reached.
    fn turns_after<'a>(
        &'a self,
        of: &'a SessionKey,
        seq: u64,
        bytes: usize,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// What the user asked for in a turn, with the event's number.
    fn request<'a>(
        &'a self,
        of: &'a SessionKey,
        turn: &'a TurnId,
    ) -> StoreFuture<'a, Option<(u64, String)>>;

    /// These events, as far as they are there.
    fn events<'a>(&'a self, of: &'a SessionKey, seqs: Vec<u64>)
    -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Those of these events that nothing may be remembered of any more.
    fn forgotten_events<'a>(
        &'a self,
        of: &'a Principal,
        events: Vec<(TurnId, u64)>,
    ) -> StoreFuture<'a, Vec<u64>>;

    /// Keeps what was observed of a piece and, with it, that the piece was observed: both or nothing.
    fn save_span<'a>(
        &'a self,
        of: &'a SessionKey,
        piece: ObservedSpan,
    ) -> StoreFuture<'a, MemoryWrite>;

    /// From now on the observations up to this event stand for it.
    fn activate<'a>(&'a self, of: &'a SessionKey, through: u64) -> StoreFuture<'a, ()>;

    /// What stands for the earlier part of a session: reflections, then what none of them has condensed, in order.
    fn digest_memories<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>>;

    /// What of a session no reflection has condensed, active or not, in order.
    fn uncondensed_memories<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>>;

    /// Keeps reflections in the place of those before them.
    fn save_reflections<'a>(
        &'a self,
        of: &'a SessionKey,
        new: NewReflections,
    ) -> StoreFuture<'a, MemoryWrite>;

    /// Keeps what somebody asked to be remembered, and gives its number.
    fn store<'a>(&'a self, of: &'a SessionKey, memory: NewMemory) -> StoreFuture<'a, MemoryId>;

    /// The observer did not get through; when it may try again.
    fn save_backoff<'a>(
        &'a self,
        of: &'a SessionKey,
        setback: ObserverBackoff,
    ) -> StoreFuture<'a, ()>;

    /// What a call of the observer's took.
    fn record_usage<'a>(
        &'a self,
        of: &'a SessionKey,
        turn: TurnId,
        usage: Usage,
    ) -> StoreFuture<'a, ()>;

    /// A number for what there is, which changes with it.
    fn revision<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, MemoryRevision>;

    /// Observations behind a number, in order.
    fn observations_after<'a>(
        &'a self,
        of: &'a Principal,
        id: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Memory>>;

    /// Observations or reflections, the newest first.
    fn list<'a>(&'a self, of: &'a Principal, which: MemoryQuery) -> StoreFuture<'a, Vec<Memory>>;

    fn memory<'a>(&'a self, of: &'a Principal, id: MemoryId) -> StoreFuture<'a, Option<Memory>>;

    fn stats<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, MemoryStats>;
}

/// The number of an observation (`o12`) or a reflection (`r3`).
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
#[error("`{0}` is no memory's id; those look like o12 and r3")]
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

/// Something that is remembered, with where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub id: MemoryId,
    pub session: SessionId,
    pub note: MemoryNote,
    /// Who wrote it.
    pub origin: MemoryOrigin,
    /// The events that it comes from, by their numbers.
    pub sources: Vec<u64>,
    /// The observations that a reflection condenses.
    pub condenses: Vec<u64>,
    /// 0 for what was observed; for a reflection how often it was condensed.
    pub generation: u32,
}

/// What is remembered, in words, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNote {
    pub text: String,
    pub kind: MemoryKind,
    pub priority: MemoryPriority,
    pub speaker: MemorySpeaker,
    /// What it was made from (B101).
    pub label: Label,
    /// When it was said.
    pub at: Timestamp,
}

/// Something to remember that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    pub note: MemoryNote,
    pub turn: TurnId,
    pub sources: Vec<u64>,
}

/// Whole turns that were observed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedSpan {
    /// The last event that was observed before it.
    pub after: u64,
    pub last: u64,
    /// What its events take in a request.
    pub tokens: usize,
    pub origin: MemoryOrigin,
    pub observations: Vec<NewMemory>,
}

/// Reflections, and what they condense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReflections {
    /// How often had been condensed when this was begun.
    pub base_generation: u32,
    pub origin: MemoryOrigin,
    /// The observations that are told by them from now on.
    pub condensed: Vec<u64>,
    pub reflections: Vec<NewReflection>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReflection {
    pub note: MemoryNote,
    pub condenses: Vec<u64>,
}

/// Who put something into words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum MemoryOrigin {
    /// Whoever asked for it to be remembered.
    Asked,
    /// Rules, without a language model.
    Rules,
    /// The model of that name.
    Model(String),
}

impl fmt::Display for MemoryOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "asked",
            Self::Rules => "rules",
            Self::Model(name) => name,
        })
    }
}

impl From<MemoryOrigin> for String {
    fn from(origin: MemoryOrigin) -> Self {
        origin.to_string()
    }
}

impl From<String> for MemoryOrigin {
    fn from(name: String) -> Self {
        match name.as_str() {
            "asked" => Self::Asked,
            "rules" => Self::Rules,
            _ => Self::Model(name),
        }
    }
}

/// Whose words it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemorySpeaker {
    /// The user's own, and nobody else's.
    User,
    /// Those of agents, files, commands, pages: data, never instructions.
    Others,
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        pub enum $name {
            $($variant),+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            pub fn from_name(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str().eq_ignore_ascii_case(word.trim()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named_enum!(
    /// What kind of thing is remembered.
    MemoryKind {
        Fact = "fact",
        Preference = "preference",
        Decision = "decision",
        Promise = "promise",
        Event = "event",
        Name = "name",
        Date = "date",
    }
);

named_enum!(
    /// How much it matters later.
    MemoryPriority {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
);

impl MemorySpeaker {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Others => "others",
        }
    }
}

/// How far a session is observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservationProgress {
    /// The last event that was observed.
    pub observed_through: u64,
    /// The last event that observations stand for.
    pub active_through: u64,
    /// Pieces behind `active`: their last event, and their tokens.
    pub pending: Vec<(u64, usize)>,
    /// How often was condensed.
    pub generation: u32,
    /// What the active observations take that are not condensed.
    pub tokens: usize,
    pub backoff: Option<ObserverBackoff>,
}

/// An observer that did not get through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObserverBackoff {
    /// How often in a row.
    pub failures: u32,
    /// How often of these it said something that is of no use.
    pub unusable: u32,
    pub not_before: Timestamp,
}

/// Whether something was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWrite {
    Written,
    /// Somebody else was first; nothing was kept.
    Conflict,
}

/// What changes whenever memory does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRevision {
    /// The newest observation.
    pub newest: u64,
    /// How many observations are gone.
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

/// How much is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryStats {
    /// Everything but reflections.
    pub observations: u64,
    /// Those that somebody asked for.
    pub asked: u64,
    pub reflections: u64,
    /// Sessions that were observed.
    pub sessions: u64,
    /// Those in which observations stand for the earlier part.
    pub condensed_sessions: u64,
    /// Those in which the observer did not get through lately.
    pub put_off: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_as_they_are_written() {
        for id in [MemoryId::Observation(12), MemoryId::Reflection(3)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(" O7 ".parse(), Ok(MemoryId::Observation(7)));
        for wrong in [
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
            assert_eq!(wrong.parse::<MemoryId>().is_ok(), wrong == "o1 ", "{wrong}");
        }
    }

    #[test]
    fn words_have_names() {
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
