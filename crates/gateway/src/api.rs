//! Lango's own API: turns as a stream of events, and what can be looked at.

pub(crate) mod approvals;
pub(crate) mod sessions;
pub(crate) mod team;
pub(crate) mod turns;
pub(crate) mod usage_audit;

use axum::routing::{get, post};
use axum::{Json, Router};
use lango_store::TokenScope::{Admin, Approve, Chat, Read};
use serde_json::Value;

use crate::gateway::Gateway;
use crate::openapi;
use crate::router::with_scope;

/// Which scopes reach what is said here, in [`openapi`] and in `docs/serving.md`.
pub(crate) fn routes() -> Router<Gateway> {
    let asking = Router::new()
        .route("/api/turns", post(turns::start))
        .route("/api/sessions/{session}/cancel", post(turns::cancel));
    let following = Router::new()
        .route("/api/sessions/{session}/events", get(turns::follow))
        .route("/api/agents", get(team::agents))
        .route("/api/route", post(team::route))
        .route("/api/openapi.json", get(openapi_json));
    let reading = Router::new()
        .route("/api/sessions", get(sessions::list))
        .route("/api/usage", get(usage_audit::usage))
        .route("/api/audit", get(usage_audit::audit));
    let answering = Router::new().route(
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
    with_scope(&[Chat], asking)
        .merge(with_scope(&[Chat, Read, Approve], following))
        .merge(with_scope(&[Read], reading))
        .merge(with_scope(&[Approve], answering))
        .merge(session)
}

async fn openapi_json() -> Json<Value> {
    Json(openapi::document())
}
