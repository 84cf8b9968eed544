//! Storage of the knowledge base: entries and learnings.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Principal, SessionId, TurnId};
use crate::flow::Label;
use crate::session::{SessionKey, StoreFuture};

/// Stores entries with their history, and learnings from failures. Implemented on SQLite.
pub trait KnowledgeStore: Send + Sync {
    /// Saves an entry as the first or next version of its key. Does nothing if nothing changed.
    fn save_entry<'a>(
        &'a self,
        principal: &'a Principal,
        entry: NewKnowledgeEntry,
    ) -> StoreFuture<'a, EntrySaved>;

    /// Returns the newest version of every key, last saved first.
    fn entries<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<KnowledgeEntry>>;

    /// Returns all versions of a key, newest first.
    fn history<'a>(
        &'a self,
        principal: &'a Principal,
        key: &'a str,
    ) -> StoreFuture<'a, Vec<KnowledgeEntry>>;

    /// Deletes a key for good and returns the number of its versions.
    fn forget<'a>(&'a self, principal: &'a Principal, key: &'a str) -> StoreFuture<'a, usize>;

    /// Saves a learning. If the trigger exists, replaces its fix and resets its counts.
    fn save_learning<'a>(
        &'a self,
        principal: &'a Principal,
        learning: NewLearning,
    ) -> StoreFuture<'a, LearningSaved>;

    /// Returns all learnings, newest first.
    fn learnings<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Learning>>;

    /// Returns the last event of a session whose outcome was counted.
    fn counted_through<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, u64>;

    /// Counts outcomes and saves the position atomically. Does nothing if outcomes were counted since.
    fn record_outcomes<'a>(
        &'a self,
        key: &'a SessionKey,
        batch: OutcomeBatch,
    ) -> StoreFuture<'a, ()>;
}

/// One version of an entry of the knowledge base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnowledgeEntry {
    pub key: String,
    /// Starts at 1.
    pub version: u32,
    pub category: KnowledgeCategory,
    pub content: String,
    pub tags: Vec<String>,
    pub source: Provenance,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKnowledgeEntry {
    /// In lower case, on one line.
    pub key: String,
    pub category: KnowledgeCategory,
    pub content: String,
    pub tags: Vec<String>,
    pub source: Provenance,
    pub at: Timestamp,
}

/// The origin of an entry or a learning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// `None` if the session was deleted.
    pub session: Option<SessionId>,
    pub turn: TurnId,
    /// The agent that saved it, or the inquiry that it answers.
    pub by: String,
    /// The label of the content it was derived from (B101).
    #[serde(skip_serializing_if = "Label::is_plain")]
    pub label: Label,
}

/// The result of saving an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntrySaved {
    New,
    /// Saved as this version.
    Changed(u32),
    /// Already saved, in this version.
    Same(u32),
}

/// The category of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "What kind of thing is known.")]
#[serde(rename_all = "snake_case")]
pub enum KnowledgeCategory {
    Rule,
    Definition,
    Preference,
    #[default]
    Fact,
    Pattern,
    Correction,
}

impl KnowledgeCategory {
    pub const ALL: [Self; 6] = [
        Self::Rule,
        Self::Definition,
        Self::Preference,
        Self::Fact,
        Self::Pattern,
        Self::Correction,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Definition => "definition",
            Self::Preference => "preference",
            Self::Fact => "fact",
            Self::Pattern => "pattern",
            Self::Correction => "correction",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|category| category.as_str().eq_ignore_ascii_case(name.trim()))
    }
}

impl fmt::Display for KnowledgeCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Advice for a failure, with the number of times it helped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learning {
    pub id: u64,
    pub trigger: String,
    pub fix: String,
    pub category: FailureCategory,
    /// The number of times the call worked after the advice.
    pub helped: u32,
    /// The number of times the call failed again.
    pub failed: u32,
    pub source: Provenance,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLearning {
    pub trigger: String,
    pub fix: String,
    pub category: FailureCategory,
    pub source: Provenance,
    pub at: Timestamp,
}

/// The result of saving a learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningSaved {
    New(u64),
    /// The trigger existed; its fix was replaced.
    Changed(u64),
    /// Already saved, and without failed outcomes.
    Same(u64),
}

/// The category of the failure that a learning is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "What kind of trouble a learning is about.")]
#[serde(rename_all = "snake_case")]
pub enum FailureCategory {
    ToolError,
    ProviderError,
    UserCorrection,
    Timeout,
    Permission,
    #[default]
    General,
}

impl FailureCategory {
    pub const ALL: [Self; 6] = [
        Self::ToolError,
        Self::ProviderError,
        Self::UserCorrection,
        Self::Timeout,
        Self::Permission,
        Self::General,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolError => "tool_error",
            Self::ProviderError => "provider_error",
            Self::UserCorrection => "user_correction",
            Self::Timeout => "timeout",
            Self::Permission => "permission",
            Self::General => "general",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|category| category.as_str().eq_ignore_ascii_case(name.trim()))
    }
}

impl fmt::Display for FailureCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Learning {
    /// Returns the confidence, from 0 to 1, estimated from the outcomes and a prior.
    pub fn confidence(&self) -> f64 {
        const PRIOR_HELPED: f64 = 3.0;
        const PRIOR_FAILED: f64 = 2.0;
        let (helped, failed) = (f64::from(self.helped), f64::from(self.failed));
        (helped + PRIOR_HELPED) / (helped + failed + PRIOR_HELPED + PRIOR_FAILED)
    }
}

/// The outcomes of a part of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeBatch {
    /// The last event that was counted before.
    pub after: u64,
    /// The last event that is counted now.
    pub through: u64,
    pub outcomes: Vec<LearningOutcome>,
}

/// The outcome of advising a learning once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearningOutcome {
    pub learning: u64,
    pub effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Helped,
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_follows_the_outcomes() {
        let confidence = |helped, failed| {
            let source = Provenance {
                session: None,
                turn: TurnId::new("t"),
                by: String::new(),
                label: Label::default(),
            };
            let (trigger, fix, category) = (String::new(), String::new(), FailureCategory::General);
            Learning {
                id: 1,
                trigger,
                fix,
                category,
                helped,
                failed,
                source,
                at: Timestamp::UNIX_EPOCH,
            }
            .confidence()
        };
        let rising: Vec<f64> = (0..5).map(|times| confidence(times, 0)).collect();
        let falling: Vec<f64> = (0..5).map(|times| confidence(0, times)).collect();
        assert!(rising.is_sorted() && falling.iter().rev().is_sorted());
        assert!(rising[4] > 0.75 && falling[4] < 0.35 && confidence(0, 0) > 0.5);
    }

    #[test]
    fn category_names_round_trip() {
        assert!(
            KnowledgeCategory::ALL
                .iter()
                .all(|category| KnowledgeCategory::from_name(category.as_str()) == Some(*category))
        );
        assert!(
            FailureCategory::ALL
                .iter()
                .all(|category| FailureCategory::from_name(category.as_str()) == Some(*category))
        );
        assert_eq!(KnowledgeCategory::from_name("nonsense"), None);
    }
}
