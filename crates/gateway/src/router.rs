//! The router: all routes and their middleware.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lango_domain::access_tokens::TokenScope;
use serde_json::json;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::{a2a, api, auth, cors, metrics, openai};

impl Gateway {
    /// Returns the router with all routes and middleware. Routes merged into `protected` require a
    /// token; routes merged into `public` do not. The host and origin checks apply to all of them.
    pub fn router(&self) -> Router {
        let protected = Router::new()
            .merge(api::routes())
            .merge(openai::routes())
            .merge(a2a::authenticated_routes(&self.settings().a2a))
            .merge(with_scope(
                &[TokenScope::Admin],
                Router::new().route("/metrics", get(prometheus_metrics)),
            ))
            .route_layer(from_fn_with_state(self.clone(), auth::authenticate));
        let public = Router::new()
            .route("/health", get(health))
            .route("/ready", get(ready))
            .merge(a2a::public_routes(&self.settings().a2a));
        public
            .merge(protected)
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(map_response(add_security_headers))
            .layer(from_fn_with_state(self.clone(), cors::check_request))
            .layer(from_fn_with_state(self.clone(), metrics::record_request))
            .with_state(self.clone())
    }
}

/// Restricts routes to tokens with one of these scopes.
pub(crate) fn with_scope(
    scopes: &'static [TokenScope],
    routes: Router<Gateway>,
) -> Router<Gateway> {
    routes.route_layer(from_fn_with_state(scopes, auth::require_scope))
}

async fn health() -> Response {
    axum::Json(json!({ "status": "ok" })).into_response()
}

/// Reports whether the server accepts new turns.
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
    let hint = "see GET /api/openapi.json for the available routes";
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("no route matches {path}"),
        hint,
    )
}

async fn method_not_allowed(request: Request) -> ApiError {
    let message = format!("method {} is not allowed for this route", request.method());
    let hint = "see GET /api/openapi.json for the available routes";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", message, hint)
}

/// Disables caching, MIME sniffing and framing for every response.
async fn add_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let defaults = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in defaults {
        headers
            .entry(name)
            .or_insert(axum::http::HeaderValue::from_static(value));
    }
    response
}
