//! Storage of inquiries: questions that are worth asking the user at some point.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Principal, SessionId, TurnId, Usage};
use crate::knowledge::NewKnowledgeEntry;
use crate::session::{SessionKey, StoreFuture};

/// Stores inquiries, and how far sessions were scanned for them. Implemented on SQLite.
pub trait InquiryStore: Send + Sync {
    /// Returns the inquiries that have no answer yet, oldest first.
    fn pending<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Inquiry>>;

    /// Returns all inquiries, newest first.
    fn inquiries<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Inquiry>>;

    /// Records that an inquiry is offered to the user. Returns false if it is no longer pending.
    fn offer<'a>(
        &'a self,
        key: &'a SessionKey,
        inquiry: u64,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Dismisses an inquiry. Returns false if it was not pending.
    fn dismiss<'a>(
        &'a self,
        principal: &'a Principal,
        inquiry: u64,
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    fn progress<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ScanProgress>;

    /// Saves the result of a scan and its position atomically. Does nothing if the session was scanned
    /// since.
    fn save_scan<'a>(&'a self, key: &'a SessionKey, scan: ScanResult) -> StoreFuture<'a, ()>;

    /// Records the model usage of a scan.
    fn record_usage<'a>(
        &'a self,
        key: &'a SessionKey,
        turn: TurnId,
        usage: Usage,
    ) -> StoreFuture<'a, ()>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inquiry {
    pub id: u64,
    /// The topic, in one to six words.
    pub topic: String,
    pub question: String,
    /// The reason for asking.
    pub why: String,
    pub priority: InquiryPriority,
    pub found_by: Finder,
    pub status: InquiryStatus,
    /// The session in which the gap was found.
    pub session: SessionId,
    pub turn: TurnId,
    pub created: Timestamp,
    /// The number of times it was offered to the user.
    pub offers: u32,
    /// The time and session of the last offer.
    pub offered: Option<LastOffer>,
    pub answer: Option<String>,
    /// The key of the knowledge base entry with the answer.
    pub knowledge_key: Option<String>,
    pub closed: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastOffer {
    /// `None` if the session was deleted.
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

/// The method that found a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finder {
    Model,
    /// Fixed rules, used without a language model.
    Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InquiryStatus {
    Pending,
    Resolved,
    Dismissed,
    /// Offered often enough without an answer.
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

/// The position through which a session was scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanPosition {
    /// The last event that was scanned for answers.
    pub answers: u64,
    /// The last event that was scanned for gaps.
    pub gaps: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanProgress {
    pub position: ScanPosition,
    /// The time of the last model call for any session of the principal.
    pub last_model_call: Option<Timestamp>,
}

/// The result of scanning a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanResult {
    /// The position before this scan.
    pub after: ScanPosition,
    pub through: ScanPosition,
    pub by: Finder,
    pub at: Timestamp,
    pub resolutions: Vec<Resolution>,
    pub new_inquiries: Vec<NewInquiry>,
    /// The limit for pending inquiries.
    pub max_pending: usize,
    pub expiry: ExpiryRule,
}

/// Inquiries that were offered this often, the last time before this moment, lapse.
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
    /// The entry to save; `None` if the answer must not be stored.
    pub entry: Option<NewKnowledgeEntry>,
}
