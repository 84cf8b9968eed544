//! Removal of everything that was learned from a piece of text.

use std::sync::Arc;

use crate::event::{Event, Principal, SessionId};
use crate::graph::GraphStore;
use crate::inquiries::InquiryStore;
use crate::knowledge::KnowledgeStore;
use crate::memory::{MemoryId, MemoryStore};
use crate::session::{SessionStore, StoreFuture};

/// Deletes learned data. Implemented on SQLite, which stores all learned data in one file.
pub trait ForgetStore: Send + Sync {
    /// Deletes the data for good and marks the events, so that nothing is learned from them again.
    /// Atomic. Ignores missing data, so that it can be repeated.
    fn remove<'a>(&'a self, principal: &'a Principal, removal: Removal) -> StoreFuture<'a, ()>;

    /// Returns the events of all sessions that were not observed yet.
    fn unobserved_events<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;
}

/// The data to delete, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// Memories; reflections derived from one of them are deleted too.
    pub memories: Vec<MemoryId>,
    /// Entries of the knowledge base, by key and version.
    pub entries: Vec<(String, u32)>,
    pub learnings: Vec<u64>,
    pub inquiries: Vec<u64>,
    pub batches: Vec<FactBatchChange>,
    /// Events that nothing may be learned from any more.
    pub events: Vec<(SessionId, u64)>,
}

/// A batch of facts that is partly or wholly deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactBatchChange {
    pub number: u64,
    /// The encoded facts that stay, if any.
    pub remaining: Option<Vec<u8>>,
}

/// All stores with learned data, and the sessions that it was learned from.
pub trait LearnedDataStore:
    ForgetStore + MemoryStore + KnowledgeStore + InquiryStore + GraphStore + SessionStore
{
}

impl<T> LearnedDataStore for T where
    T: ForgetStore + MemoryStore + KnowledgeStore + InquiryStore + GraphStore + SessionStore
{
}
