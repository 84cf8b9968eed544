//! Starting, following and cancelling turns.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::response::sse::Event as Frame;
use futures::StreamExt;
use futures::future::ready;
use futures::stream::{self, Stream};
use lango_domain::content::Attachment;
use lango_domain::event::{Event, SessionId, Update};
use lango_domain::markers::ATTACHMENTS_ONLY_REQUEST;
use lango_domain::session::SessionKey;
use lango_domain::{AgentName, Content};
use lango_engine::TurnRequest;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::attachments::bad_attachment;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{
    JsonBody, NOT_BLANK_PATTERN, Object, PathName, QueryParams, SessionName, parse_session_id,
};
use crate::gateway::Gateway;
use crate::sse::{self, DeltaMode};
use crate::stream_limit::StreamPermit;
use lango_runtime::{OnDisconnect, TurnInput, TurnSpec, TurnTarget};

/// Number of stored events read per query.
const PAGE_SIZE: usize = 256;

/// A request to the team.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = require_text_or_resume)]
pub(crate) struct TurnBody {
    /// The text of the request. Must be omitted with `resume`.
    #[serde(default)]
    pub text: Option<String>,
    /// Images and files of the request.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub attachments: Vec<Object<AttachmentBody>>,
    /// The session of the turn; a new one if omitted.
    #[serde(default)]
    #[schemars(with = "Option<SessionName>")]
    pub session: Option<String>,
    /// A single agent that answers instead of the team.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z][a-z0-9_-]{0,62}$"))]
    pub agent: Option<String>,
    /// Resumes the suspended turn of the session.
    #[serde(default)]
    pub resume: bool,
    /// Includes text deltas in the stream.
    #[serde(default)]
    pub deltas: bool,
    /// Continues the turn when the client disconnects.
    #[serde(default)]
    pub detach: bool,
}

/// An image or a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttachmentBody {
    /// The name of the file.
    #[serde(default)]
    pub name: Option<String>,
    /// The media type; derived from the content if omitted.
    #[serde(default)]
    pub media_type: Option<String>,
    /// The content as base64.
    pub data: String,
}

/// Adds to the schema that a body has either `text`, or `session` and `resume`.
fn require_text_or_resume(body: &mut Schema) {
    let request = json!({
        "anyOf": [
            { "required": ["text"], "properties": { "text": { "type": "string", "pattern": NOT_BLANK_PATTERN } } },
            { "required": ["attachments"], "properties": { "attachments": { "minItems": 1 } } },
        ],
        "properties": { "resume": { "const": false } },
    });
    let resume = json!({
        "required": ["session", "resume"],
        "properties": {
            "session": { "type": "string" },
            "resume": { "const": true },
            "text": { "not": { "type": "string", "pattern": NOT_BLANK_PATTERN } },
        },
    });
    body.insert("anyOf".to_owned(), json!([request, resume]));
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
                "`resume` needs a session",
                "set `session` to the id of the session to resume",
            ));
        }
        None => gateway.new_session(),
    };
    let target = match &body.agent {
        Some(name) => TurnTarget::Agent(parse_agent_name(name)?),
        None => TurnTarget::Team,
    };
    let session_id = session_header(&session);
    let input = turn_input(&gateway, &caller, &body, session).await?;
    let on_disconnect = if body.detach {
        OnDisconnect::Continue
    } else {
        OnDisconnect::Cancel
    };
    let turn = gateway.start_turn(TurnSpec {
        target,
        on_disconnect,
        ..TurnSpec::new(input)
    })?;
    let deltas = if body.deltas {
        DeltaMode::Include
    } else {
        DeltaMode::Omit
    };
    let mut has_started = false;
    let frames = turn
        .map(Some)
        .chain(stream::once(ready(None)))
        .filter_map(move |update| {
            has_started |= update.is_some();
            ready(match update {
                Some(update) => sse::frame(&update, deltas),
                // Clients that wait for an end get one, though no event was stored.
                None => (!has_started).then(sse::turn_never_started),
            })
        });
    let mut response = sse::stream(&gateway, &caller, frames);
    if let Some(session_id) = session_id {
        response
            .headers_mut()
            .insert(HeaderName::from_static("x-lango-session"), session_id);
    }
    Ok(response)
}

async fn turn_input(
    gateway: &Gateway,
    caller: &Caller,
    body: &TurnBody,
    session: SessionId,
) -> Result<TurnInput, ApiError> {
    let principal = caller.principal().clone();
    let text = body
        .text
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    match (body.resume, text) {
        (false, text) if text.is_some() || !body.attachments.is_empty() => {
            let mut content = Content::from(text.unwrap_or(ATTACHMENTS_ONLY_REQUEST));
            content.attachments = parse_attachments(&body.attachments)?;
            let request = TurnRequest::from_user(session, principal, content);
            Ok(TurnInput::Request(request))
        }
        (false, _) => Err(ApiError::bad_request(
            "the request is empty",
            "set `text` to the request",
        )),
        (true, None) if !body.attachments.is_empty() => Err(ApiError::bad_request(
            "`attachments` cannot be combined with `resume`",
            "omit `attachments` or `resume`",
        )),
        (true, Some(_)) => Err(ApiError::bad_request(
            "`text` cannot be combined with `resume`; the suspended turn already has its request",
            "omit `text` or `resume`",
        )),
        (true, None) => {
            gateway
                .stores()
                .catalog
                .session(&principal, &session)
                .await?;
            let key = SessionKey { session, principal };
            match gateway.runtime().find_unfinished_turn(&key).await? {
                Some(_) => Ok(TurnInput::Resume(key)),
                None => Err(ApiError::new(
                    StatusCode::CONFLICT,
                    "nothing_to_resume",
                    "this session has no suspended turn",
                    "send a new request in `text`",
                )),
            }
        }
    }
}

fn parse_attachments(bodies: &[Object<AttachmentBody>]) -> Result<Vec<Attachment>, ApiError> {
    let parse = |Object(body): &Object<AttachmentBody>| {
        let name = body.name.as_deref().unwrap_or("attachment");
        Attachment::from_base64(&body.data, name, body.media_type.as_deref())
    };
    let parsed = bodies.iter().map(parse).collect::<Result<Vec<_>, _>>();
    let parsed = parsed.map_err(bad_attachment)?;
    Attachment::check_all(&parsed).map_err(bad_attachment)?;
    Ok(parsed)
}

pub(crate) fn parse_agent_name(name: &str) -> Result<AgentName, ApiError> {
    AgentName::new(name).map_err(|error| {
        ApiError::bad_request(error.to_string(), "GET /api/agents lists the agents")
    })
}

/// Returns the session id as a header value, or `None` if it has characters that are invalid in
/// headers.
fn session_header(session: &SessionId) -> Option<HeaderValue> {
    HeaderValue::from_str(session.as_str())
        .ok()
        .filter(|value| value.to_str().is_ok())
}

/// The result of a cancel request.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CancelResponse {
    /// True if a turn was running.
    pub cancelled: bool,
}

pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(session): PathName,
) -> Result<Json<CancelResponse>, ApiError> {
    let session = parse_session_id(&session)?;
    let cancelled = gateway.runtime().cancel_turn(caller.principal(), &session);
    if !cancelled {
        gateway
            .stores()
            .catalog
            .session(caller.principal(), &session)
            .await?;
    }
    Ok(Json(CancelResponse { cancelled }))
}

/// The query of `GET /api/sessions/{session}/events`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct FollowQuery {
    /// Returns only events with a higher sequence number. The `Last-Event-ID` header takes
    /// precedence.
    pub after: Option<u64>,
    /// Includes text deltas in the stream.
    pub deltas: bool,
}

pub(crate) async fn follow(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(session): PathName,
    QueryParams(query): QueryParams<FollowQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = parse_session_id(&session)?;
    let key = SessionKey {
        principal: caller.principal().clone(),
        session,
    };
    // A running turn may not have stored any event yet.
    if !gateway.runtime().has_turn(&key) {
        gateway
            .stores()
            .catalog
            .session(&key.principal, &key.session)
            .await?;
    }
    let permit = gateway.open_stream(&key.principal)?;
    let last = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let deltas = if query.deltas {
        DeltaMode::Include
    } else {
        DeltaMode::Omit
    };
    let live = Some(gateway.subscribers().subscribe(&key));
    let last = last.or(query.after).unwrap_or(0);
    let follower = SessionFollower {
        gateway: gateway.clone(),
        key,
        live,
        last,
        _permit: permit,
    };
    let shutdown = gateway.close_connections().clone();
    let frames = follower
        .frames(deltas)
        .take_until(shutdown.cancelled_owned());
    Ok(sse::stream(&gateway, &caller, frames))
}

/// Streams the stored events, then live updates. A follower that lags behind reads from the store
/// again.
struct SessionFollower {
    gateway: Gateway,
    key: SessionKey,
    /// `Some` until the follower is dropped.
    live: Option<Receiver<Update>>,
    last: u64,
    _permit: StreamPermit,
}

/// The source that a follower reads from.
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
        let result = self
            .gateway
            .stores()
            .catalog
            .events_after(principal, session, self.last, PAGE_SIZE)
            .await;
        let events: Vec<Arc<Event>> = result
            .inspect_err(|error| tracing::error!(%error, "cannot read the events of a session"))
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
