//! Transcripts of finished turns, for after-turn hooks.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::event::{Event, EventBody, TurnId};
use lango_domain::session::SessionKey;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_domain::{Content, Label};

/// Bytes of a session that are read first.
const INITIAL_BYTES: usize = 64 * 1024;
/// Bytes of a session that are read at most.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Returns the events of the finished turns of a session, at least those after the event `after`.
pub(crate) async fn load_finished_turns(
    sessions: &dyn SessionStore,
    key: &SessionKey,
    after: u64,
) -> Result<Vec<Arc<Event>>, StoreError> {
    let key = SessionKeyRef {
        session: &key.session,
        principal: &key.principal,
    };
    let mut bytes = INITIAL_BYTES;
    let mut events = loop {
        let events = sessions.load(key, HistoryWindow::Recent { bytes }).await?;
        if bytes >= MAX_BYTES || events.first().is_none_or(|first| first.seq <= after + 1) {
            break events;
        }
        bytes *= 8;
    };
    let is_end = |event: &Arc<Event>| event.body.is_turn_end();
    let end = events.iter().rposition(is_end).map_or(0, |at| at + 1);
    events.truncate(end);
    Ok(events)
}

/// The request and the answer of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnTranscript {
    pub turn: TurnId,
    /// The time of the request.
    pub at: Timestamp,
    /// The sequence number of the request.
    pub seq: u64,
    /// The sequence number of the last event.
    pub through: u64,
    pub request: String,
    /// `None` if the turn failed.
    pub answer: Option<String>,
    /// The label of the request alone.
    pub request_label: Label,
    /// The label of request and answer.
    pub label: Label,
}

/// Returns the conversation as the user saw it, without context and intermediate steps of agents.
pub(crate) fn turn_transcripts(events: &[Arc<Event>]) -> Vec<TurnTranscript> {
    let mut transcripts: Vec<TurnTranscript> = Vec::new();
    for event in events {
        match (&event.body, transcripts.last_mut()) {
            (EventBody::User(Content { text, .. }), _) => transcripts.push(TurnTranscript {
                turn: event.turn.clone(),
                at: event.at,
                seq: event.seq,
                through: event.seq,
                request: text.clone(),
                answer: None,
                request_label: event.label().into_owned(),
                label: event.label().into_owned(),
            }),
            // A delivered message is a turn without a request.
            (body, Some(transcript)) if transcript.turn == event.turn => {
                transcript.through = event.seq;
                if let EventBody::Answer(Content { text, .. }) = body {
                    transcript.answer = Some(text.clone());
                    transcript.label.join(&event.label());
                }
            }
            _ => {}
        }
    }
    transcripts
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::event::SessionId;
    use lango_testkit::conformance::{answer, new_event, user_request};

    #[test]
    fn answer_without_a_request_belongs_to_no_other_turn() {
        let turns = [
            ("t1", user_request("hi")),
            ("t1", answer("hello")),
            ("t1", EventBody::turn_done()),
            ("delivery-1", answer("the disk is full")),
            ("delivery-1", EventBody::turn_done()),
        ];
        let events: Vec<Arc<Event>> = (1..)
            .zip(turns)
            .map(|(seq, (turn, body))| {
                Arc::new(new_event(turn, body).into_event(SessionId::new("s"), seq))
            })
            .collect();
        let transcripts = turn_transcripts(&events);
        assert_eq!(transcripts.len(), 1);
        assert_eq!(transcripts[0].answer.as_deref(), Some("hello"));
        assert_eq!(transcripts[0].through, 3);
    }
}
