//! Sessions of one's own.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lango_domain::event::SessionId;
use lango_store::SessionInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{PathName, QueryParams, parse_session_id};
use crate::gateway::Gateway;

/// So many events are given at once unless fewer are asked for.
const MAX_EVENTS: usize = 1_000;

/// A list of things.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub(crate) struct Items<T> {
    pub items: Vec<T>,
}

/// What is known about a session without reading it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionItem {
    pub id: String,
    /// The beginning of its first request.
    pub title: String,
    /// How many events it has.
    pub events: u64,
    #[schemars(extend("format" = "date-time"))]
    pub created: String,
    #[schemars(extend("format" = "date-time"))]
    pub updated: String,
    /// `interrupted` when its last turn has no end.
    #[schemars(extend("enum" = ["settled", "interrupted"]))]
    pub state: &'static str,
}

impl From<SessionInfo> for SessionItem {
    fn from(info: SessionInfo) -> Self {
        Self {
            state: info.state(),
            id: info.id.to_string(),
            title: info.title,
            events: info.events,
            created: info.created.to_string(),
            updated: info.updated.to_string(),
        }
    }
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Result<Json<Items<SessionItem>>, ApiError> {
    let sessions = gateway.store().sessions(caller.principal()).await?;
    Ok(Json(Items {
        items: sessions.into_iter().map(SessionItem::from).collect(),
    }))
}

/// Which events of a session.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct EventRange {
    /// Only events with a higher number.
    pub after: u64,
    /// So many at most; 1000 by default, and never more.
    pub limit: Option<usize>,
}

/// A session and its events.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionBody {
    pub session: SessionItem,
    /// As `lango ask --json` prints them.
    #[schemars(with = "Vec<crate::openapi::EventSchema>")]
    pub events: Vec<Value>,
}

pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(session): PathName,
    QueryParams(window): QueryParams<EventRange>,
) -> Result<Json<SessionBody>, ApiError> {
    let session = parse_session_id(&session)?;
    let info = gateway
        .store()
        .session(caller.principal(), &session)
        .await?;
    let most = window.limit.unwrap_or(MAX_EVENTS).min(MAX_EVENTS);
    let events = gateway
        .store()
        .events_after(caller.principal(), &session, window.after, most)
        .await?;
    let events = events
        .iter()
        .filter_map(|event| serde_json::to_value(&**event).ok())
        .collect();
    Ok(Json(SessionBody {
        session: info.into(),
        events,
    }))
}

pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(session): PathName,
) -> Result<StatusCode, ApiError> {
    let session: SessionId = parse_session_id(&session)?;
    gateway.store().delete(caller.principal(), &session).await?;
    gateway.run_delete_session_hook(caller.principal(), &session);
    Ok(StatusCode::NO_CONTENT)
}
