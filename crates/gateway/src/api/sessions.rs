//! The caller's sessions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lango_domain::event::SessionId;
use lango_domain::session_catalog::SessionInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{PathName, QueryParams, parse_session_id};
use crate::gateway::Gateway;

/// Default and maximum number of events in a response.
const MAX_EVENTS: usize = 1_000;

/// A list of items.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub(crate) struct Items<T> {
    pub items: Vec<T>,
}

/// The metadata of a session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionItem {
    pub id: String,
    /// The beginning of the first request.
    pub title: String,
    /// Number of events.
    pub events: u64,
    #[schemars(extend("format" = "date-time"))]
    pub created: String,
    #[schemars(extend("format" = "date-time"))]
    pub updated: String,
    /// `interrupted` if the last turn has not ended.
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
    let sessions = gateway
        .stores()
        .catalog
        .sessions(caller.principal())
        .await?;
    Ok(Json(Items {
        items: sessions.into_iter().map(SessionItem::from).collect(),
    }))
}

/// The range of events to return.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct EventRange {
    /// Returns only events with a higher sequence number.
    pub after: u64,
    /// Maximum number of events; the default and the maximum are 1000.
    pub limit: Option<usize>,
}

/// A session and its events.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionBody {
    pub session: SessionItem,
    /// The events, as printed by `lango ask --json`.
    #[schemars(with = "Vec<crate::openapi::schemas::EventSchema>")]
    pub events: Vec<Value>,
}

pub(crate) async fn show(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathName(session): PathName,
    QueryParams(range): QueryParams<EventRange>,
) -> Result<Json<SessionBody>, ApiError> {
    let session = parse_session_id(&session)?;
    let info = gateway
        .stores()
        .catalog
        .session(caller.principal(), &session)
        .await?;
    let limit = range.limit.unwrap_or(MAX_EVENTS).min(MAX_EVENTS);
    let events = gateway
        .stores()
        .catalog
        .events_after(caller.principal(), &session, range.after, limit)
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
    gateway
        .stores()
        .catalog
        .delete(caller.principal(), &session)
        .await?;
    gateway.run_delete_session_hook(caller.principal(), &session);
    Ok(StatusCode::NO_CONTENT)
}
