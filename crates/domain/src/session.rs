//! Storage of sessions.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::StoreError;
use crate::event::{ApprovalState, Event, EventBody, Grant, NewEvent, Principal, SessionId};
use crate::secret_reference::SecretRedactor;

/// Stores sessions as event logs. Events are appended, and change only to lose the value of a secret.
/// Implemented in memory and on SQLite; both pass the same conformance suite.
pub trait SessionStore: Send + Sync {
    /// Waits until no other turn of the session runs. Blocks other turns until the lock is dropped (B60).
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> StoreFuture<'a, TurnLock>;

    /// Returns events in order through the newest, going back at least as far as the window. Returns none
    /// if the session does not exist.
    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        window: HistoryWindow,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Appends events. Returns when they are durable.
    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        events: Vec<NewEvent>,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Removes values from the stored events of a session and from its title, so that no file of the
    /// store contains them afterwards (B130). Numbers and order of the events stay. Returns the events
    /// that changed.
    fn redact<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        redactor: &'a SecretRedactor,
    ) -> StoreFuture<'a, Vec<Arc<Event>>>;

    /// Returns all grants for a tool in the session.
    fn grants<'a>(&'a self, key: SessionKeyRef<'a>, tool: &'a str) -> StoreFuture<'a, Vec<Grant>>;
}

/// Returns the grant in an event, if it is for this tool.
pub fn grant_from_event(event: &Event, tool_name: &str) -> Option<Grant> {
    match &event.body {
        EventBody::Approval {
            tool,
            state: ApprovalState::Approved,
            grant: Some(grant),
            ..
        } if tool == tool_name => Some(grant.clone()),
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

/// The part of a session to load: whole turns, backwards from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryWindow {
    Everything,
    /// The fewest turns whose events have at least this many bytes.
    Recent {
        bytes: usize,
    },
}

impl HistoryWindow {
    /// Returns true if events of this many bytes fill the window.
    pub fn is_satisfied_by(self, bytes: usize) -> bool {
        match self {
            Self::Everything => false,
            Self::Recent { bytes: wanted } => bytes >= wanted,
        }
    }
}

/// The lock on a session, held for a turn.
pub struct TurnLock(#[expect(dead_code, reason = "held for its drop alone")] Box<dyn Send + Sync>);

impl TurnLock {
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}

/// The future returned by methods of stores.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;
