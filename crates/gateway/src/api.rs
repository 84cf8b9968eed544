//! Lango's own API: turns as event streams, sessions, approvals, usage and audit.

pub(crate) mod approvals;
pub(crate) mod sessions;
pub(crate) mod team;
pub(crate) mod turns;
pub(crate) mod usage_audit;

use axum::routing::{get, post};
use axum::{Json, Router};
use lango_domain::access_tokens::TokenScope::{Admin, Approve, Chat, Read};
use serde_json::Value;

use crate::gateway::Gateway;
use crate::openapi;
use crate::router::with_scope;

/// Returns the routes with their scopes. [`openapi`] and `docs/serving.md` list the same scopes.
pub(crate) fn routes() -> Router<Gateway> {
    let chat = Router::new()
        .route("/api/turns", post(turns::start))
        .route("/api/sessions/{session}/cancel", post(turns::cancel));
    let any_scope = Router::new()
        .route("/api/sessions/{session}/events", get(turns::follow))
        .route("/api/agents", get(team::agents))
        .route("/api/route", post(team::route))
        .route("/api/openapi.json", get(openapi_json));
    let read = Router::new()
        .route("/api/sessions", get(sessions::list))
        .route("/api/usage", get(usage_audit::usage))
        .route("/api/audit", get(usage_audit::audit));
    let approve = Router::new().route(
        "/api/approvals",
        get(approvals::list).post(approvals::answer),
    );
    let session = with_scope(
        &[Read],
        Router::new().route("/api/sessions/{session}", get(sessions::show)),
    )
    .merge(with_scope(
        &[Admin],
        Router::new().route(
            "/api/sessions/{session}",
            axum::routing::delete(sessions::delete),
        ),
    ));
    with_scope(&[Chat], chat)
        .merge(with_scope(&[Chat, Read, Approve], any_scope))
        .merge(with_scope(&[Read], read))
        .merge(with_scope(&[Approve], approve))
        .merge(session)
}

async fn openapi_json() -> Json<Value> {
    Json(openapi::document())
}
