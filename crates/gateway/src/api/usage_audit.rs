//! What was taken, and what was done.

use std::num::NonZeroUsize;

use axum::Json;
use axum::extract::State;
use lango_domain::usage::UsageReport;
use lango_domain::event::SessionId;
use lango_store::AuditEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sessions::Items;
use crate::auth::Caller;
use crate::gateway::Gateway;
use crate::extract::{QueryParams, SessionName, parse_session_id};
use crate::error::ApiError;

const MOST_CALLS: usize = 1_000;
const USUAL_CALLS: usize = 100;

/// Whose usage.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct UsageOf {
    /// Of this session only.
    #[schemars(with = "Option<SessionName>")]
    pub session: Option<String>,
}

/// Which calls.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct CallsOf {
    /// Of this session only.
    #[schemars(with = "Option<SessionName>")]
    pub session: Option<String>,
    /// So many at most, the newest first; 100 by default, 1000 at most.
    pub limit: Option<NonZeroUsize>,
}

/// A session of the caller's, where one is named.
async fn own_session(
    name: Option<&str>,
    gateway: &Gateway,
    caller: &Caller,
) -> Result<Option<SessionId>, ApiError> {
    let Some(name) = name else { return Ok(None) };
    let session = parse_session_id(name)?;
    gateway.store().session(caller.principal(), &session).await?;
    Ok(Some(session))
}

/// What models took.
pub(crate) async fn usage(
    State(gateway): State<Gateway>,
    caller: Caller,
    QueryParams(of): QueryParams<UsageOf>,
) -> Result<Json<Value>, ApiError> {
    let session = own_session(of.session.as_deref(), &gateway, &caller).await?;
    let mut bill = UsageReport::default();
    for row in gateway.store().usage(caller.principal(), session.as_ref()).await? {
        bill.add_usage(&row.turn, "", (row.branch, row.agent), &row.usage);
    }
    Ok(Json(bill.json()))
}

/// One call of a tool.
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
    /// `ok`, `open`, or the code of what went wrong.
    pub outcome: String,
}

impl AuditItem {
    fn of(entry: AuditEntry, caller: &Caller) -> Self {
        let (decision, by) = entry.decision();
        Self {
            outcome: entry.outcome_word(),
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
    QueryParams(of): QueryParams<CallsOf>,
) -> Result<Json<Items<AuditItem>>, ApiError> {
    let session = own_session(of.session.as_deref(), &gateway, &caller).await?;
    let most = of.limit.map_or(USUAL_CALLS, NonZeroUsize::get).min(MOST_CALLS);
    let entries = gateway.store().audit(caller.principal(), session.as_ref(), most).await?;
    Ok(Json(Items { items: entries.into_iter().map(|entry| AuditItem::of(entry, &caller)).collect() }))
}
