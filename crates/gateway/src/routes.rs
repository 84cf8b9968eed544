//! Every address, and what stands before it.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lango_store::TokenScope;
use serde_json::json;

use crate::gateway::Gateway;
use crate::refusal::Refusal;
use crate::{a2a, api, gate, metrics, openai, place};

impl Gateway {
    /// Everything that is answered. What is merged into `open` needs no token, what is merged into `closed` does; the
    /// checks of place and pace are the same for all.
    pub fn router(&self) -> Router {
        let closed = Router::new()
            .merge(api::routes())
            .merge(openai::routes())
            .merge(a2a::closed_routes(&self.settings().a2a))
            .merge(with_scope(&[TokenScope::Admin], Router::new().route("/metrics", get(counted))))
            .route_layer(from_fn_with_state(self.clone(), gate::let_in));
        let open = Router::new()
            .route("/health", get(healthy))
            .route("/ready", get(ready))
            .merge(a2a::open_routes(&self.settings().a2a));
        open.merge(closed)
            .fallback(nothing_here)
            .method_not_allowed_fallback(not_that_way)
            .layer(map_response(guarded))
            .layer(from_fn_with_state(self.clone(), place::check))
            .layer(from_fn_with_state(self.clone(), metrics::count))
            .with_state(self.clone())
    }
}

/// Routes that only tokens with one of these scopes reach.
pub(crate) fn with_scope(scopes: &'static [TokenScope], routes: Router<Gateway>) -> Router<Gateway> {
    routes.route_layer(from_fn_with_state(scopes, gate::let_on))
}

async fn healthy() -> Response {
    axum::Json(json!({ "status": "ok" })).into_response()
}

/// Whether new turns are taken.
async fn ready(State(gateway): State<Gateway>) -> Result<Response, Refusal> {
    if gateway.closing().is_cancelled() {
        return Err(Refusal::closing());
    }
    Ok(axum::Json(json!({ "status": "ready" })).into_response())
}

async fn counted(State(gateway): State<Gateway>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics::page(&gateway))
        .into_response()
}

async fn nothing_here(request: Request) -> Refusal {
    let path: String = request.uri().path().chars().take(200).collect();
    let hint = "GET /api/openapi.json describes what is there";
    Refusal::new(StatusCode::NOT_FOUND, "not_found", format!("there is nothing at {path}"), hint)
}

async fn not_that_way(request: Request) -> Refusal {
    let message = format!("{} is not for this address", request.method());
    let hint = "GET /api/openapi.json describes what is there";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", message, hint)
}

/// Nothing that is answered here is kept by a cache, sniffed at or put in a frame.
async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let guards = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in guards {
        headers.entry(name).or_insert(axum::http::HeaderValue::from_static(value));
    }
    response
}
