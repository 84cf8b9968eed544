//! The conformance suite for session stores.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use lango_domain::Safety;
use lango_domain::event::{
    ApprovalState, CallId, Decider, Event, EventBody, Grant, NewEvent, Principal, SessionId, Usage,
};
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};

use super::{answer, new_event, ok, user_request};

/// Runs the whole suite on an empty store.
///
/// # Panics
/// If the store violates the contract of [`SessionStore`].
pub async fn check(store: Arc<dyn SessionStore>) {
    events_load_in_the_order_of_appends(&*store).await;
    sessions_belong_to_their_principal(&*store).await;
    any_text_round_trips(&*store).await;
    numbers_order_events_and_clocks_do_not(&*store).await;
    the_newest_turns_are_always_loaded(&*store).await;
    grants_of_a_session_are_found(&*store).await;
    values_are_removed_from_one_session(&*store).await;
    sessions_can_be_written_in_parallel(&store).await;
    a_turn_waits_for_the_one_before(&store).await;
}

async fn append(store: &dyn SessionStore, session: &str, events: Vec<NewEvent>) -> Vec<Arc<Event>> {
    append_as(store, "local", session, events).await
}

async fn append_as(
    store: &dyn SessionStore,
    principal: &str,
    session: &str,
    events: Vec<NewEvent>,
) -> Vec<Arc<Event>> {
    let (session, principal) = (SessionId::new(session), Principal::new(principal));
    let appended = store
        .append(
            SessionKeyRef {
                session: &session,
                principal: &principal,
            },
            events,
        )
        .await;
    appended.unwrap_or_else(|error| unreachable!("append: {error}"))
}

async fn load(
    store: &dyn SessionStore,
    principal: &str,
    session: &str,
    window: HistoryWindow,
) -> Vec<Arc<Event>> {
    let (session, principal) = (SessionId::new(session), Principal::new(principal));
    let loaded = store
        .load(
            SessionKeyRef {
                session: &session,
                principal: &principal,
            },
            window,
        )
        .await;
    loaded.unwrap_or_else(|error| unreachable!("load: {error}"))
}

async fn events_load_in_the_order_of_appends(store: &dyn SessionStore) {
    assert!(
        load(store, "local", "order", HistoryWindow::Everything)
            .await
            .is_empty(),
        "a new session has no events"
    );
    let mut all = append(
        store,
        "order",
        vec![
            new_event("t1", user_request("tea")),
            new_event("t1", EventBody::Usage(Usage::default())),
        ],
    )
    .await;
    let call = EventBody::ToolCall {
        id: CallId::new("c1"),
        tool: "fs_read".into(),
        args: serde_json::json!({ "a": [1, null] }),
    };
    all.extend(
        append(
            store,
            "order",
            vec![
                new_event("t1", call),
                new_event("t1", answer("hot")),
                new_event("t1", EventBody::turn_done()),
            ],
        )
        .await,
    );
    assert_eq!(
        all.iter().map(|event| event.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(
        load(store, "local", "order", HistoryWindow::Everything).await,
        all
    );
    assert!(append(store, "order", Vec::new()).await.is_empty());
}

/// B74
async fn sessions_belong_to_their_principal(store: &dyn SessionStore) {
    append_as(
        store,
        "alice",
        "shared-name",
        vec![new_event("t", user_request("hers"))],
    )
    .await;
    let his = append_as(
        store,
        "bob",
        "shared-name",
        vec![new_event("t", user_request("his"))],
    )
    .await;
    assert_eq!(
        his[0].seq, 1,
        "another principal's session is another session"
    );
    assert_eq!(
        load(store, "bob", "shared-name", HistoryWindow::Everything).await,
        his
    );
    assert!(
        load(store, "carol", "shared-name", HistoryWindow::Everything)
            .await
            .is_empty()
    );
}

async fn any_text_round_trips(store: &dyn SessionStore) {
    let texts = [
        "",
        "\0\u{1b}[31m\u{202e}",
        "안녕 日本語 🙂 ß \u{301}",
        "a\r\nb\t'\";--",
        &"ä".repeat(300_000),
    ];
    let events = texts
        .iter()
        .map(|text| new_event("t", user_request(text)))
        .collect();
    append(store, "text 🙂/..\n", events).await;
    let loaded = load(store, "local", "text 🙂/..\n", HistoryWindow::Everything).await;
    let bodies: Vec<EventBody> = loaded.iter().map(|event| event.body.clone()).collect();
    assert_eq!(bodies, texts.map(user_request));
}

async fn numbers_order_events_and_clocks_do_not(store: &dyn SessionStore) {
    for (seq, second) in [(1, 1_000), (2, 10), (3, 500)] {
        let mut event = new_event("t", user_request("x"));
        event.at = Timestamp::from_second(second).unwrap_or_default();
        assert_eq!(append(store, "clock", vec![event]).await[0].seq, seq);
    }
    let seconds: Vec<i64> = load(store, "local", "clock", HistoryWindow::Everything)
        .await
        .iter()
        .map(|event| event.at.as_second())
        .collect();
    assert_eq!(seconds, [1_000, 10, 500]);
}

async fn the_newest_turns_are_always_loaded(store: &dyn SessionStore) {
    for turn in ["t1", "t2", "t3"] {
        append(
            store,
            "recent",
            vec![
                new_event(turn, user_request("q")),
                new_event(turn, answer("a")),
                new_event(turn, EventBody::turn_done()),
            ],
        )
        .await;
    }
    for bytes in [0, 50, 1_000_000] {
        let recent = load(store, "local", "recent", HistoryWindow::Recent { bytes }).await;
        assert!(
            matches!(recent[0].body, EventBody::User(_)),
            "it starts with a request"
        );
        assert!(
            recent.iter().any(|event| event.seq == 7)
                && recent.last().is_some_and(|event| event.seq == 9)
        );
    }
    assert_eq!(
        load(
            store,
            "local",
            "recent",
            HistoryWindow::Recent { bytes: 1_000_000 }
        )
        .await
        .len(),
        9
    );
}

/// A grant is found however old it is, but only in its own session and for its own tool.
async fn grants_of_a_session_are_found(store: &dyn SessionStore) {
    let approval = |tool: &str, state, grant| EventBody::Approval {
        id: CallId::new("c"),
        tool: tool.to_owned(),
        level: Safety::Dangerous,
        state,
        shows: String::new(),
        tainted_by: Vec::new(),
        by: Some(Decider::User),
        grant,
    };
    let granted = Grant::Pattern("git *".to_owned());
    let bodies = [
        approval("exec_shell", ApprovalState::Approved, Some(granted.clone())),
        approval("exec_shell", ApprovalState::Denied, Some(granted.clone())),
        approval(
            "fs_write",
            ApprovalState::Approved,
            Some(Grant::SameCall(serde_json::json!({ "a": 1 }))),
        ),
        approval("exec_shell", ApprovalState::Approved, None),
    ];
    let events = bodies.into_iter().map(|body| new_event("t", body));
    append(store, "granted", events.collect()).await;
    for _ in 0..50 {
        let event = new_event("t2", user_request("more"));
        append(store, "granted", vec![event]).await;
    }
    let principal = Principal::local();
    for (session, expected) in [("granted", vec![granted]), ("other", vec![])] {
        let session = SessionId::new(session);
        let key = SessionKeyRef {
            session: &session,
            principal: &principal,
        };
        assert_eq!(store.grants(key, "exec_shell").await, Ok(expected));
    }
}

/// B130
async fn values_are_removed_from_one_session(store: &dyn SessionStore) {
    let typed = "keep canary-7f3a9 for me";
    let events = || {
        let bodies = [user_request(typed), answer("kept canary-7f3a9")];
        bodies.map(|body| new_event("t1", body)).to_vec()
    };
    let later = |body: EventBody| vec![new_event("t2", body)];
    let load = |principal, session| load(store, principal, session, HistoryWindow::Everything);
    append(store, "redacted", events()).await;
    append(store, "redacted", later(user_request("go on"))).await;
    let other = append(store, "other", events()).await;
    let foreign = append_as(store, "ann", "redacted", events()).await;
    let redactor = SecretRedactor::new([("A".to_owned(), "canary-7f3a9".to_owned())]);
    let (session, principal) = (SessionId::new("redacted"), Principal::local());
    let key = SessionKeyRef {
        session: &session,
        principal: &principal,
    };
    let changed = ok(store.redact(key, &redactor).await);
    let numbers: Vec<u64> = changed.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2]);
    let loaded = load("local", "redacted").await;
    assert_eq!(loaded[..2], changed[..]);
    assert_eq!(loaded.len(), 3);
    assert!(!format!("{loaded:?}").contains("canary"), "{loaded:?}");
    assert!(format!("{loaded:?}").contains("keep [secret A: set, hidden] for me"));
    assert_eq!(load("local", "other").await, other);
    assert_eq!(load("ann", "redacted").await, foreign);
    // The log goes on, and nothing is left to remove.
    let next = append(store, "redacted", later(answer("done"))).await;
    assert_eq!(next[0].seq, 4);
    assert_eq!(ok(store.redact(key, &redactor).await), []);
    let unknown = SessionKeyRef {
        session: &SessionId::new("no such session"),
        principal: &principal,
    };
    assert_eq!(ok(store.redact(unknown, &redactor).await), []);
}

async fn sessions_can_be_written_in_parallel(store: &Arc<dyn SessionStore>) {
    let writers = (0..16).map(|session| {
        let store = Arc::clone(store);
        async move {
            let name = format!("parallel-{session}");
            for number in 0..10 {
                let event = new_event("t", user_request(&format!("{session}-{number}")));
                append(&*store, &name, vec![event]).await;
            }
            load(&*store, "local", &name, HistoryWindow::Everything).await
        }
    });
    for (session, events) in join_all(writers).await.into_iter().enumerate() {
        let bodies: Vec<EventBody> = events.iter().map(|event| event.body.clone()).collect();
        assert_eq!(
            bodies,
            (0..10)
                .map(|number| user_request(&format!("{session}-{number}")))
                .collect::<Vec<_>>()
        );
    }
}

/// B60
async fn a_turn_waits_for_the_one_before(store: &Arc<dyn SessionStore>) {
    let (session, other, principal) = (
        SessionId::new("lock"),
        SessionId::new("other"),
        Principal::local(),
    );
    let key = SessionKeyRef {
        session: &session,
        principal: &principal,
    };
    let held = store.lock(key).await;
    let free = store
        .lock(SessionKeyRef {
            session: &other,
            principal: &principal,
        })
        .await;
    assert!(
        held.is_ok() && free.is_ok(),
        "other sessions are not locked"
    );
    let waiting = tokio::time::timeout(Duration::from_millis(30), store.lock(key)).await;
    assert!(waiting.is_err(), "the second turn waits");
    drop(held);
    let after = tokio::time::timeout(Duration::from_secs(10), store.lock(key)).await;
    assert!(matches!(after, Ok(Ok(_))), "and gets the lock");
}
