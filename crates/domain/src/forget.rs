//! The seam to taking out what was learned from words, from every place where such is kept.

use std::sync::Arc;

use crate::event::{Event, Principal, SessionId};
use crate::memory::MemoryId;
use crate::session::StoreFuture;

/// Takes out what was learned. Ships as SQLite, where everything that is learned stands in one file.
pub trait ForgetStore: Send + Sync {
    /// Takes all of it out for good, and marks the events, so that nothing is learned from them again: all or nothing. What
    /// is not there any more is passed over, so that it can be repeated.
    fn remove<'a>(&'a self, of: &'a Principal, removal: Removal) -> StoreFuture<'a, ()>;

    /// Events of all sessions that nobody has observed yet.
    fn unobserved_events<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<Arc<Event>>>;
}

/// What goes, by what it is known under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// With every reflection that was made of one of them.
    pub memories: Vec<MemoryId>,
    /// Keys, each with a version.
    pub entries: Vec<(String, u32)>,
    pub learnings: Vec<u64>,
    pub inquiries: Vec<u64>,
    pub batches: Vec<FactBatchChange>,
    /// What nothing may be learned from any more.
    pub events: Vec<(SessionId, u64)>,
}

/// A batch of facts, of which some or all go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactBatchChange {
    pub number: u64,
    /// What stays of it.
    pub remaining: Option<Vec<u8>>,
}
