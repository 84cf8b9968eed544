//! Turns that were interrupted after every event: the next turn closes them, or they are resumed
//! (B73).

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

/// Returns a store with the first events of a turn, and the number of events of the whole turn.
async fn interrupted_after(count: usize) -> (Arc<InMemorySessionStore>, usize) {
    let whole = Arc::new(InMemorySessionStore::default());
    runner(TURN, Arc::clone(&whole) as Arc<dyn SessionStore>)
        .run(request("please"))
        .collect::<Vec<_>>()
        .await;
    let events = log(&whole).await;
    let store = Arc::new(InMemorySessionStore::default());
    let first_events = events.iter().take(count).map(|event| {
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
            first_events.collect(),
        )
        .await
        .unwrap();
    (store, events.len())
}

/// Asserts that each call and each transfer has exactly one result, by its caller.
fn assert_complete(events: &[Arc<Event>]) {
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
                    "closed once, by its caller"
                );
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "no call stays open");
}

/// B73, B71
#[tokio::test(start_paused = true)]
async fn the_next_turn_closes_an_interrupted_one() {
    let (_, whole) = interrupted_after(0).await;
    for count in 1..whole {
        let (store, _) = interrupted_after(count).await;
        let answered = log(&store)
            .await
            .iter()
            .any(|event| matches!(event.body, EventBody::Answer(_)));
        let next = runner("root says hi", Arc::clone(&store) as Arc<dyn SessionStore>);
        let updates: Vec<Update> = next.run(request("again")).collect().await;
        let events = log(&store).await;
        assert_complete(&events);
        let published = updates
            .iter()
            .filter(|update| matches!(update, Update::Event(_)))
            .count();
        assert_eq!(published, events.len() - count, "closings are published");
        let ends: Vec<&EventBody> = events
            .iter()
            .map(|event| &event.body)
            .filter(|body| body.is_turn_end())
            .collect();
        assert_eq!(ends.len(), 2, "interrupted after {count}");
        assert_eq!(
            matches!(
                ends[0],
                EventBody::TurnFailed {
                    code: FailureCode::Interrupted,
                    ..
                }
            ),
            !answered,
            "interrupted after {count}"
        );
    }
}

/// B73: calls that had an effect are not repeated; the resumed turn keeps its id.
#[tokio::test(start_paused = true)]
async fn a_turn_resumes_where_it_stopped() {
    let (_, whole) = interrupted_after(0).await;
    for count in 1..whole {
        let (store, _) = interrupted_after(count).await;
        let before = log(&store).await;
        let answered = before
            .iter()
            .any(|event| matches!(event.body, EventBody::Answer(_)));
        let again = runner(
            "root says I looked: it is done",
            Arc::clone(&store) as Arc<dyn SessionStore>,
        );
        let unfinished = again
            .find_unfinished_turn(&SessionId::new("s"), &Principal::local())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (unfinished.request.as_str(), unfinished.is_answered),
            ("please", answered)
        );
        again
            .resume(SessionId::new("s"), Principal::local())
            .collect::<Vec<_>>()
            .await;
        let events = log(&store).await;
        assert_complete(&events);
        assert!(
            events.iter().all(|event| event.turn == events[0].turn),
            "one turn"
        );
        assert_eq!(
            events.last().unwrap().body,
            EventBody::turn_done(),
            "interrupted after {count}"
        );
        let calls = |events: &[Arc<Event>]| {
            events
                .iter()
                .filter(|event| matches!(event.body, EventBody::ToolCall { .. }))
                .count()
        };
        assert_eq!(calls(&events), calls(&before), "no call is repeated");
        let nothing: Vec<Update> = again
            .resume(SessionId::new("s"), Principal::local())
            .collect()
            .await;
        assert_eq!(nothing, [], "nothing is left to resume");
    }
}

/// B73: an interrupted call says whether it can be repeated; a delegation with an answer is not
/// interrupted.
#[tokio::test(start_paused = true)]
async fn a_closed_call_reports_its_known_outcome() {
    let (_, whole) = interrupted_after(0).await;
    let (mut interrupted, mut answered) = (0, 0);
    for count in 1..whole {
        let (store, _) = interrupted_after(count).await;
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

/// A suspended turn has no end in the log, and is complete after it is resumed.
#[tokio::test(start_paused = true)]
async fn a_suspended_turn_can_be_resumed() {
    let store = Arc::new(InMemorySessionStore::default());
    let shared = || Arc::clone(&store) as Arc<dyn SessionStore>;
    let mut turn =
        runner("root transfers operator\noperator hangs", shared()).run(request("please"));
    while let Some(update) = turn.next().await {
        if matches!(&update, Update::Event(event) if matches!(event.body, EventBody::Transfer { .. }))
        {
            turn.suspend();
        }
    }
    let is_end = |event: &&Arc<Event>| event.body.is_turn_end();
    assert_eq!(log(&store).await.iter().find(is_end), None);
    let next = runner("root says picked up", shared());
    let resumed: Vec<Update> = next
        .resume(SessionId::new("s"), Principal::local())
        .collect()
        .await;
    assert!(
        matches!(resumed.last(), Some(Update::Event(event)) if matches!(event.body, EventBody::TurnDone { .. }))
    );
    let events = log(&store).await;
    assert_complete(&events);
    assert!(events.iter().all(|event| event.turn == events[0].turn));
}

/// A single agent starts and answers the turn with its own tools and without a transfer.
#[tokio::test(start_paused = true)]
async fn a_single_agent_answers_without_a_transfer() {
    let store = Arc::new(InMemorySessionStore::default());
    let script = "operator calls fs_read {}\noperator calls transfer_to_agent {\"agent_name\":\"vault\"}\noperator says done";
    let team = runner(script, Arc::clone(&store) as Arc<dyn SessionStore>);
    assert!(team.single_agent("nobody").is_none());
    let single = team.single_agent("operator").unwrap();
    assert_eq!(single.root().as_str(), "operator");
    single.run(request("please")).collect::<Vec<_>>().await;
    let events = log(&store).await;
    assert_complete(&events);
    let answers = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::Answer(_)));
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
