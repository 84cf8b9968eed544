//! Deliveries to a session.
//!
//! A delivered message is a turn of its own with two events: an answer by the automator and the end of
//! the turn. It has no request, because the user asked nothing. Agents read such an answer as quoted text
//! of another agent, and its label applies to everything that they derive from it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::event::{Author, Branch, Event, EventBody, NewEvent, SessionId, TurnId, Update};
use lango_domain::session::{HistoryWindow, SessionKey, SessionStore};
use lango_domain::{AgentName, Label, StoreError};

use super::channels::{DeliverySender, SendError, SentMessage};
use super::message::OutgoingMessage;

/// The author of delivered answers.
pub const DELIVERY_AUTHOR: &str = "automator";
/// About 6,000 tokens, which is the most that agents read of an answer of another agent.
const MAX_ANSWER_BYTES: usize = 24 * 1024;
/// The part of a session that the first attempt searches for the message. Later attempts search all of
/// it.
const RECENT_BYTES: usize = 256 * 1024;
/// Time to wait for a turn of the session to end. After that, the next attempt waits.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Publishes an event to those who watch the session.
type PublishEvent = Arc<dyn Fn(&SessionKey, &Update) + Send + Sync>;

/// Access to the sessions that messages are delivered to.
#[derive(Clone)]
pub struct SessionChannel {
    sessions: Arc<dyn SessionStore>,
    publish: PublishEvent,
}

impl SessionChannel {
    /// Creates a channel. `publish` is called with each stored event.
    pub fn new(
        sessions: Arc<dyn SessionStore>,
        publish: impl Fn(&SessionKey, &Update) + Send + Sync + 'static,
    ) -> Self {
        Self {
            sessions,
            publish: Arc::new(publish),
        }
    }

    async fn append(
        &self,
        key: &SessionKey,
        message: OutgoingMessage<'_>,
    ) -> Result<(), SendError> {
        let turn = TurnId::new(format!("delivery-{}", message.key()));
        let lock = self.sessions.lock(key.as_ref());
        let Ok(lock) = tokio::time::timeout(LOCK_TIMEOUT, lock).await else {
            return Err(SendError::Temporary(format!(
                "a turn of session `{}` is running",
                key.session
            )));
        };
        let _lock = lock.map_err(store_failed)?;
        let window = match message.delivery.attempts {
            0 | 1 => HistoryWindow::Recent {
                bytes: RECENT_BYTES,
            },
            _ => HistoryWindow::Everything,
        };
        let log = self.sessions.load(key.as_ref(), window);
        let log = log.await.map_err(store_failed)?;
        if log.iter().any(|event| event.turn == turn) {
            return Ok(());
        }
        // An interrupted turn can only be resumed or closed while it is the last one.
        if has_unfinished_turn(&log) {
            return Err(SendError::Temporary(format!(
                "the last turn of session `{}` was interrupted and is not closed yet",
                key.session
            )));
        }
        let events = answer_turn(turn, message).map_err(SendError::Permanent)?;
        let stored = self.sessions.append(key.as_ref(), events);
        for event in stored.await.map_err(store_failed)? {
            (self.publish)(key, &Update::Event(event));
        }
        Ok(())
    }
}

pub(super) struct SessionSender<'a> {
    pub channel: &'a SessionChannel,
    pub session: &'a SessionId,
}

impl DeliverySender for SessionSender<'_> {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>> {
        let key = SessionKey {
            session: self.session.clone(),
            principal: message.delivery.principal.clone(),
        };
        async move {
            self.channel.append(&key, message).await?;
            Ok(SentMessage::default())
        }
        .boxed()
    }
}

fn has_unfinished_turn(log: &[Arc<Event>]) -> bool {
    let Some(last) = log.last() else {
        return false;
    };
    let mut turn_events = log.iter().filter(|event| event.turn == last.turn);
    !turn_events.any(|event| event.body.is_turn_end())
}

fn answer_turn(turn: TurnId, message: OutgoingMessage<'_>) -> Result<Vec<NewEvent>, String> {
    let author = AgentName::new(DELIVERY_AUTHOR).map_err(|error| error.to_string())?;
    let event = |label: Label, body: EventBody| NewEvent {
        turn: turn.clone(),
        author: Author::Agent(author.clone()),
        branch: Branch::root(&author),
        at: message.sent_at,
        label,
        body,
    };
    let answer = EventBody::Answer(message.title_and_text(MAX_ANSWER_BYTES).into());
    Ok(vec![
        event(message.delivery.message.label.clone(), answer),
        event(Label::default(), EventBody::turn_done()),
    ])
}

fn store_failed(error: StoreError) -> SendError {
    SendError::Temporary(error.to_string())
}
