//! API errors. The body has Lango's fields and those that OpenAI clients read.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lango_domain::StoreError;
use lango_domain::failure::{FailureCode, FailureFamily};
use schemars::JsonSchema;
use serde::Serialize;

/// An error response.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    pub status: StatusCode,
    pub code: String,
    pub message: String,
    pub hint: String,
    /// The value of the `Retry-After` header.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    pub fn new(
        status: StatusCode,
        code: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (message, hint) = (message.into(), hint.into());
        Self {
            status,
            code: code.to_owned(),
            message,
            hint,
            retry_after: None,
        }
    }

    pub fn bad_request(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "request", message, hint)
    }

    /// Returns the same error for missing and foreign resources, so callers cannot probe for them
    /// (B74).
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            message,
            "`GET /api/sessions` lists your sessions",
        )
    }

    pub fn shutting_down() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "closing",
            "the server is shutting down and accepts no new turns",
            "try again in a moment",
        )
        .with_retry_after(Duration::from_secs(5))
    }

    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Returns the error for a failed turn. Statuses that clients retry automatically are used only
    /// for failures that may be temporary.
    pub fn turn_failed(code: FailureCode, message: &str, hint: &str) -> Self {
        let status = match (code, code.family()) {
            (FailureCode::ModelBusy, _) => StatusCode::SERVICE_UNAVAILABLE,
            (FailureCode::ModelQuota, _) => StatusCode::TOO_MANY_REQUESTS,
            (FailureCode::ModelTooLong, _) => StatusCode::BAD_REQUEST,
            (_, FailureFamily::Model) => StatusCode::BAD_GATEWAY,
            (_, FailureFamily::Limit) => StatusCode::UNPROCESSABLE_ENTITY,
            (_, FailureFamily::Cancelled | FailureFamily::Interrupted) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            (_, FailureFamily::Turn) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, &code.to_string(), message, hint)
    }

    /// Returns the error as a response body or stream event.
    pub fn body(&self) -> ErrorBody {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let (code, message, hint) = (self.code.clone(), self.message.clone(), self.hint.clone());
        ErrorBody {
            error: ErrorDetail {
                code,
                message,
                hint,
                kind,
                param: None,
            },
        }
    }
}

/// The body of every error response.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ErrorDetail {
    /// Machine-readable error code.
    pub code: String,
    /// Description of the error.
    pub message: String,
    /// Suggestion for resolving the error.
    pub hint: String,
    /// Error type as defined by OpenAI.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = [
        "authentication_error", "permission_error", "rate_limit_error", "server_error", "invalid_request_error",
    ]))]
    pub kind: &'static str,
    /// Always null.
    #[schemars(with = "()")]
    pub param: Option<String>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            headers.insert(
                header::RETRY_AFTER,
                HeaderValue::from(wait.as_secs().max(1)),
            );
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::SessionNotFound(_) => Self::not_found(error.to_string()),
            StoreError::TurnRunning(_) => Self::new(
                StatusCode::CONFLICT,
                "running",
                error.to_string(),
                error.hint(),
            ),
            error => {
                tracing::error!(%error, "store error");
                store_unavailable()
            }
        }
    }
}

/// Omits paths and causes, which are only in the server's log.
fn store_unavailable() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "store",
        "the store could not be read or written",
        "run `lango doctor` on the server",
    )
}
