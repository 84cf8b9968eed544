//! Sessions in memory: for tests, and for sessions that need not outlive the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::StoreError;
use lango_domain::blobs::{BlobStore, BlobTotals};
use lango_domain::content::BlobId;
use lango_domain::event::{Event, Grant, NewEvent};
use lango_domain::redaction::redacted_event;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::session::{
    HistoryWindow, SessionKey, SessionKeyRef, SessionStore, StoreFuture, TurnLock, grant_from_event,
};

#[derive(Debug, Default)]
pub struct InMemorySessionStore {
    sessions: Mutex<HashMap<SessionKey, Vec<Arc<Event>>>>,
    turn_locks: Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>,
}

impl SessionStore for InMemorySessionStore {
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, Result<TurnLock, StoreError>> {
        let turn = Arc::clone(
            lock_unpoisoned(&self.turn_locks)
                .entry(key.to_owned())
                .or_default(),
        );
        async move { Ok(TurnLock::new(turn.lock_owned().await)) }.boxed()
    }

    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        _: HistoryWindow,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let events = lock_unpoisoned(&self.sessions)
            .get(&key.to_owned())
            .cloned()
            .unwrap_or_default();
        ready(Ok(events)).boxed()
    }

    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        drafts: Vec<NewEvent>,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let mut sessions = lock_unpoisoned(&self.sessions);
        let events = sessions.entry(key.to_owned()).or_default();
        let first = events.len();
        for (seq, draft) in (first as u64 + 1..).zip(drafts) {
            events.push(Arc::new(draft.into_event(key.session.clone(), seq)));
        }
        ready(Ok(events[first..].to_vec())).boxed()
    }

    fn redact<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        redactor: &'a SecretRedactor,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        let mut sessions = lock_unpoisoned(&self.sessions);
        let events = sessions.get_mut(&key.to_owned()).into_iter().flatten();
        let changed = events.filter_map(|event| {
            *event = Arc::new(redacted_event(event, redactor)?);
            Some(Arc::clone(event))
        });
        ready(Ok(changed.collect())).boxed()
    }

    fn grants<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Grant>, StoreError>> {
        let sessions = lock_unpoisoned(&self.sessions);
        let events = sessions.get(&key.to_owned()).map_or(&[][..], Vec::as_slice);
        ready(Ok(events
            .iter()
            .filter_map(|event| grant_from_event(event, tool))
            .collect()))
        .boxed()
    }
}

impl BlobStore for InMemorySessionStore {
    fn blob<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        blob: &'a BlobId,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>> {
        let sessions = lock_unpoisoned(&self.sessions);
        let events = sessions.get(&key.to_owned()).into_iter().flatten();
        let mut attachments = events.flat_map(|event| event.attachments());
        let found = attachments.find_map(|attachment| {
            let data = attachment.data.bytes();
            data.filter(|_| attachment.blob == *blob).cloned()
        });
        ready(Ok(found)).boxed()
    }

    fn blob_totals(&self) -> StoreFuture<'_, BlobTotals> {
        let sessions = lock_unpoisoned(&self.sessions);
        let events = sessions.values().flatten();
        let sizes: HashMap<&BlobId, u64> = events
            .flat_map(|event| event.attachments())
            .map(|attachment| (&attachment.blob, attachment.size))
            .collect();
        let totals = BlobTotals {
            blobs: sizes.len() as u64,
            bytes: sizes.values().sum(),
        };
        ready(Ok(totals)).boxed()
    }
}

/// Locks a mutex, ignoring poisoning: whole events are pushed at once, so a panic leaves no partial
/// data.
fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
