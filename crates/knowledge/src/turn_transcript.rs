//! Whole turns of a session, read for what comes after them.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{Event, EventBody, TurnId};
use lango_domain::session::SessionKey;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError};

/// So much of a session is read first, and so much at most.
const INITIAL_BYTES: usize = 64 * 1024;
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The turns of a session that ended, back to the one behind an event and beyond where that costs nothing.
pub(crate) async fn load_finished_turns(
    sessions: &dyn SessionStore,
    of: &SessionKey,
    behind: u64,
) -> Result<Vec<Arc<Event>>, StoreError> {
    let key = SessionKeyRef {
        session: &of.session,
        principal: &of.principal,
    };
    let mut bytes = INITIAL_BYTES;
    let mut events = loop {
        let events = sessions.load(key, HistoryWindow::Recent { bytes }).await?;
        if bytes >= MAX_BYTES || events.first().is_none_or(|first| first.seq <= behind + 1) {
            break events;
        }
        bytes *= 8;
    };
    let is_end = |event: &Arc<Event>| {
        matches!(
            event.body,
            EventBody::TurnDone | EventBody::TurnFailed { .. }
        )
    };
    let end = events.iter().rposition(is_end).map_or(0, |at| at + 1);
    events.truncate(end);
    Ok(events)
}

/// What was asked and answered in one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnTranscript {
    pub turn: TurnId,
    /// When it began.
    pub at: Timestamp,
    /// The number of the request.
    pub seq: u64,
    /// The number of its last event.
    pub through: u64,
    pub request: String,
    /// Nothing when the turn failed.
    pub answer: Option<String>,
    /// That of what was said, and that of both.
    pub request_label: Label,
    pub label: Label,
}

/// The conversation as the user saw it; nothing that was looked up for it, and nobody's inner steps.
pub(crate) fn turn_transcripts(events: &[Arc<Event>]) -> Vec<TurnTranscript> {
    let mut exchanges: Vec<TurnTranscript> = Vec::new();
    for event in events {
        match (&event.body, exchanges.last_mut()) {
            (EventBody::User { text }, _) => exchanges.push(TurnTranscript {
                turn: event.turn.clone(),
                at: event.at,
                seq: event.seq,
                through: event.seq,
                request: text.clone(),
                answer: None,
                request_label: event.label().into_owned(),
                label: event.label().into_owned(),
            }),
            (body, Some(exchange)) => {
                exchange.through = event.seq;
                if let EventBody::Answer { text } = body {
                    exchange.answer = Some(text.clone());
                    exchange.label.join(&event.label());
                }
            }
            (_, None) => {}
        }
    }
    exchanges
}
