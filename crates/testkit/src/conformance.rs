//! The conformance suites of the storage traits. Every store passes the same suites, each run on an
//! empty store.

pub mod access_tokens;
pub mod automation;
pub mod blobs;
pub mod catalog;
pub mod documents;
pub mod forget;
pub mod graph;
pub mod inquiries;
pub mod knowledge;
pub mod maintenance;
pub mod memory;
pub mod payments;
pub mod saved_workflows;
pub mod sessions;
pub mod tasks;
pub mod vault;

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::event::{
    Author, Branch, Event, EventBody, NewEvent, Principal, SessionId, TurnId,
};
use lango_domain::session::{SessionKey, SessionStore};
use lango_domain::{AgentName, Label, StoreError};

/// Returns an event of a turn as the engine would append it.
pub fn new_event(turn: &str, body: EventBody) -> NewEvent {
    let root =
        AgentName::new("lango-orchestrator").unwrap_or_else(|_| unreachable!("a well-formed name"));
    let author = match body {
        EventBody::User(_) => Author::User,
        _ => Author::Agent(root.clone()),
    };
    NewEvent {
        turn: TurnId::new(turn),
        author,
        branch: Branch::root(&root),
        at: Timestamp::UNIX_EPOCH,
        label: Label::default(),
        body,
    }
}

pub fn user_request(text: &str) -> EventBody {
    EventBody::User(text.into())
}

pub fn answer(text: &str) -> EventBody {
    EventBody::Answer(text.into())
}

/// Returns the value, or fails the suite.
#[track_caller]
#[expect(clippy::panic, reason = "a suite fails by panicking")]
fn ok<T>(result: Result<T, StoreError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the store failed: {error}"),
    }
}

fn seconds(number: i64) -> Timestamp {
    Timestamp::from_second(number).unwrap_or_default()
}

fn key(principal: &str, session: &str) -> SessionKey {
    SessionKey {
        session: SessionId::new(session),
        principal: Principal::new(principal),
    }
}

/// Appends events at a time.
async fn append_at(
    sessions: &dyn SessionStore,
    key: &SessionKey,
    at: Timestamp,
    events: Vec<NewEvent>,
) -> Vec<Arc<Event>> {
    let at_time = |event| NewEvent { at, ..event };
    let events = events.into_iter().map(at_time).collect();
    ok(sessions.append(key.as_ref(), events).await)
}

/// Appends a complete turn: a request, an answer and the end.
async fn append_turn(
    sessions: &dyn SessionStore,
    key: &SessionKey,
    turn: &str,
    request: &str,
) -> Vec<Arc<Event>> {
    append_at(
        sessions,
        key,
        Timestamp::UNIX_EPOCH,
        whole_turn(turn, request),
    )
    .await
}

fn whole_turn(turn: &str, request: &str) -> Vec<NewEvent> {
    vec![
        new_event(turn, user_request(request)),
        new_event(turn, answer("as you like")),
        new_event(turn, EventBody::turn_done()),
    ]
}
