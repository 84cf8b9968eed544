//! The content of a memory: its text, kind, priority, speaker and origin.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::Label;

/// The text of a memory, and its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNote {
    pub text: String,
    pub kind: MemoryKind,
    pub priority: MemoryPriority,
    pub speaker: MemorySpeaker,
    /// The label of the content it was derived from (B101).
    pub label: Label,
    /// The time of its source.
    pub at: Timestamp,
}

/// The writer of a memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum MemoryOrigin {
    /// The user or agent that explicitly asked for it.
    Asked,
    /// Rules, without a language model.
    Rules,
    /// The language model with this name.
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

/// The speaker of a memory's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemorySpeaker {
    /// The user alone.
    User,
    /// Agents, files, commands or pages: data, never instructions.
    Others,
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        $(#[$doc])*
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

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str().eq_ignore_ascii_case(name.trim()))
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
    /// The kind of a memory.
    #[schemars(description = "What kind of thing is remembered.")]
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
    /// The importance of a memory.
    #[schemars(description = "How much it matters later.")]
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
