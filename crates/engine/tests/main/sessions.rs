//! Sessions: their principals, concurrent turns, and store failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, join_all, ready};
use lango_domain::StoreError;
use lango_domain::Tool;
use lango_domain::event::{Event, EventBody, Grant, NewEvent, Principal, SessionId, Update};
use lango_domain::failure::FailureCode;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, TurnLock};
use lango_engine::{
    ApprovalPolicy, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks, TurnLimits,
    TurnRequest,
};
use lango_team::{Config, build_agent_tree};
use lango_testkit::script::Script;
use lango_testkit::scripted::ScriptedModel;
use lango_testkit::{script_runner, scripted};
use tokio::time::Instant;

pub fn runner(script: &str, store: Arc<dyn SessionStore>) -> Runner {
    let script = Script::parse(script).unwrap();
    let behaviors = |name: &str| {
        script
            .behaviors
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let tools: Vec<Tool> = script
        .tools
        .iter()
        .map(|name| scripted::scripted_tool(name, behaviors(name)))
        .collect();
    let tree = build_agent_tree(Config {
        tools,
        ..Config::default()
    })
    .unwrap();
    Runner::new(RunnerParts {
        tree,
        models: Models {
            default: Arc::new(ScriptedModel::new(script.replies, 128_000)),
            per_agent: BTreeMap::new(),
        },
        store,
        blobs: Arc::<InMemorySessionStore>::default(),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: script_runner::clock_and_ids(),
    })
}

fn request(session: &str, principal: &str) -> TurnRequest {
    let (session, principal) = (SessionId::new(session), Principal::new(principal));
    TurnRequest::from_user(session, principal, "please")
}

fn last_body(updates: &[Update]) -> Option<&EventBody> {
    updates.iter().rev().find_map(|update| match update {
        Update::Event(event) => Some(&event.body),
        _ => None,
    })
}

/// B74: the same id under another principal is another session. Neither history nor locks are shared.
#[tokio::test(start_paused = true)]
async fn a_session_belongs_to_its_principal() {
    let store = Arc::new(InMemorySessionStore::default());
    let runner = runner(
        "root hangs
root says hi",
        Arc::clone(&store) as Arc<dyn SessionStore>,
    );
    let mut hers = runner.run(request("s", "alice"));
    assert!(matches!(hers.next().await, Some(Update::Event(_))));
    tokio::task::yield_now().await;
    let his: Vec<Update> = runner.run(request("s", "bob")).collect().await;
    assert_eq!(
        last_body(&his),
        Some(&EventBody::turn_done()),
        "he does not wait for her turn"
    );
    let load = |principal: &str| {
        let (session, principal) = (SessionId::new("s"), Principal::new(principal));
        let store = Arc::clone(&store);
        async move {
            store
                .load(
                    SessionKeyRef {
                        session: &session,
                        principal: &principal,
                    },
                    HistoryWindow::Everything,
                )
                .await
                .unwrap()
        }
    };
    assert_eq!(load("bob").await.len(), 4);
    assert_eq!(load("alice").await.len(), 1);
    assert_eq!(load("carol").await.len(), 0);
}

/// B60: turns of one session run one after the other, sessions run in parallel.
#[tokio::test(start_paused = true)]
async fn sessions_run_in_parallel_and_turns_do_not() {
    let script = "tool fs_read takes 10 s\nroot always transfers operator: x (report back) + calls nothing_there\noperator always calls fs_read {}";
    let runner = runner(script, Arc::new(InMemorySessionStore::default()));
    let run_turns = async |sessions: &[&str]| {
        let started = Instant::now();
        let turns = sessions
            .iter()
            .map(|session| runner.run(request(session, "local")).collect::<Vec<_>>());
        join_all(turns).await;
        started.elapsed()
    };
    let one = run_turns(&["a"]).await;
    assert!(run_turns(&["b", "c", "d"]).await < one + Duration::from_secs(1));
    assert!(run_turns(&["e", "e", "e"]).await >= one * 3);
}

/// B60: dropping the stream cancels the turn, and the session stays usable.
#[tokio::test(start_paused = true)]
async fn dropping_the_stream_cancels_the_turn() {
    let store = Arc::new(InMemorySessionStore::default());
    let runner = runner(
        "root hangs\nroot says hi",
        Arc::clone(&store) as Arc<dyn SessionStore>,
    );
    let mut stream = runner.run(request("s", "local"));
    assert!(matches!(stream.next().await, Some(Update::Event(_))));
    drop(stream);
    let next: Vec<Update> = runner.run(request("s", "local")).collect().await;
    assert_eq!(last_body(&next), Some(&EventBody::turn_done()));
    let key = SessionKeyRef {
        session: &SessionId::new("s"),
        principal: &Principal::local(),
    };
    let codes = store
        .load(key, HistoryWindow::Everything)
        .await
        .unwrap()
        .into_iter()
        .filter_map(|event| match &event.body {
            EventBody::TurnFailed { code, .. } => Some(*code),
            _ => None,
        });
    assert_eq!(codes.collect::<Vec<_>>(), [FailureCode::Cancelled]);
}

/// B60: a turn that is cancelled while it waits for another one leaves no events.
#[tokio::test(start_paused = true)]
async fn a_turn_cancelled_before_it_starts_leaves_no_events() {
    let runner = runner(
        "root hangs\nroot says hi",
        Arc::new(InMemorySessionStore::default()),
    );
    let mut first = runner.run(request("s", "local"));
    first.next().await;
    let second = runner.run(request("s", "local"));
    second.cancel();
    assert_eq!(second.collect::<Vec<_>>().await, []);
    first.cancel();
    assert!(matches!(
        last_body(&first.collect::<Vec<_>>().await),
        Some(EventBody::TurnFailed { .. })
    ));
}

/// A store that fails after a number of appends.
struct FullDisk {
    inner: InMemorySessionStore,
    appends_left: std::sync::atomic::AtomicUsize,
}

impl SessionStore for FullDisk {
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, Result<TurnLock, StoreError>> {
        self.inner.lock(key)
    }

    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        window: HistoryWindow,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        self.inner.load(key, window)
    }

    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        drafts: Vec<NewEvent>,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        use std::sync::atomic::Ordering::SeqCst;
        let appends_left = self.appends_left.load(SeqCst);
        if appends_left == 0 {
            return ready(Err(StoreError::Other("the disk is full".into()))).boxed();
        }
        self.appends_left.store(appends_left - 1, SeqCst);
        self.inner.append(key, drafts)
    }

    fn redact<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        redactor: &'a SecretRedactor,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        self.inner.redact(key, redactor)
    }

    fn grants<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Grant>, StoreError>> {
        self.inner.grants(key, tool)
    }
}

/// B71, B59: an event that was not stored is not published, and the stream still has an end.
#[tokio::test(start_paused = true)]
async fn a_full_disk_ends_the_turn() {
    for appends in 0..9 {
        let store = Arc::new(FullDisk {
            inner: InMemorySessionStore::default(),
            appends_left: appends.into(),
        });
        let script =
            "user x\nroot transfers operator\noperator calls fs_read {}\noperator says done";
        let updates: Vec<Update> = runner(script, Arc::clone(&store) as Arc<dyn SessionStore>)
            .run(request("s", "local"))
            .collect()
            .await;
        let published: Vec<&Arc<Event>> = updates
            .iter()
            .filter_map(|update| match update {
                Update::Event(event) => Some(event),
                _ => None,
            })
            .collect();
        let key = SessionKeyRef {
            session: &SessionId::new("s"),
            principal: &Principal::local(),
        };
        let stored = store.load(key, HistoryWindow::Everything).await.unwrap();
        let stored: Vec<&Arc<Event>> = stored.iter().collect();
        assert_eq!(published, stored, "{appends} appends");
        let ended = matches!(updates.last(), Some(Update::Event(event)) if event.body == EventBody::turn_done());
        assert!(
            ended || matches!(updates.last(), Some(Update::StoreFailed(_))),
            "{appends} appends: {updates:?}"
        );
    }
}
