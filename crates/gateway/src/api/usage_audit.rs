//! Usage and audit of the caller's sessions.

use std::num::NonZeroUsize;

use axum::Json;
use axum::extract::State;
use lango_domain::audit::AuditEntry;
use lango_domain::event::SessionId;
use lango_domain::usage::UsageSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sessions::Items;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{QueryParams, SessionName, parse_session_id};
use crate::gateway::Gateway;

const MAX_CALLS: usize = 1_000;
const DEFAULT_CALLS: usize = 100;

/// The query of `GET /api/usage`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct UsageQuery {
    /// Restricts the result to this session.
    #[schemars(with = "Option<SessionName>")]
    pub session: Option<String>,
}

/// The query of `GET /api/audit`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct AuditQuery {
    /// Restricts the result to this session.
    #[schemars(with = "Option<SessionName>")]
    pub session: Option<String>,
    /// Maximum number of calls, newest first; 100 by default, at most 1000.
    pub limit: Option<NonZeroUsize>,
}

/// Parses an optional session id and checks that the session belongs to the caller.
async fn find_own_session(
    name: Option<&str>,
    gateway: &Gateway,
    caller: &Caller,
) -> Result<Option<SessionId>, ApiError> {
    let Some(name) = name else { return Ok(None) };
    let session = parse_session_id(name)?;
    gateway
        .stores()
        .catalog
        .session(caller.principal(), &session)
        .await?;
    Ok(Some(session))
}

/// Returns the usage of model calls.
pub(crate) async fn usage(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<UsageQuery>,
) -> Result<Json<Value>, ApiError> {
    let session = find_own_session(query.session.as_deref(), &gateway, &caller).await?;
    let mut summary = UsageSummary::default();
    for row in gateway
        .stores()
        .catalog
        .usage(caller.principal(), session.as_ref())
        .await?
    {
        summary.add_usage(&row.turn, "", (row.branch, row.agent), &row.usage);
    }
    Ok(Json(summary.to_json()))
}

/// A tool call.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditItem {
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    pub session: String,
    pub principal: String,
    pub agent: String,
    pub tool: String,
    pub args: Value,
    #[schemars(with = "String", extend("enum" = ["safe", "moderate", "dangerous"]))]
    pub level: lango_domain::Safety,
    #[schemars(extend("enum" = [
        "auto", "approved", "denied", "timed_out", "nobody_there", "interrupted", "asked",
    ]))]
    pub decision: &'static str,
    #[schemars(extend("enum" = ["user", "--yes", "rule", "policy", "session", null]))]
    pub by: Option<&'static str>,
    /// `ok`, `open` or an error code.
    pub outcome: String,
}

impl AuditItem {
    fn from_entry(entry: AuditEntry, caller: &Caller) -> Self {
        let (decision, by) = entry.decision();
        Self {
            outcome: entry.outcome_code(),
            at: entry.at.to_string(),
            session: entry.session.to_string(),
            principal: caller.principal().to_string(),
            agent: entry.agent.to_string(),
            tool: entry.tool,
            args: entry.args,
            level: entry.level,
            decision,
            by,
        }
    }
}

pub(crate) async fn audit(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(query): QueryParams<AuditQuery>,
) -> Result<Json<Items<AuditItem>>, ApiError> {
    let session = find_own_session(query.session.as_deref(), &gateway, &caller).await?;
    let limit = query
        .limit
        .map_or(DEFAULT_CALLS, NonZeroUsize::get)
        .min(MAX_CALLS);
    let entries = gateway
        .stores()
        .catalog
        .audit(caller.principal(), session.as_ref(), limit)
        .await?;
    Ok(Json(Items {
        items: entries
            .into_iter()
            .map(|entry| AuditItem::from_entry(entry, &caller))
            .collect(),
    }))
}
