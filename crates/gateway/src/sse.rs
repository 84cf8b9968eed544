//! Updates as server-sent events: the same JSON as `lango ask --json` prints, with an event's number as its id.

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

/// Proxies that collect an answer before they pass it on would hold a stream back.
const NO_BUFFERING_HEADER: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// Whether text is told as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaMode {
    Include,
    Omit,
}

/// An update as a frame; none for what is left out.
pub(crate) fn frame(update: &Update, deltas: DeltaMode) -> Option<Frame> {
    let told = |value: Value| {
        (deltas == DeltaMode::Include).then(|| Frame::default().data(value.to_string()))
    };
    match update {
        Update::Event(event) => {
            let data = serde_json::to_string(&**event).unwrap_or_default();
            Some(Frame::default().id(event.seq.to_string()).data(data))
        }
        Update::Delta { author, text } => {
            told(json!({ "type": "delta", "author": author, "text": text }))
        }
        Update::ToolOutputDelta { author, call, text } => {
            told(json!({ "type": "printed", "author": author, "id": call, "text": text }))
        }
        // The end of a turn that could not be kept has no number.
        Update::StoreFailed(_) => Some(Frame::default().data(store_failed().to_string())),
    }
}

fn store_failed() -> Value {
    json!({
        "type": "turn_failed",
        "code": FailureCode::Internal,
        "message": "what happened could not be kept, so the turn ends here",
        "hint": "whoever runs the server finds the cause with `lango doctor`",
    })
}

/// The end of a turn that was stopped while it waited for another one of its session.
pub(crate) fn turn_never_started() -> Frame {
    let end = json!({
        "type": "turn_failed",
        "code": FailureCode::Cancelled,
        "message": "the turn was stopped before it began",
        "hint": "ask again",
    });
    Frame::default().data(end.to_string())
}

/// A response that stays open for as long as the frames come and the caller's token is good.
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
