//! The seam to where inquiries are kept: questions that are worth asking the user in passing.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Principal, SessionId, TurnId, Usage};
use crate::knowledge::NewKnowledgeEntry;
use crate::session::SessionKey;
use crate::session::StoreFuture;

/// Keeps inquiries, and how far sessions were searched for them. Ships as SQLite.
pub trait InquiryStore: Send + Sync {
    /// Those that wait for an answer, the oldest first.
    fn pending<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<Inquiry>>;

    /// All there were, the newest first.
    fn inquiries<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<Inquiry>>;

    /// Writes down that an inquiry is put before whoever answers; gives false when it is not to be asked any more.
    fn offer<'a>(
        &'a self,
        of: &'a SessionKey,
        inquiry: u64,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Nobody asks it again; gives false when it was not pending.
    fn dismiss<'a>(
        &'a self,
        of: &'a Principal,
        inquiry: u64,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    fn progress<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, ScanProgress>;

    /// Keeps what a look at a session gave, and how far it went, all or nothing; nothing when somebody looked since.
    fn save_scan<'a>(&'a self, of: &'a SessionKey, settled: ScanResult) -> StoreFuture<'a, ()>;

    /// What a look took that asked a model.
    fn record_usage<'a>(
        &'a self,
        of: &'a SessionKey,
        turn: TurnId,
        usage: Usage,
    ) -> StoreFuture<'a, ()>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inquiry {
    pub id: u64,
    /// What it is about, in one to six words.
    pub topic: String,
    pub question: String,
    /// What made it worth asking.
    pub why: String,
    pub priority: InquiryPriority,
    pub found_by: Finder,
    pub status: InquiryStatus,
    /// Where the gap was found.
    pub session: SessionId,
    pub turn: TurnId,
    pub created: Timestamp,
    /// How often it was put before whoever answers, and when and where last.
    pub offers: u32,
    pub offered: Option<LastOffer>,
    pub answer: Option<String>,
    /// What the answer is kept under.
    pub knowledge_key: Option<String>,
    pub closed: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastOffer {
    /// Nothing once the session is deleted.
    pub session: Option<SessionId>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInquiry {
    pub topic: String,
    pub question: String,
    pub reason: String,
    pub priority: InquiryPriority,
    pub found_by: Finder,
    pub turn: TurnId,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InquiryPriority {
    Low,
    #[default]
    Medium,
    High,
}

/// Who found a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finder {
    Model,
    /// Set rules, where there is no language model.
    Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InquiryStatus {
    Pending,
    Resolved,
    Dismissed,
    /// It was offered often enough without an answer.
    Lapsed,
}

impl fmt::Display for InquiryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Resolved => "resolved",
            Self::Dismissed => "dismissed",
            Self::Lapsed => "lapsed",
        })
    }
}

/// How far a session was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanPosition {
    /// The last event that was searched for answers.
    pub answers: u64,
    /// The last event that was searched for gaps.
    pub gaps: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanProgress {
    pub position: ScanPosition,
    /// When a model was last asked about any session of the principal's.
    pub last_model_call: Option<Timestamp>,
}

/// What a look at a session gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanResult {
    /// How far it had been looked at when this look began.
    pub after: ScanPosition,
    pub through: ScanPosition,
    pub by: Finder,
    pub at: Timestamp,
    pub resolutions: Vec<Resolution>,
    pub new_inquiries: Vec<NewInquiry>,
    /// No more than so many are ever pending.
    pub max_pending: usize,
    pub expiry: ExpiryRule,
}

/// What was offered so often, and last so long ago, is asked no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryRule {
    pub offers: u32,
    pub before: Timestamp,
}

/// An answer to an inquiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    pub inquiry: u64,
    pub answer: String,
    /// What is known from now on; nothing when the answer must not be kept.
    pub entry: Option<NewKnowledgeEntry>,
}
