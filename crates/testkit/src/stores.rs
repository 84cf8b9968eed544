//! A session store that is slow or stops responding.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::FutureExt;
use lango_domain::event::{Event, Grant, NewEvent};
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreFuture, TurnLock};
use lango_engine::InMemorySessionStore;

/// A method of a store that never returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangPoint {
    Lock,
    Load,
    /// After this many successful appends.
    Append(usize),
    Grants,
}

/// An in-memory store that behaves like a slow or broken disk.
#[derive(Default)]
pub struct SlowStore {
    inner: InMemorySessionStore,
    /// The time that each call takes.
    pub latency: Duration,
    pub hang: Option<HangPoint>,
    appends: AtomicUsize,
}

impl SlowStore {
    pub fn with_latency(latency: Duration) -> Self {
        Self {
            latency,
            ..Self::default()
        }
    }

    pub fn with_hang(hang: HangPoint) -> Self {
        Self {
            hang: Some(hang),
            ..Self::default()
        }
    }

    async fn delay(&self, hangs: bool) {
        tokio::time::sleep(self.latency).await;
        if hangs {
            futures::future::pending::<()>().await;
        }
    }
}

impl SessionStore for SlowStore {
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> StoreFuture<'a, TurnLock> {
        async move {
            self.delay(self.hang == Some(HangPoint::Lock)).await;
            self.inner.lock(key).await
        }
        .boxed()
    }

    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        window: HistoryWindow,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        async move {
            self.delay(self.hang == Some(HangPoint::Load)).await;
            self.inner.load(key, window).await
        }
        .boxed()
    }

    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        events: Vec<NewEvent>,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        async move {
            let before = self.appends.fetch_add(1, Ordering::Relaxed);
            self.delay(matches!(self.hang, Some(HangPoint::Append(works)) if before >= works))
                .await;
            self.inner.append(key, events).await
        }
        .boxed()
    }

    fn redact<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        redactor: &'a SecretRedactor,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        async move {
            self.delay(false).await;
            self.inner.redact(key, redactor).await
        }
        .boxed()
    }

    fn grants<'a>(&'a self, key: SessionKeyRef<'a>, tool: &'a str) -> StoreFuture<'a, Vec<Grant>> {
        async move {
            self.delay(self.hang == Some(HangPoint::Grants)).await;
            self.inner.grants(key, tool).await
        }
        .boxed()
    }
}
