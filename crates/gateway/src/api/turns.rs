//! Asking, following, cancelling.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::response::sse::Event as Frame;
use futures::StreamExt;
use futures::future::ready;
use futures::stream::{self, Stream};
use lango_domain::AgentName;
use lango_domain::event::{Event, SessionId, Update};
use lango_domain::session::SessionKey;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{
    JsonBody, NOT_BLANK_PATTERN, PathName, QueryParams, SessionName, parse_session_id,
};
use crate::gateway::Gateway;
use crate::sse::{self, DeltaMode};
use crate::stream_limit::StreamPermit;
use crate::turns::{OnDisconnect, TurnInput, TurnSpec, TurnTarget};

/// So many kept events are read at once.
const PAGE_SIZE: usize = 256;

/// A request to the team.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = require_text_or_resume)]
pub(crate) struct TurnBody {
    /// What is asked; left out with `resume`.
    #[serde(default)]
    pub text: Option<String>,
    /// The session that it belongs to; a new one when left out.
    #[serde(default)]
    #[schemars(with = "Option<SessionName>")]
    pub session: Option<String>,
    /// One agent that is to answer alone, instead of the team.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_-]{0,62}$"))]
    pub agent: Option<String>,
    /// Go on with the turn of the session that was stopped, where it stopped.
    #[serde(default)]
    pub resume: bool,
    /// Tell text as it comes, too.
    #[serde(default)]
    pub deltas: bool,
    /// The turn goes on when nobody reads it any more.
    #[serde(default)]
    pub detach: bool,
}

/// Says in the description what belongs together: a request, or a session to go on with.
fn require_text_or_resume(body: &mut Schema) {
    let asks = json!({
        "required": ["text"],
        "properties": { "text": { "type": "string", "pattern": NOT_BLANK_PATTERN }, "resume": { "const": false } },
    });
    let resumes = json!({
        "required": ["session", "resume"],
        "properties": {
            "session": { "type": "string" },
            "resume": { "const": true },
            "text": { "not": { "type": "string", "pattern": NOT_BLANK_PATTERN } },
        },
    });
    body.insert("anyOf".to_owned(), json!([asks, resumes]));
}

pub(crate) async fn start(
    State(gateway): State<Gateway>,
    caller: Caller,
    JsonBody(body): JsonBody<TurnBody>,
) -> Result<Response, ApiError> {
    let session = match &body.session {
        Some(name) => parse_session_id(name)?,
        None if body.resume => {
            return Err(ApiError::bad_request(
                "there is no session to go on with",
                "name it in `session`",
            ));
        }
        None => gateway.new_session(),
    };
    let to = match &body.agent {
        Some(name) => TurnTarget::Agent(parse_agent_name(name)?),
        None => TurnTarget::Team,
    };
    let begin = turn_input(&gateway, &caller, &body, &session).await?;
    let leaving = if body.detach {
        OnDisconnect::Continue
    } else {
        OnDisconnect::Cancel
    };
    let principal = caller.principal().clone();
    let name = session_header(&session);
    let turn = gateway.start_turn(TurnSpec {
        principal,
        session,
        target: to,
        input: begin,
        on_disconnect: leaving,
    })?;
    let deltas = if body.deltas {
        DeltaMode::Include
    } else {
        DeltaMode::Omit
    };
    let mut has_begun = false;
    let frames = turn
        .map(Some)
        .chain(stream::once(ready(None)))
        .filter_map(move |update| {
            has_begun |= update.is_some();
            ready(match update {
                Some(update) => sse::frame(&update, deltas),
                // Whoever waits for an end gets one, though there is nothing to keep.
                None => (!has_begun).then(sse::turn_never_started),
            })
        });
    let mut response = sse::stream(&gateway, &caller, frames);
    if let Some(name) = name {
        response
            .headers_mut()
            .insert(HeaderName::from_static("x-lango-session"), name);
    }
    Ok(response)
}

async fn turn_input(
    gateway: &Gateway,
    caller: &Caller,
    body: &TurnBody,
    session: &SessionId,
) -> Result<TurnInput, ApiError> {
    let text = body
        .text
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    match (body.resume, text) {
        (false, Some(text)) => Ok(TurnInput::Request(text.to_owned())),
        (false, None) => Err(ApiError::bad_request(
            "the request is empty",
            "say in `text` what is to be done",
        )),
        (true, Some(_)) => Err(ApiError::bad_request(
            "a turn that is gone on with has its request already",
            "leave out `text`, or leave out `resume`",
        )),
        (true, None) => {
            gateway.store().session(caller.principal(), session).await?;
            let team = gateway.team();
            match team
                .runner
                .find_unfinished_turn(session, caller.principal())
                .await?
            {
                Some(_) => Ok(TurnInput::Resume),
                None => Err(ApiError::new(
                    StatusCode::CONFLICT,
                    "nothing_to_resume",
                    "the last turn of this session came to its end",
                    "ask something new in `text`",
                )),
            }
        }
    }
}

pub(crate) fn parse_agent_name(name: &str) -> Result<AgentName, ApiError> {
    AgentName::new(name).map_err(|error| {
        ApiError::bad_request(error.to_string(), "GET /api/agents lists who is there")
    })
}

/// Names of sessions may have letters that headers have not.
fn session_header(session: &SessionId) -> Option<HeaderValue> {
    HeaderValue::from_str(session.as_str())
        .ok()
        .filter(|value| value.to_str().is_ok())
}

/// What became of a wish to end a turn.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CancelResponse {
    /// Whether a turn was running here.
    pub cancelled: bool,
}

pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(session): PathName,
) -> Result<Json<CancelResponse>, ApiError> {
    let session = parse_session_id(&session)?;
    let cancelled = gateway.cancel_turn(caller.principal(), &session);
    if !cancelled {
        gateway
            .store()
            .session(caller.principal(), &session)
            .await?;
    }
    Ok(Json(CancelResponse { cancelled }))
}

/// How a session is followed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct FollowQuery {
    /// Only events with a higher number; `Last-Event-ID` says the same.
    pub after: Option<u64>,
    /// Tell text as it comes, too.
    pub deltas: bool,
}

pub(crate) async fn follow(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(session): PathName,
    QueryParams(how): QueryParams<FollowQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = parse_session_id(&session)?;
    let thread = SessionKey {
        principal: caller.principal().clone(),
        session,
    };
    // A turn may have begun that has not written anything yet.
    if !gateway.running_turns().contains(&thread) {
        gateway
            .store()
            .session(&thread.principal, &thread.session)
            .await?;
    }
    let place = gateway.open_stream(&thread.principal)?;
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let deltas = if how.deltas {
        DeltaMode::Include
    } else {
        DeltaMode::Omit
    };
    let live = Some(gateway.subscribers().subscribe(&thread));
    let last = last.or(how.after).unwrap_or(0);
    let follower = SessionFollower {
        gateway: gateway.clone(),
        key: thread,
        live,
        last,
        _permit: place,
    };
    let over = gateway.close_connections().clone();
    let frames = follower.frames(deltas).take_until(over.cancelled_owned());
    Ok(sse::stream(&gateway, &caller, frames))
}

/// Reads what is kept, then what comes; whoever falls behind reads what is kept again.
struct SessionFollower {
    gateway: Gateway,
    key: SessionKey,
    /// There until it is dropped.
    live: Option<Receiver<Update>>,
    last: u64,
    _permit: StreamPermit,
}

/// Where a follower reads.
enum FollowSource {
    Stored,
    Live,
}

impl SessionFollower {
    fn frames(self, deltas: DeltaMode) -> impl Stream<Item = Frame> + Send {
        let batches = stream::unfold(
            (self, FollowSource::Stored),
            |(mut follower, source)| async move {
                let (updates, next) = match source {
                    FollowSource::Stored => follower.read_stored().await?,
                    FollowSource::Live => follower.next_live().await?,
                };
                Some((stream::iter(updates), (follower, next)))
            },
        );
        batches
            .flatten()
            .filter_map(move |update| ready(sse::frame(&update, deltas)))
    }

    async fn read_stored(&mut self) -> Option<(Vec<Update>, FollowSource)> {
        let (principal, session) = (&self.key.principal, &self.key.session);
        let read = self
            .gateway
            .store()
            .events_after(principal, session, self.last, PAGE_SIZE)
            .await;
        let events: Vec<Arc<Event>> = read
            .inspect_err(|trouble| tracing::error!(%trouble, "a session cannot be followed"))
            .ok()?;
        let next = if events.len() < PAGE_SIZE {
            FollowSource::Live
        } else {
            FollowSource::Stored
        };
        self.last = events.last().map_or(self.last, |event| event.seq);
        Some((events.into_iter().map(Update::Event).collect(), next))
    }

    async fn next_live(&mut self) -> Option<(Vec<Update>, FollowSource)> {
        match self.live.as_mut()?.recv().await {
            Ok(Update::Event(event)) if event.seq <= self.last => {
                Some((Vec::new(), FollowSource::Live))
            }
            Ok(Update::Event(event)) if event.seq > self.last + 1 => {
                Some((Vec::new(), FollowSource::Stored))
            }
            Ok(update) => {
                if let Update::Event(event) = &update {
                    self.last = event.seq;
                }
                Some((vec![update], FollowSource::Live))
            }
            Err(RecvError::Lagged(_)) => Some((Vec::new(), FollowSource::Stored)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Drop for SessionFollower {
    fn drop(&mut self) {
        self.live = None;
        self.gateway.subscribers().remove_if_unused(&self.key);
    }
}
