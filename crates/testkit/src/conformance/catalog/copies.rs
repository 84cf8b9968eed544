//! Forks and imports.

use std::sync::Arc;

use lango_domain::event::{Event, SessionId};
use lango_domain::session::{HistoryWindow, SessionKey};
use lango_domain::{StoreError, Stores};

use super::super::{append_turn, key, new_event, ok, user_request};

pub async fn check(stores: &Stores) {
    forks_have_whole_turns(stores).await;
    forks_need_a_turn_and_a_new_name(stores).await;
    imports_are_renumbered(stores).await;
}

/// Returns the events as a copy in another session has them.
fn copied(events: &[Arc<Event>], into: &SessionId) -> Vec<Arc<Event>> {
    let copy = |(seq, event): (u64, &Arc<Event>)| {
        Arc::new(Event {
            seq,
            session: into.clone(),
            ..Event::clone(event)
        })
    };
    (1..).zip(events).map(copy).collect()
}

async fn load(stores: &Stores, key: &SessionKey) -> Vec<Arc<Event>> {
    let loaded = stores
        .sessions
        .load(key.as_ref(), HistoryWindow::Everything);
    ok(loaded.await)
}

/// Appends two whole turns and one that has not ended.
async fn append_source(stores: &Stores, key: &SessionKey) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    for turn in ["t1", "t2"] {
        events.extend(append_turn(&*stores.sessions, key, turn, "hello").await);
    }
    let open = vec![new_event("t3", user_request("more"))];
    events.extend(ok(stores.sessions.append(key.as_ref(), open).await));
    events
}

async fn forks_have_whole_turns(stores: &Stores) {
    let source = key("fork", "source");
    let events = append_source(stores, &source).await;
    for (at, expected) in [(3, 3), (5, 3), (6, 6), (7, 6), (u64::MAX, 6)] {
        let copy = key("fork", &format!("copy at {at}"));
        let count = stores
            .catalog
            .fork(&source.principal, &source.session, at, &copy.session)
            .await;
        assert_eq!(ok(count), expected as u64, "at {at}");
        assert_eq!(
            load(stores, &copy).await,
            copied(&events[..expected], &copy.session)
        );
    }
    assert_eq!(load(stores, &source).await, events, "the source stays");
    let copy = key("fork", "copy at 3");
    let next = append_turn(&*stores.sessions, &copy, "t4", "go on").await;
    assert_eq!(next[0].seq, 4, "a copy can go on");
}

async fn forks_need_a_turn_and_a_new_name(stores: &Stores) {
    let (source, taken) = (key("fork-errors", "source"), key("fork-errors", "taken"));
    append_source(stores, &source).await;
    let before = append_turn(&*stores.sessions, &taken, "t", "mine").await;
    let new = SessionId::new("new");
    let missing = SessionId::new("missing");
    for (from, at, into, error) in [
        (&source.session, 0, &new, StoreError::NoCompleteTurn(0)),
        (&source.session, 2, &new, StoreError::NoCompleteTurn(2)),
        (
            &source.session,
            3,
            &taken.session,
            StoreError::SessionExists("taken".to_owned()),
        ),
        (
            &missing,
            3,
            &new,
            StoreError::SessionNotFound("missing".to_owned()),
        ),
    ] {
        let forked = stores.catalog.fork(&source.principal, from, at, into).await;
        assert_eq!(forked, Err(error));
    }
    assert_eq!(load(stores, &taken).await, before);
    let created = stores.catalog.session(&source.principal, &new).await;
    assert!(created.is_err(), "a failed fork creates no session");
}

/// B74: a session is imported for one principal; the name stays free for others.
async fn imports_are_renumbered(stores: &Stores) {
    let (source, copy) = (key("import", "source"), key("importer", "source"));
    let events = append_source(stores, &source).await;
    let imported = stores
        .catalog
        .import_session(&copy.principal, &copy.session, events[3..6].to_vec())
        .await;
    ok(imported);
    assert_eq!(
        load(stores, &copy).await,
        copied(&events[3..6], &copy.session)
    );
    let again = stores
        .catalog
        .import_session(&copy.principal, &copy.session, events.clone())
        .await;
    assert_eq!(again, Err(StoreError::SessionExists("source".to_owned())));
    assert_eq!(load(stores, &copy).await.len(), 3);
    assert_eq!(load(stores, &source).await, events);
}
