//! The process dies at every moment: nothing is lost, nothing is observed twice.

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

/// Stops for good at one of its calls, before it or behind it, as if the process had died there.
struct CrashingStore {
    store: SqliteStore,
    calls: AtomicUsize,
    /// Two moments for each call.
    crashes_at: usize,
    crashed: Arc<Notify>,
}

impl CrashingStore {
    fn answer<'a, T: Send + 'a>(&'a self, answer: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let moment = 2 * self.calls.fetch_add(1, Ordering::Relaxed);
        async move {
            if moment == self.crashes_at {
                return self.crash().await;
            }
            let answered = answer.await;
            if moment + 1 == self.crashes_at {
                self.crash().await
            } else {
                answered
            }
        }
        .boxed()
    }

    async fn crash<T>(&self) -> T {
        self.crashed.notify_one();
        pending().await
    }
}

macro_rules! dying {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        impl MemoryStore for CrashingStore {
            $(fn $name<'a>(&'a self, $($argument: $type),*) -> StoreFuture<'a, $out> {
                self.answer(MemoryStore::$name(&self.store, $($argument),*))
            })*
        }
    };
}

dying! {
    progress(of: &'a SessionKey) -> ObservationProgress;
    turns_after(of: &'a SessionKey, seq: u64, bytes: usize) -> Vec<Arc<Event>>;
    request(of: &'a SessionKey, turn: &'a TurnId) -> Option<(u64, String)>;
    events(of: &'a SessionKey, seqs: Vec<u64>) -> Vec<Arc<Event>>;
    forgotten_events(of: &'a Principal, events: Vec<(TurnId, u64)>) -> Vec<u64>;
    save_span(of: &'a SessionKey, piece: ObservedSpan) -> MemoryWrite;
    activate(of: &'a SessionKey, through: u64) -> ();
    digest_memories(of: &'a SessionKey) -> Vec<Memory>;
    uncondensed_memories(of: &'a SessionKey) -> Vec<Memory>;
    save_reflections(of: &'a SessionKey, new: NewReflections) -> MemoryWrite;
    store(of: &'a SessionKey, memory: NewMemory) -> MemoryId;
    save_backoff(of: &'a SessionKey, setback: ObserverBackoff) -> ();
    record_usage(of: &'a SessionKey, turn: TurnId, usage: Usage) -> ();
    revision(of: &'a Principal) -> MemoryRevision;
    observations_after(of: &'a Principal, id: u64, most: usize) -> Vec<Memory>;
    list(of: &'a Principal, which: MemoryQuery) -> Vec<Memory>;
    memory(of: &'a Principal, id: MemoryId) -> Option<Memory>;
    stats(of: &'a Principal) -> MemoryStats;
}

const TURNS: u64 = 8;

async fn harness() -> MemoryHarness {
    let mut desk = MemoryHarness::observed_by(WriterModel::thorough());
    desk.settings.observation_token_threshold = std::num::NonZeroUsize::new(100).unwrap();
    for turn in 0..TURNS {
        let words = format!("number {turn} matters {}", "and so on and on ".repeat(20));
        desk.say("a", &format!("t{turn}"), &words).await;
    }
    desk
}

/// Every message of the user's stands in exactly one observation, and in what is told or condensed.
async fn assert_consistent(desk: &MemoryHarness, moment: usize) {
    let observed = desk
        .store
        .progress(&conversation("a"))
        .await
        .unwrap()
        .observed_through;
    let said: Vec<u64> = (0..TURNS)
        .map(|turn| turn * 3 + 1)
        .filter(|seq| *seq <= observed)
        .collect();
    let cited: Vec<u64> = desk
        .observations()
        .await
        .iter()
        .flat_map(|memory| memory.sources.clone())
        .collect();
    assert_eq!(cited, said, "died at moment {moment}");
}

/// B73, S82
#[tokio::test]
async fn dying_at_any_moment_loses_nothing_and_repeats_nothing() {
    for crashes_at in 0.. {
        let desk = harness().await;
        let (session, is_dead) = (conversation("a"), Arc::new(Notify::new()));
        let dying = CrashingStore {
            store: desk.reopened(),
            calls: AtomicUsize::new(0),
            crashes_at,
            crashed: Arc::clone(&is_dead),
        };
        let chronicle = desk.memory_over(Arc::new(dying));
        let ran = tokio::select! {
            done = chronicle.process_session(&session) => { done.unwrap(); true }
            () = is_dead.notified() => false,
        };
        drop(chronicle);
        assert_consistent(&desk, crashes_at).await;
        desk.memory()
            .process_session(&conversation("a"))
            .await
            .unwrap();
        desk.memory()
            .process_session(&conversation("a"))
            .await
            .unwrap();
        let observed = desk
            .store
            .progress(&conversation("a"))
            .await
            .unwrap()
            .observed_through;
        assert!(
            observed >= 3 * TURNS - 6,
            "what was left is done: {observed}"
        );
        assert_consistent(&desk, crashes_at).await;
        if ran {
            assert!(crashes_at > 20, "it was cut at every step");
            break;
        }
    }
}

/// S82: two processes at once.
#[tokio::test(flavor = "multi_thread")]
async fn two_observers_observe_once() {
    let desk = harness().await;
    let (one, other) = (desk.memory(), desk.memory_over(Arc::new(desk.reopened())));
    let (a, b) = (conversation("a"), conversation("a"));
    let (done, other) = tokio::join!(one.process_session(&a), other.process_session(&b));
    done.and(other).unwrap();
    assert_consistent(&desk, usize::MAX).await;
}
