//! Sessions in memory: for tests, and for conversations that need not outlive the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::event::{NewEvent, Event, Grant, Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError, TurnLock, grant_from_event};

#[derive(Debug, Default)]
pub struct InMemorySessionStore {
    sessions: Mutex<HashMap<Owned, Vec<Arc<Event>>>>,
    turns: Mutex<HashMap<Owned, Arc<tokio::sync::Mutex<()>>>>,
}

/// Whose session, and which.
type Owned = (Principal, SessionId);

impl SessionStore for InMemorySessionStore {
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, Result<TurnLock, StoreError>> {
        let turn = Arc::clone(held(&self.turns).entry(owned(key)).or_default());
        async move { Ok(TurnLock::new(turn.lock_owned().await)) }.boxed()
    }

    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        _: HistoryWindow,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let events = held(&self.sessions).get(&owned(key)).cloned().unwrap_or_default();
        ready(Ok(events)).boxed()
    }

    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        drafts: Vec<NewEvent>,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let mut sessions = held(&self.sessions);
        let events = sessions.entry(owned(key)).or_default();
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
        let sessions = held(&self.sessions);
        let events = sessions.get(&owned(key)).map_or(&[][..], Vec::as_slice);
        ready(Ok(events.iter().filter_map(|event| grant_from_event(event, tool)).collect())).boxed()
    }
}

fn owned(key: SessionKeyRef<'_>) -> Owned {
    (key.principal.clone(), key.session.clone())
}

/// A panic elsewhere leaves whole events behind, never half ones, so the data can still be used.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
