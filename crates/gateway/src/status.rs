//! The state of the server: health, readiness and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use lango_domain::access_tokens::TokenScope::Admin;
use serde_json::json;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::metrics;
use crate::openapi::schemas::{HealthStatus, ReadyStatus};
use crate::route::{
    Operation, RequestInput, ResponseOutput, Route, RouteAccess, RouteDescription, get, schema_of,
};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route {
            endpoint: get(health),
            path: "/health",
            access: RouteAccess::Public,
            description: RouteDescription::OpenApi(Operation {
                summary: "Reports that the server is running.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<HealthStatus>),
                failure_statuses: &[],
            }),
        },
        Route {
            endpoint: get(ready),
            path: "/ready",
            access: RouteAccess::Public,
            description: RouteDescription::OpenApi(Operation {
                summary: "Reports whether the server accepts new turns.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<ReadyStatus>),
                failure_statuses: &[503],
            }),
        },
        Route {
            endpoint: get(prometheus_metrics),
            path: "/metrics",
            access: RouteAccess::Scopes(&[Admin]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Returns metrics for Prometheus.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Text,
                failure_statuses: &[],
            }),
        },
    ]
}

async fn health() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// Reports whether the server accepts new turns.
async fn ready(State(gateway): State<Gateway>) -> Result<Response, ApiError> {
    if gateway.shutdown_started().is_cancelled() {
        return Err(ApiError::shutting_down());
    }
    Ok(Json(json!({ "status": "ready" })).into_response())
}

async fn prometheus_metrics(State(gateway): State<Gateway>) -> Response {
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        metrics::render(&gateway),
    )
        .into_response()
}
