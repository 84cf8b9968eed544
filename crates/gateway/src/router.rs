//! Every address, and what stands before it.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lango_store::TokenScope;
use serde_json::json;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::{a2a, api, auth, cors, metrics, openai};

impl Gateway {
    /// Everything that is answered. What is merged into `open` needs no token, what is merged into `closed` does; the
    /// checks of place and pace are the same for all.
    pub fn router(&self) -> Router {
        let closed = Router::new()
            .merge(api::routes())
            .merge(openai::routes())
            .merge(a2a::authenticated_routes(&self.settings().a2a))
            .merge(with_scope(
                &[TokenScope::Admin],
                Router::new().route("/metrics", get(prometheus_metrics)),
            ))
            .route_layer(from_fn_with_state(self.clone(), auth::authenticate));
        let open = Router::new()
            .route("/health", get(health))
            .route("/ready", get(ready))
            .merge(a2a::public_routes(&self.settings().a2a));
        open.merge(closed)
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(map_response(add_security_headers))
            .layer(from_fn_with_state(self.clone(), cors::check_request))
            .layer(from_fn_with_state(self.clone(), metrics::record_request))
            .with_state(self.clone())
    }
}

/// Routes that only tokens with one of these scopes reach.
pub(crate) fn with_scope(
    scopes: &'static [TokenScope],
    routes: Router<Gateway>,
) -> Router<Gateway> {
    routes.route_layer(from_fn_with_state(scopes, auth::require_scope))
}

async fn health() -> Response {
    axum::Json(json!({ "status": "ok" })).into_response()
}

/// Whether new turns are taken.
async fn ready(State(gateway): State<Gateway>) -> Result<Response, ApiError> {
    if gateway.shutdown_started().is_cancelled() {
        return Err(ApiError::shutting_down());
    }
    Ok(axum::Json(json!({ "status": "ready" })).into_response())
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

async fn not_found(request: Request) -> ApiError {
    let path: String = request.uri().path().chars().take(200).collect();
    let hint = "GET /api/openapi.json describes what is there";
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("there is nothing at {path}"),
        hint,
    )
}

async fn method_not_allowed(request: Request) -> ApiError {
    let message = format!("{} is not for this address", request.method());
    let hint = "GET /api/openapi.json describes what is there";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", message, hint)
}

/// Nothing that is answered here is kept by a cache, sniffed at or put in a frame.
async fn add_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let guards = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in guards {
        headers
            .entry(name)
            .or_insert(axum::http::HeaderValue::from_static(value));
    }
    response
}
