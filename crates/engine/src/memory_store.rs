//! Sessions in memory: for tests, and for conversations that need not outlive the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::event::{Draft, Event, Principal, SessionId};
use lango_domain::session::{SessionKey, SessionStore, StoreError, TurnLock};

#[derive(Debug, Default)]
pub struct MemoryStore {
    sessions: Mutex<HashMap<SessionId, Kept>>,
    turns: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug)]
struct Kept {
    principal: Principal,
    events: Vec<Arc<Event>>,
}

impl SessionStore for MemoryStore {
    fn lock<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<TurnLock, StoreError>> {
        let turn = Arc::clone(held(&self.turns).entry(session.clone()).or_default());
        async move { Ok(TurnLock::new(turn.lock_owned().await)) }.boxed()
    }

    fn load<'a>(&'a self, key: SessionKey<'a>) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let loaded = match held(&self.sessions).get(key.session) {
            Some(kept) if kept.principal != *key.principal => Err(StoreError::NotFound(key.session.clone())),
            Some(kept) => Ok(kept.events.clone()),
            None => Ok(Vec::new()),
        };
        ready(loaded).boxed()
    }

    fn append<'a>(
        &'a self,
        key: SessionKey<'a>,
        drafts: Vec<Draft>,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let mut sessions = held(&self.sessions);
        let new = || Kept { principal: key.principal.clone(), events: Vec::new() };
        let kept = sessions.entry(key.session.clone()).or_insert_with(new);
        if kept.principal != *key.principal {
            return ready(Err(StoreError::NotFound(key.session.clone()))).boxed();
        }
        let mut appended = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let event = Arc::new(draft.into_event(key.session.clone(), kept.events.len() as u64 + 1));
            kept.events.push(Arc::clone(&event));
            appended.push(event);
        }
        ready(Ok(appended)).boxed()
    }
}

/// A panic elsewhere leaves whole events behind, never half ones, so the data can still be used.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
