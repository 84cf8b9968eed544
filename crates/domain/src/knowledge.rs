//! The seam to where knowledge and learnings are kept.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Principal, SessionId, TurnId};
use crate::flow::Label;
use crate::session::SessionKey;
use crate::session::StoreFuture;

/// Keeps facts with their history, and what helped when something failed. Ships as SQLite.
pub trait KnowledgeStore: Send + Sync {
    /// Keeps something under its key: as its first version, as its next one, or not at all when nothing changed.
    fn save_entry<'a>(
        &'a self,
        of: &'a Principal,
        entry: NewKnowledgeEntry,
    ) -> StoreFuture<'a, EntrySaved>;

    /// The newest version of every key, the one kept last first.
    fn entries<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<KnowledgeEntry>>;

    /// Every version of a key, the newest first.
    fn history<'a>(
        &'a self,
        of: &'a Principal,
        key: &'a str,
    ) -> StoreFuture<'a, Vec<KnowledgeEntry>>;

    /// Takes a key out for good; gives how many versions there were.
    fn forget<'a>(&'a self, of: &'a Principal, key: &'a str) -> StoreFuture<'a, usize>;

    /// Keeps what helps when something fails. The same trigger again gets the new fix, and begins anew.
    fn save_learning<'a>(
        &'a self,
        of: &'a Principal,
        learning: NewLearning,
    ) -> StoreFuture<'a, LearningSaved>;

    /// Every learning, the newest first.
    fn learnings<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<Learning>>;

    /// The last event of a session whose outcome was counted.
    fn counted_through<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, u64>;

    /// Counts outcomes and remembers up to where, both or nothing; nothing either when somebody counted since.
    fn record_outcomes<'a>(
        &'a self,
        of: &'a SessionKey,
        tally: OutcomeBatch,
    ) -> StoreFuture<'a, ()>;
}

/// One version of something known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnowledgeEntry {
    pub key: String,
    /// From 1.
    pub version: u32,
    pub category: KnowledgeCategory,
    pub content: String,
    pub tags: Vec<String>,
    pub source: Provenance,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKnowledgeEntry {
    /// In small letters, on one line.
    pub key: String,
    pub category: KnowledgeCategory,
    pub content: String,
    pub tags: Vec<String>,
    pub source: Provenance,
    pub at: Timestamp,
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Nothing once the session is deleted.
    pub session: Option<SessionId>,
    pub turn: TurnId,
    /// Who kept it: an agent, or the inquiry that it answers.
    pub by: String,
    /// What it was made from (B101).
    #[serde(skip_serializing_if = "Label::is_plain")]
    pub label: Label,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntrySaved {
    New,
    /// As this version.
    Changed(u32),
    /// It is known already, in this version.
    Same(u32),
}

/// What kind of thing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// What helps when something fails, and how often it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learning {
    pub id: u64,
    pub trigger: String,
    pub fix: String,
    pub category: FailureCategory,
    /// How often what failed worked afterwards.
    pub helped: u32,
    /// How often it failed again.
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

/// What became of a learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningSaved {
    New(u64),
    /// The trigger was known; this is its fix from now on.
    Changed(u64),
    /// It is known already, and nothing speaks against it.
    Same(u64),
}

/// What kind of trouble a learning is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
            .find(|trouble| trouble.as_str().eq_ignore_ascii_case(name.trim()))
    }
}

impl fmt::Display for FailureCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Learning {
    /// How far it can be relied on, from 0 to 1: what it did, beside a little trust to begin with.
    pub fn confidence(&self) -> f64 {
        const PRIOR_HELPED: f64 = 3.0;
        const PRIOR_FAILED: f64 = 2.0;
        let (helped, failed) = (f64::from(self.helped), f64::from(self.failed));
        (helped + PRIOR_HELPED) / (helped + failed + PRIOR_HELPED + PRIOR_FAILED)
    }
}

/// Outcomes of a part of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeBatch {
    /// The last event that was counted before.
    pub after: u64,
    /// The last event that is counted now.
    pub through: u64,
    pub outcomes: Vec<LearningOutcome>,
}

/// What came of showing a learning once.
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
    fn confidence_follows_outcomes_both_ways() {
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
    fn names_read_back() {
        assert!(
            KnowledgeCategory::ALL
                .iter()
                .all(|category| KnowledgeCategory::from_name(category.as_str()) == Some(*category))
        );
        assert!(
            FailureCategory::ALL
                .iter()
                .all(|trouble| FailureCategory::from_name(trouble.as_str()) == Some(*trouble))
        );
        assert_eq!(KnowledgeCategory::from_name("nonsense"), None);
    }
}
