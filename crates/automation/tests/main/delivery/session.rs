//! Sessions: a delivered message is a turn of its own.

use std::sync::{Arc, Mutex};

use lango_automation::delivery::{DeliveryChannels, SendError, SessionChannel};
use lango_domain::Label;
use lango_domain::event::{Author, EventBody, Principal, SessionId, TurnId};
use lango_domain::session::{HistoryWindow, SessionKey, SessionStore};
use lango_testkit::conformance::{answer, new_event, user_request};

use super::{DeliveryHarness, delivery, send};

fn key(principal: &str) -> SessionKey {
    SessionKey {
        session: SessionId::new("daily"),
        principal: Principal::new(principal),
    }
}

async fn bodies(harness: &DeliveryHarness, principal: &str) -> Vec<EventBody> {
    let key = key(principal);
    let log = harness
        .sessions
        .load(key.as_ref(), HistoryWindow::Everything);
    let log = log.await.unwrap();
    log.iter().map(|event| event.body.clone()).collect()
}

#[tokio::test]
async fn message_is_an_answer_of_the_automator_exactly_once() {
    let harness = DeliveryHarness::new();
    let published = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&published);
    let channels = DeliveryChannels {
        sessions: SessionChannel::new(harness.sessions.clone(), move |_, _| {
            *seen.lock().unwrap() += 1;
        }),
        ..harness.channels()
    };
    let turn = [user_request("hi"), answer("hello"), EventBody::turn_done()];
    let turn = turn.map(|body| new_event("t1", body)).to_vec();
    let local = key("local");
    harness.sessions.append(local.as_ref(), turn).await.unwrap();
    let mut message = delivery("session:daily", "Report", "all\u{7} well");
    message.message.label = Label::untrusted("https://example.com/");
    for attempt in 1..4 {
        message.attempts = attempt;
        send(&channels, &message).await.unwrap();
    }
    let log = harness
        .sessions
        .load(local.as_ref(), HistoryWindow::Everything);
    let log = log.await.unwrap();
    assert_eq!(log.len(), 5);
    let EventBody::Answer(lango_domain::Content { text, .. }) = &log[3].body else {
        panic!("{:?}", log[3]);
    };
    assert_eq!(text, "Report\n\nall well");
    assert_eq!(log[3].author.to_string(), "automator");
    assert_ne!(log[3].author, Author::User);
    assert_ne!(log[3].turn, TurnId::new("t1"));
    assert!(log[3].label.is_untrusted(), "the label stays with the text");
    assert_eq!(log[4].body, EventBody::turn_done());
    assert_eq!(*published.lock().unwrap(), 2);
}

#[tokio::test]
async fn sessions_of_other_principals_are_not_touched() {
    let harness = DeliveryHarness::new();
    let mut message = delivery("session:daily", "a", "b");
    message.principal = Principal::new("ann");
    send(&harness.channels(), &message).await.unwrap();
    assert_eq!(bodies(&harness, "ann").await.len(), 2);
    assert_eq!(bodies(&harness, "local").await, []);
}

#[tokio::test]
async fn interrupted_turn_stays_the_last_one() {
    let harness = DeliveryHarness::new();
    let open = vec![new_event("t1", user_request("hi"))];
    let local = key("local");
    harness.sessions.append(local.as_ref(), open).await.unwrap();
    let error = harness.send("session:daily", "x").await.unwrap_err();
    assert!(
        matches!(&error, SendError::Temporary(text) if text.contains("interrupted")),
        "{error:?}"
    );
    assert_eq!(bodies(&harness, "local").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn running_turn_is_not_waited_for_without_end() {
    let harness = DeliveryHarness::new();
    let local = key("local");
    let _turn = harness.sessions.lock(local.as_ref()).await.unwrap();
    let error = harness.send("session:daily", "x").await.unwrap_err();
    assert!(
        matches!(&error, SendError::Temporary(text) if text.contains("is running")),
        "{error:?}"
    );
}
