//! The router: all routes and their middleware.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::route::all_routes;
use crate::{cors, metrics};

impl Gateway {
    /// Returns the router with all routes and middleware. The host and origin checks apply to all
    /// routes, public ones included.
    ///
    /// Invariant: every route comes from a record, so none lacks its access or its description.
    pub fn router(&self) -> Router {
        all_routes(&self.settings().a2a)
            .into_iter()
            .fold(Router::new(), |router, route| route.add_to(router, self))
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(map_response(add_security_headers))
            .layer(from_fn_with_state(self.clone(), cors::check_request))
            .layer(from_fn_with_state(self.clone(), metrics::record_request))
            .with_state(self.clone())
    }
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

#[cfg(test)]
mod tests;
