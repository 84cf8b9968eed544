//! Simulates a crash at every step: nothing is lost, and nothing is observed twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{FutureExt, pending};
use lango_domain::event::{Event, Principal, TurnId, Usage};
use lango_domain::memory::{
    Memory, MemoryId, MemoryQuery, MemoryRevision, MemoryStats, MemoryStore, MemoryWrite,
    NewMemory, NewReflections, ObservationProgress, ObservedSpan, ObserverBackoff,
};
use lango_domain::session::SessionKey;
use lango_domain::session::StoreFuture;
use lango_store::SqliteStore;
use tokio::sync::Notify;

use super::{MemoryHarness, WriterModel, conversation};

/// Never returns from one of its calls, either before or after executing it, as if the process had
/// crashed.
struct CrashingStore {
    store: SqliteStore,
    calls: AtomicUsize,
    /// Each call has two crash points, one before and one after it.
    crashes_at: usize,
    crashed: Arc<Notify>,
}

impl CrashingStore {
    fn with_crash_points<'a, T: Send + 'a>(
        &'a self,
        call: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        let moment = 2 * self.calls.fetch_add(1, Ordering::Relaxed);
        async move {
            if moment == self.crashes_at {
                return self.crash().await;
            }
            let result = call.await;
            if moment + 1 == self.crashes_at {
                self.crash().await
            } else {
                result
            }
        }
        .boxed()
    }

    async fn crash<T>(&self) -> T {
        self.crashed.notify_one();
        pending().await
    }
}

macro_rules! crashing {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        impl MemoryStore for CrashingStore {
            $(fn $name<'a>(&'a self, $($argument: $type),*) -> StoreFuture<'a, $out> {
                self.with_crash_points(MemoryStore::$name(&self.store, $($argument),*))
            })*
        }
    };
}

crashing! {
        progress(key: &'a SessionKey) -> ObservationProgress;
        turns_after(key: &'a SessionKey, seq: u64, bytes: usize) -> Vec<Arc<Event>>;
        request(key: &'a SessionKey, turn: &'a TurnId) -> Option<(u64, String)>;
        events(key: &'a SessionKey, seqs: Vec<u64>) -> Vec<Arc<Event>>;
        forgotten_events(principal: &'a Principal, events: Vec<(TurnId, u64)>) -> Vec<u64>;
        save_span(key: &'a SessionKey, span: ObservedSpan) -> MemoryWrite;
        activate(key: &'a SessionKey, through: u64) -> ();
        digest_memories(key: &'a SessionKey) -> Vec<Memory>;
        uncondensed_memories(key: &'a SessionKey) -> Vec<Memory>;
        save_reflections(key: &'a SessionKey, reflections: NewReflections) -> MemoryWrite;
        store(key: &'a SessionKey, memory: NewMemory) -> MemoryId;
        save_backoff(key: &'a SessionKey, backoff: ObserverBackoff) -> ();
        record_usage(key: &'a SessionKey, turn: TurnId, usage: Usage) -> ();
        revision(principal: &'a Principal) -> MemoryRevision;
        observations_after(principal: &'a Principal, id: u64, limit: usize) -> Vec<Memory>;
        list(principal: &'a Principal, query: MemoryQuery) -> Vec<Memory>;
        memory(principal: &'a Principal, id: MemoryId) -> Option<Memory>;
        stats(principal: &'a Principal) -> MemoryStats;
}

const TURNS: u64 = 8;

async fn harness() -> MemoryHarness {
    let mut harness = MemoryHarness::observed_by(WriterModel::thorough());
    harness.settings.observation_token_threshold = std::num::NonZeroUsize::new(100).unwrap();
    for turn in 0..TURNS {
        let message = format!("number {turn} matters {}", "and so on and on ".repeat(20));
        harness.say("a", &format!("t{turn}"), &message).await;
    }
    harness
}

/// Checks that every observed message of the user is the source of exactly one observation.
async fn assert_consistent(harness: &MemoryHarness, moment: usize) {
    let observed = harness
        .store
        .progress(&conversation("a"))
        .await
        .unwrap()
        .observed_through;
    let expected: Vec<u64> = (0..TURNS)
        .map(|turn| turn * 3 + 1)
        .filter(|seq| *seq <= observed)
        .collect();
    let cited: Vec<u64> = harness
        .observations()
        .await
        .iter()
        .flat_map(|memory| memory.sources.clone())
        .collect();
    assert_eq!(cited, expected, "crashed at {moment}");
}

/// B73, S82
#[tokio::test]
async fn crashing_at_any_step_loses_nothing_and_repeats_nothing() {
    for crashes_at in 0.. {
        let harness = harness().await;
        let (session, crashed) = (conversation("a"), Arc::new(Notify::new()));
        let crashing = CrashingStore {
            store: harness.reopened(),
            calls: AtomicUsize::new(0),
            crashes_at,
            crashed: Arc::clone(&crashed),
        };
        let memory = harness.memory_over(Arc::new(crashing));
        let completed = tokio::select! {
            done = memory.process_session(&session) => { done.unwrap(); true }
            () = crashed.notified() => false,
        };
        drop(memory);
        assert_consistent(&harness, crashes_at).await;
        harness
            .memory()
            .process_session(&conversation("a"))
            .await
            .unwrap();
        harness
            .memory()
            .process_session(&conversation("a"))
            .await
            .unwrap();
        let observed = harness
            .store
            .progress(&conversation("a"))
            .await
            .unwrap()
            .observed_through;
        assert!(
            observed >= 3 * TURNS - 6,
            "the remaining turns are observed: {observed}"
        );
        assert_consistent(&harness, crashes_at).await;
        if completed {
            assert!(crashes_at > 20, "every step was interrupted");
            break;
        }
    }
}

/// S82: two processes observe concurrently.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_observers_observe_once() {
    let harness = harness().await;
    let (one, other) = (
        harness.memory(),
        harness.memory_over(Arc::new(harness.reopened())),
    );
    let (a, b) = (conversation("a"), conversation("a"));
    let (done, other) = tokio::join!(one.process_session(&a), other.process_session(&b));
    done.and(other).unwrap();
    assert_consistent(&harness, usize::MAX).await;
}
