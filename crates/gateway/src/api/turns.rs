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
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::gate::Caller;
use crate::gateway::Gateway;
use crate::listeners::Thread;
use crate::reading::{Asked, NOT_BLANK, Named, Sent, SessionName, session_named};
use crate::refusal::Refusal;
use crate::sse::{self, Deltas};
use crate::streams::Opened;
use crate::turns::{Addressee, Begin, Leaving, TurnWish};

/// So many kept events are read at once.
const PAGE: usize = 256;

/// A request to the team.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = asks_or_resumes)]
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
fn asks_or_resumes(body: &mut Schema) {
    let asks = json!({
        "required": ["text"],
        "properties": { "text": { "type": "string", "pattern": NOT_BLANK }, "resume": { "const": false } },
    });
    let resumes = json!({
        "required": ["session", "resume"],
        "properties": {
            "session": { "type": "string" },
            "resume": { "const": true },
            "text": { "not": { "type": "string", "pattern": NOT_BLANK } },
        },
    });
    body.insert("anyOf".to_owned(), json!([asks, resumes]));
}

pub(crate) async fn ask(
    State(gateway): State<Gateway>,
    caller: Caller,
    Sent(body): Sent<TurnBody>,
) -> Result<Response, Refusal> {
    let session = match &body.session {
        Some(name) => session_named(name)?,
        None if body.resume => {
            return Err(Refusal::bad_request("there is no session to go on with", "name it in `session`"));
        }
        None => gateway.new_session(),
    };
    let to = match &body.agent {
        Some(name) => Addressee::Alone(agent_named(name)?),
        None => Addressee::Team,
    };
    let begin = begin(&gateway, &caller, &body, &session).await?;
    let leaving = if body.detach { Leaving::GoesOn } else { Leaving::Cancels };
    let principal = caller.principal().clone();
    let name = header_of(&session);
    let turn = gateway.start_turn(TurnWish { principal, session, to, begin, leaving })?;
    let deltas = if body.deltas { Deltas::Told } else { Deltas::LeftOut };
    let mut has_begun = false;
    let frames = turn.map(Some).chain(stream::once(ready(None))).filter_map(move |update| {
        has_begun |= update.is_some();
        ready(match update {
            Some(update) => sse::frame(&update, deltas),
            // Whoever waits for an end gets one, though there is nothing to keep.
            None => (!has_begun).then(sse::never_begun),
        })
    });
    let mut response = sse::stream(&gateway, &caller, frames);
    if let Some(name) = name {
        response.headers_mut().insert(HeaderName::from_static("x-lango-session"), name);
    }
    Ok(response)
}

async fn begin(
    gateway: &Gateway,
    caller: &Caller,
    body: &TurnBody,
    session: &SessionId,
) -> Result<Begin, Refusal> {
    let text = body.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
    match (body.resume, text) {
        (false, Some(text)) => Ok(Begin::Request(text.to_owned())),
        (false, None) => {
            Err(Refusal::bad_request("the request is empty", "say in `text` what is to be done"))
        }
        (true, Some(_)) => Err(Refusal::bad_request(
            "a turn that is gone on with has its request already",
            "leave out `text`, or leave out `resume`",
        )),
        (true, None) => {
            gateway.store().session(caller.principal(), session).await?;
            let team = gateway.team();
            match team.runner.unfinished(session, caller.principal()).await? {
                Some(_) => Ok(Begin::Resume),
                None => Err(Refusal::new(
                    StatusCode::CONFLICT,
                    "nothing_to_resume",
                    "the last turn of this session came to its end",
                    "ask something new in `text`",
                )),
            }
        }
    }
}

pub(crate) fn agent_named(name: &str) -> Result<AgentName, Refusal> {
    AgentName::new(name)
        .map_err(|error| Refusal::bad_request(error.to_string(), "GET /api/agents lists who is there"))
}

/// Names of sessions may have letters that headers have not.
fn header_of(session: &SessionId) -> Option<HeaderValue> {
    HeaderValue::from_str(session.as_str()).ok().filter(|value| value.to_str().is_ok())
}

/// What became of a wish to end a turn.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Cancelled {
    /// Whether a turn was running here.
    pub cancelled: bool,
}

pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(session): Named,
) -> Result<Json<Cancelled>, Refusal> {
    let session = session_named(&session)?;
    let cancelled = gateway.cancel_turn(caller.principal(), &session);
    if !cancelled {
        gateway.store().session(caller.principal(), &session).await?;
    }
    Ok(Json(Cancelled { cancelled }))
}

/// How a session is followed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Following {
    /// Only events with a higher number; `Last-Event-ID` says the same.
    pub after: Option<u64>,
    /// Tell text as it comes, too.
    pub deltas: bool,
}

pub(crate) async fn follow(
    State(gateway): State<Gateway>,
    caller: Caller,
    Named(session): Named,
    Asked(how): Asked<Following>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let session = session_named(&session)?;
    let thread = Thread { principal: caller.principal().clone(), session };
    // A turn may have begun that has not written anything yet.
    if !gateway.running().has(&thread) {
        gateway.store().session(&thread.principal, &thread.session).await?;
    }
    let place = gateway.open_stream(&thread.principal)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let deltas = if how.deltas { Deltas::Told } else { Deltas::LeftOut };
    let live = Some(gateway.listeners().listen(&thread));
    let last = last.or(how.after).unwrap_or(0);
    let follower = Follower { gateway: gateway.clone(), thread, live, last, _place: place };
    let over = gateway.over().clone();
    let frames = follower.frames(deltas).take_until(over.cancelled_owned());
    Ok(sse::stream(&gateway, &caller, frames))
}

/// Reads what is kept, then what comes; whoever falls behind reads what is kept again.
struct Follower {
    gateway: Gateway,
    thread: Thread,
    /// There until it is dropped.
    live: Option<Receiver<Update>>,
    last: u64,
    _place: Opened,
}

/// Where a follower reads.
enum Source {
    Kept,
    Live,
}

impl Follower {
    fn frames(self, deltas: Deltas) -> impl Stream<Item = Frame> + Send {
        let batches = stream::unfold((self, Source::Kept), |(mut follower, source)| async move {
            let (updates, next) = match source {
                Source::Kept => follower.kept().await?,
                Source::Live => follower.next().await?,
            };
            Some((stream::iter(updates), (follower, next)))
        });
        batches.flatten().filter_map(move |update| ready(sse::frame(&update, deltas)))
    }

    async fn kept(&mut self) -> Option<(Vec<Update>, Source)> {
        let (principal, session) = (&self.thread.principal, &self.thread.session);
        let read = self.gateway.store().events_after(principal, session, self.last, PAGE).await;
        let events: Vec<Arc<Event>> =
            read.inspect_err(|trouble| tracing::error!(%trouble, "a session cannot be followed")).ok()?;
        let next = if events.len() < PAGE { Source::Live } else { Source::Kept };
        self.last = events.last().map_or(self.last, |event| event.seq);
        Some((events.into_iter().map(Update::Event).collect(), next))
    }

    async fn next(&mut self) -> Option<(Vec<Update>, Source)> {
        match self.live.as_mut()?.recv().await {
            Ok(Update::Event(event)) if event.seq <= self.last => Some((Vec::new(), Source::Live)),
            Ok(Update::Event(event)) if event.seq > self.last + 1 => Some((Vec::new(), Source::Kept)),
            Ok(update) => {
                if let Update::Event(event) = &update {
                    self.last = event.seq;
                }
                Some((vec![update], Source::Live))
            }
            Err(RecvError::Lagged(_)) => Some((Vec::new(), Source::Kept)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.live = None;
        self.gateway.listeners().tidy(&self.thread);
    }
}
