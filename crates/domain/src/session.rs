//! The seam to where sessions are kept.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::event::{ApprovalState, Event, EventBody, Grant, NewEvent, Principal, SessionId};

/// Keeps sessions as append-only logs. Ships in memory and as SQLite; one suite of tests holds for both.
pub trait SessionStore: Send + Sync {
    /// Waits until no other turn of the session runs, and keeps others waiting until the lock is dropped (B60).
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> StoreFuture<'a, TurnLock>;

    /// Events in order up to the newest, at least as far back as asked for; none for a session that does not exist yet.
    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        reach: HistoryWindow,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Returns when the events are durable.
    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        drafts: Vec<NewEvent>,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// The permissions for calls of a tool that were given for the rest of the session, however long ago.
    fn grants<'a>(&'a self, key: SessionKeyRef<'a>, tool: &'a str) -> StoreFuture<'a, Vec<Grant>>;
}

/// The permission that an event gives, if it is for that tool.
pub fn grant_from_event(event: &Event, of: &str) -> Option<Grant> {
    match &event.body {
        EventBody::Approval {
            tool,
            state: ApprovalState::Approved,
            grant: Some(grant),
            ..
        } if tool == of => Some(grant.clone()),
        _ => None,
    }
}

/// A session and its principal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    pub session: SessionId,
    pub principal: Principal,
}

/// A borrowed [`SessionKey`]. The same id under another principal is another session (B74).
#[derive(Clone, Copy, Debug)]
pub struct SessionKeyRef<'a> {
    pub session: &'a SessionId,
    pub principal: &'a Principal,
}

impl SessionKey {
    pub fn as_ref(&self) -> SessionKeyRef<'_> {
        SessionKeyRef {
            session: &self.session,
            principal: &self.principal,
        }
    }
}

impl SessionKeyRef<'_> {
    pub fn to_owned(self) -> SessionKey {
        SessionKey {
            session: self.session.clone(),
            principal: self.principal.clone(),
        }
    }
}

/// How much of a session is read: whole turns, backwards from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryWindow {
    Everything,
    /// The fewest turns whose events hold so many bytes.
    Recent {
        bytes: usize,
    },
}

impl HistoryWindow {
    /// Whether so many bytes will do.
    pub fn is_satisfied_by(self, bytes: usize) -> bool {
        match self {
            Self::Everything => false,
            Self::Recent { bytes: wanted } => bytes >= wanted,
        }
    }
}

/// Held for the length of a turn.
pub struct TurnLock(#[expect(dead_code, reason = "held for its drop alone")] Box<dyn Send + Sync>);

impl TurnLock {
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}

/// What a store gives, in time.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what is kept could not be read or written: {0}")]
pub struct StoreError(pub String);
