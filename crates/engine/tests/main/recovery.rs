//! Turns that were cut off at every event boundary: closed by the next one, or gone on with (B73).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use lango_domain::event::{
    Author, Event, EventBody, NewEvent, Principal, SessionId, ToolCode, TransferOutcome, Update,
};
use lango_domain::failure::FailureCode;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_engine::{InMemorySessionStore, TurnRequest};

use crate::sessions::runner;

const TURN: &str = "root transfers operator
operator calls fs_read {}
operator says done";

fn key<'a>(session: &'a SessionId, principal: &'a Principal) -> SessionKeyRef<'a> {
    SessionKeyRef { session, principal }
}

async fn log(store: &InMemorySessionStore) -> Vec<Arc<Event>> {
    store
        .load(
            key(&SessionId::new("s"), &Principal::local()),
            HistoryWindow::Everything,
        )
        .await
        .unwrap()
}

fn request(text: &str) -> TurnRequest {
    TurnRequest::from_user(SessionId::new("s"), Principal::local(), text)
}

/// A store that holds the first events of a whole turn, and no more.
async fn cut_after(count: usize) -> (Arc<InMemorySessionStore>, usize) {
    let whole = Arc::new(InMemorySessionStore::default());
    runner(TURN, Arc::clone(&whole) as Arc<dyn SessionStore>)
        .run(request("please"))
        .collect::<Vec<_>>()
        .await;
    let events = log(&whole).await;
    let store = Arc::new(InMemorySessionStore::default());
    let drafts = events.iter().take(count).map(|event| {
        let Event {
            turn,
            author,
            branch,
            at,
            label,
            body,
            ..
        } = Event::clone(event);
        NewEvent {
            turn,
            author,
            branch,
            at,
            label,
            body,
        }
    });
    store
        .append(
            key(&SessionId::new("s"), &Principal::local()),
            drafts.collect(),
        )
        .await
        .unwrap();
    (store, events.len())
}

/// Each call and each transfer has exactly one result, under its caller's name.
fn assert_whole(events: &[Arc<Event>]) {
    let mut open: BTreeMap<(String, String), Vec<&Author>> = BTreeMap::new();
    for event in events {
        match &event.body {
            EventBody::ToolCall { id, .. } | EventBody::Transfer { id, .. } => {
                open.entry((event.turn.to_string(), id.to_string()))
                    .or_default()
                    .push(&event.author);
            }
            EventBody::ToolResult { id, .. } | EventBody::TransferResult { id, .. } => {
                let callers = open
                    .get_mut(&(event.turn.to_string(), id.to_string()))
                    .unwrap();
                assert_eq!(
                    callers.pop(),
                    Some(&event.author),
                    "closed by its caller, once"
                );
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "nothing stays open");
}

/// B73, B71
#[tokio::test(start_paused = true)]
async fn the_next_turn_closes_what_was_cut_off() {
    let (_, whole) = cut_after(0).await;
    for count in 1..whole {
        let (store, _) = cut_after(count).await;
        let answered = log(&store)
            .await
            .iter()
            .any(|event| matches!(event.body, EventBody::Answer { .. }));
        let next = runner("root says hi", Arc::clone(&store) as Arc<dyn SessionStore>);
        let updates: Vec<Update> = next.run(request("again")).collect().await;
        let events = log(&store).await;
        assert_whole(&events);
        let shown = updates
            .iter()
            .filter(|update| matches!(update, Update::Event(_)))
            .count();
        assert_eq!(shown, events.len() - count, "what was closed is shown");
        let ends: Vec<&EventBody> = events
            .iter()
            .map(|event| &event.body)
            .filter(|body| matches!(body, EventBody::TurnDone | EventBody::TurnFailed { .. }))
            .collect();
        assert_eq!(ends.len(), 2, "cut after {count}");
        assert_eq!(
            matches!(
                ends[0],
                EventBody::TurnFailed {
                    code: FailureCode::Interrupted,
                    ..
                }
            ),
            !answered,
            "cut after {count}"
        );
    }
}

/// B73: what had an effect is not done again by the runtime; the turn goes on under its own id.
#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_where_it_stopped() {
    let (_, whole) = cut_after(0).await;
    for count in 1..whole {
        let (store, _) = cut_after(count).await;
        let before = log(&store).await;
        let answered = before
            .iter()
            .any(|event| matches!(event.body, EventBody::Answer { .. }));
        let again = runner(
            "root says I looked: it is done",
            Arc::clone(&store) as Arc<dyn SessionStore>,
        );
        let left = again
            .find_unfinished_turn(&SessionId::new("s"), &Principal::local())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (left.request.as_str(), left.is_answered),
            ("please", answered)
        );
        again
            .resume(SessionId::new("s"), Principal::local())
            .collect::<Vec<_>>()
            .await;
        let events = log(&store).await;
        assert_whole(&events);
        assert!(
            events.iter().all(|event| event.turn == events[0].turn),
            "one turn"
        );
        assert_eq!(
            events.last().unwrap().body,
            EventBody::TurnDone,
            "cut after {count}"
        );
        let calls = |events: &[Arc<Event>]| {
            events
                .iter()
                .filter(|event| matches!(event.body, EventBody::ToolCall { .. }))
                .count()
        };
        assert_eq!(
            calls(&events),
            calls(&before),
            "nothing is called again by itself"
        );
        let nothing: Vec<Update> = again
            .resume(SessionId::new("s"), Principal::local())
            .collect()
            .await;
        assert_eq!(nothing, [], "and then there is nothing left");
    }
}

/// B73: what is not known is said; a delegation that had answered is not called interrupted.
#[tokio::test(start_paused = true)]
async fn a_closed_call_says_what_is_known() {
    let (_, whole) = cut_after(0).await;
    let (mut interrupted, mut answered) = (0, 0);
    for count in 1..whole {
        let (store, _) = cut_after(count).await;
        runner("root says hi", Arc::clone(&store) as Arc<dyn SessionStore>)
            .run(request("x"))
            .collect::<Vec<_>>()
            .await;
        for event in log(&store).await.iter().skip(count) {
            match &event.body {
                EventBody::ToolResult {
                    code: Some(ToolCode::Interrupted),
                    error: Some(error),
                    ..
                } => {
                    assert!(
                        error.contains("it changes nothing and may be called again"),
                        "{error}"
                    );
                    interrupted += 1;
                }
                EventBody::TransferResult {
                    outcome: TransferOutcome::Answered,
                    ..
                } => answered += 1,
                _ => {}
            }
        }
    }
    assert!(
        interrupted >= 1 && answered >= 1,
        "{interrupted} {answered}"
    );
}

/// A turn that is stopped to be gone on with has no end, and is whole when it has gone on.
#[tokio::test(start_paused = true)]
async fn a_parked_turn_has_no_end_and_goes_on() {
    let store = Arc::new(InMemorySessionStore::default());
    let keep = || Arc::clone(&store) as Arc<dyn SessionStore>;
    let mut turn = runner("root transfers operator\noperator hangs", keep()).run(request("please"));
    while let Some(update) = turn.next().await {
        if matches!(&update, Update::Event(event) if matches!(event.body, EventBody::Transfer { .. }))
        {
            turn.suspend();
        }
    }
    let is_end = |event: &&Arc<Event>| {
        matches!(
            event.body,
            EventBody::TurnDone | EventBody::TurnFailed { .. }
        )
    };
    assert_eq!(log(&store).await.iter().find(is_end), None);
    let next = runner("root says picked up", keep());
    let resumed: Vec<Update> = next
        .resume(SessionId::new("s"), Principal::local())
        .collect()
        .await;
    assert!(
        matches!(resumed.last(), Some(Update::Event(event)) if matches!(event.body, EventBody::TurnDone))
    );
    let events = log(&store).await;
    assert_whole(&events);
    assert!(events.iter().all(|event| event.turn == events[0].turn));
}

/// One agent alone begins and answers the turn, with its own tools and no transfer.
#[tokio::test(start_paused = true)]
async fn an_agent_alone_answers_by_itself() {
    let store = Arc::new(InMemorySessionStore::default());
    let script = "operator calls fs_read {}\noperator calls transfer_to_agent {\"agent_name\":\"vault\"}\noperator says done";
    let team = runner(script, Arc::clone(&store) as Arc<dyn SessionStore>);
    assert!(team.single_agent("nobody").is_none());
    let alone = team.single_agent("operator").unwrap();
    assert_eq!(alone.root().as_str(), "operator");
    alone.run(request("please")).collect::<Vec<_>>().await;
    let events = log(&store).await;
    assert_whole(&events);
    let answers = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::Answer { .. }));
    assert_eq!(
        answers
            .map(|event| event.author.to_string())
            .collect::<Vec<_>>(),
        ["operator"]
    );
    assert!(
        !events
            .iter()
            .any(|event| matches!(event.body, EventBody::Transfer { .. }))
    );
}
