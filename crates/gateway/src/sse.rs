//! Updates as server-sent events: the same JSON as `lango ask --json` prints, with the event's
//! sequence number as its id.

use std::convert::Infallible;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::Stream;
use lango_domain::event::Update;
use lango_domain::failure::FailureCode;
use serde_json::{Value, json};

use crate::auth::{Caller, TokenCache};
use crate::gateway::Gateway;

/// Disables response buffering in proxies, which would delay a stream.
const NO_BUFFERING_HEADER: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// Selects whether text deltas are part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaMode {
    Include,
    Omit,
}

/// Returns the frame for an update, or `None` for a delta that is omitted.
pub(crate) fn frame(update: &Update, deltas: DeltaMode) -> Option<Frame> {
    let delta = |value: Value| {
        (deltas == DeltaMode::Include).then(|| Frame::default().data(value.to_string()))
    };
    match update {
        Update::Event(event) => {
            let data = serde_json::to_string(&**event).unwrap_or_default();
            Some(Frame::default().id(event.seq.to_string()).data(data))
        }
        Update::Delta { author, text } => {
            delta(json!({ "type": "delta", "author": author, "text": text }))
        }
        Update::ToolOutputDelta { author, call, text } => {
            delta(json!({ "type": "printed", "author": author, "id": call, "text": text }))
        }
        // This end of the turn is not stored, so it has no sequence number.
        Update::StoreFailed(_) => Some(Frame::default().data(store_failed().to_string())),
    }
}

fn store_failed() -> Value {
    json!({
        "type": "turn_failed",
        "code": FailureCode::Internal,
        "message": "the turn was stopped because its events could not be stored",
        "hint": "run `lango doctor` on the server",
    })
}

/// Returns the end of a turn that was stopped while it waited for another turn of its session.
pub(crate) fn turn_never_started() -> Frame {
    let end = json!({
        "type": "turn_failed",
        "code": FailureCode::Cancelled,
        "message": "the turn was stopped before it started",
        "hint": "send the request again",
    });
    Frame::default().data(end.to_string())
}

/// Returns a response that streams the frames until they end or the caller's token is revoked or
/// expired.
pub(crate) fn stream(
    gateway: &Gateway,
    caller: &Caller,
    frames: impl Stream<Item = Frame> + Send + 'static,
) -> Response {
    use futures::StreamExt as _;
    let keep_alive = KeepAlive::new().interval(gateway.settings().keep_alive_interval());
    let frames = frames.take_until(TokenCache::wait_until_revoked(
        gateway.clone(),
        caller.clone(),
    ));
    let mut response = Sse::new(frames.map(Ok::<_, Infallible>))
        .keep_alive(keep_alive)
        .into_response();
    let (name, value) = NO_BUFFERING_HEADER;
    response.headers_mut().insert(name, value);
    response
}
