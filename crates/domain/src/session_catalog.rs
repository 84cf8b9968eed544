//! Listing, searching, copying and deleting sessions, and their usage.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::audit::AuditEntry;
use crate::event::{Event, Principal, SessionId, Usage};
use crate::session::{SessionKeyRef, StoreFuture};

/// The sessions of every principal.
pub trait SessionCatalog: Send + Sync {
    /// Returns every principal that has sessions.
    fn principals(&self) -> StoreFuture<'_, Vec<Principal>>;

    /// Returns the principal's sessions, most recently used first.
    fn sessions<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<SessionInfo>>;

    fn session<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
    ) -> StoreFuture<'a, SessionInfo>;

    /// Returns up to `limit` events after `seq`, in order. Empty for a session that does not exist.
    fn events_after<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
        seq: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Returns the newest sessions of the principal whose names start with `prefix`.
    fn sessions_with_prefix<'a>(
        &'a self,
        principal: &'a Principal,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionId>>;

    /// Returns requests and answers that contain every word of `text`, newest first. Ignores case.
    fn search<'a>(
        &'a self,
        principal: &'a Principal,
        text: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionSearchHit>>;

    /// Copies the complete turns of `from` up to event `at` into the new session `into`. Returns the
    /// number of copied events.
    fn fork<'a>(
        &'a self,
        principal: &'a Principal,
        from: &'a SessionId,
        at: u64,
        into: &'a SessionId,
    ) -> StoreFuture<'a, u64>;

    /// Changes the title of a session. Its id stays.
    fn rename<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
        title: &'a str,
    ) -> StoreFuture<'a, ()>;

    /// Creates a session from existing events, renumbered from 1.
    fn import_session<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
        events: Vec<Arc<Event>>,
    ) -> StoreFuture<'a, ()>;

    /// Deletes a session for good, with the tasks, facts and observations that come from it. Its usage
    /// stays, without the session. Fails while one of its turns is running.
    fn delete<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
    ) -> StoreFuture<'a, ()>;

    /// Deletes the sessions that were last used before `before`, except those with a running turn.
    /// Returns their names.
    fn prune<'a>(
        &'a self,
        principal: &'a Principal,
        before: Timestamp,
    ) -> StoreFuture<'a, Vec<SessionId>>;

    /// Returns the usage of one session, or of all sessions including deleted ones, in order.
    fn usage<'a>(
        &'a self,
        principal: &'a Principal,
        session: Option<&'a SessionId>,
    ) -> StoreFuture<'a, Vec<UsageRow>>;

    /// Returns the newest tool calls in one session of the principal, or in all, newest first.
    fn audit<'a>(
        &'a self,
        principal: &'a Principal,
        session: Option<&'a SessionId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditEntry>>;

    /// Returns true if a turn of the session is running in any process, or if its lock cannot be
    /// checked.
    fn is_turn_running<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, bool>;
}

/// Metadata of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: SessionId,
    pub title: String,
    pub events: u64,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// True if the last turn of the session has ended.
    pub is_settled: bool,
}

impl SessionInfo {
    /// Returns the state as a word: `settled` or `interrupted`.
    pub fn state(&self) -> &'static str {
        if self.is_settled {
            "settled"
        } else {
            "interrupted"
        }
    }
}

/// An event that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSearchHit {
    pub session: SessionId,
    pub title: String,
    pub event: Arc<Event>,
}

/// Usage of one model call. The session is `None` if it was deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageRow {
    pub session: Option<SessionId>,
    pub turn: String,
    pub agent: String,
    pub branch: String,
    pub usage: Usage,
}
