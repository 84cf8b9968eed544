//! Sessions in memory: for tests, and for conversations that need not outlive the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::event::{NewEvent, Event, Grant, Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError, TurnLock, grant_from_event};

#[derive(Debug, Default)]
pub struct InMemorySessionStore {
    sessions: Mutex<HashMap<OwnedSessionKey, Vec<Arc<Event>>>>,
    turn_locks: Mutex<HashMap<OwnedSessionKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// Whose session, and which.
type OwnedSessionKey = (Principal, SessionId);

impl SessionStore for InMemorySessionStore {
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, Result<TurnLock, StoreError>> {
        let turn = Arc::clone(lock_unpoisoned(&self.turn_locks).entry(to_owned_key(key)).or_default());
        async move { Ok(TurnLock::new(turn.lock_owned().await)) }.boxed()
    }

    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        _: HistoryWindow,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let events = lock_unpoisoned(&self.sessions).get(&to_owned_key(key)).cloned().unwrap_or_default();
        ready(Ok(events)).boxed()
    }

    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        drafts: Vec<NewEvent>,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let mut sessions = lock_unpoisoned(&self.sessions);
        let events = sessions.entry(to_owned_key(key)).or_default();
        let first = events.len();
        for (seq, draft) in (first as u64 + 1..).zip(drafts) {
            events.push(Arc::new(draft.into_event(key.session.clone(), seq)));
        }
        ready(Ok(events[first..].to_vec())).boxed()
    }

    fn grants<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Grant>, StoreError>> {
        let sessions = lock_unpoisoned(&self.sessions);
        let events = sessions.get(&to_owned_key(key)).map_or(&[][..], Vec::as_slice);
        ready(Ok(events.iter().filter_map(|event| grant_from_event(event, tool)).collect())).boxed()
    }
}

fn to_owned_key(key: SessionKeyRef<'_>) -> OwnedSessionKey {
    (key.principal.clone(), key.session.clone())
}

/// A panic elsewhere leaves whole events behind, never half ones, so the data can still be used.
fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
