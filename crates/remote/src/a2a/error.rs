//! Protocol errors with their JSON-RPC code, HTTP status and reason.

use serde_json::{Value, json};

use super::json_fields::{FieldError, Metadata};
use super::version::ProtocolVersion;

/// An error response of an A2A server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ProtocolError {
    pub kind: ErrorKind,
    /// Text for people.
    pub message: String,
    /// Details for programs.
    pub metadata: Metadata,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is not JSON.
    Parse,
    /// The JSON is not a valid request.
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    ExtendedCardNotConfigured,
    ExtensionRequired,
    VersionNotSupported,
    /// The caller is not authenticated.
    Unauthenticated,
    /// The caller lacks permission.
    Forbidden,
    /// The caller exceeds a limit.
    Busy,
    /// The server accepts no new tasks at the moment.
    Unavailable,
    /// A code that the protocol does not define.
    Other(i64),
}

const DOMAIN: &str = "a2a-protocol.org";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// All kinds except `Other`: code, HTTP status, gRPC status, reason.
const KINDS: [(ErrorKind, i64, u16, &str, &str); 18] = [
    (
        ErrorKind::Parse,
        -32700,
        400,
        "INVALID_ARGUMENT",
        "PARSE_ERROR",
    ),
    (
        ErrorKind::InvalidRequest,
        -32600,
        400,
        "INVALID_ARGUMENT",
        "INVALID_REQUEST",
    ),
    (
        ErrorKind::MethodNotFound,
        -32601,
        404,
        "UNIMPLEMENTED",
        "METHOD_NOT_FOUND",
    ),
    (
        ErrorKind::InvalidParams,
        -32602,
        400,
        "INVALID_ARGUMENT",
        "INVALID_PARAMS",
    ),
    (
        ErrorKind::Internal,
        -32603,
        500,
        "INTERNAL",
        "INTERNAL_ERROR",
    ),
    (
        ErrorKind::TaskNotFound,
        -32001,
        404,
        "NOT_FOUND",
        "TASK_NOT_FOUND",
    ),
    (
        ErrorKind::TaskNotCancelable,
        -32002,
        400,
        "FAILED_PRECONDITION",
        "TASK_NOT_CANCELABLE",
    ),
    (
        ErrorKind::PushNotSupported,
        -32003,
        400,
        "FAILED_PRECONDITION",
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ),
    (
        ErrorKind::UnsupportedOperation,
        -32004,
        400,
        "FAILED_PRECONDITION",
        "UNSUPPORTED_OPERATION",
    ),
    (
        ErrorKind::ContentTypeNotSupported,
        -32005,
        400,
        "INVALID_ARGUMENT",
        "CONTENT_TYPE_NOT_SUPPORTED",
    ),
    (
        ErrorKind::InvalidAgentResponse,
        -32006,
        500,
        "INTERNAL",
        "INVALID_AGENT_RESPONSE",
    ),
    (
        ErrorKind::ExtendedCardNotConfigured,
        -32007,
        400,
        "FAILED_PRECONDITION",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    (
        ErrorKind::ExtensionRequired,
        -32008,
        400,
        "FAILED_PRECONDITION",
        "EXTENSION_SUPPORT_REQUIRED",
    ),
    (
        ErrorKind::VersionNotSupported,
        -32009,
        400,
        "FAILED_PRECONDITION",
        "VERSION_NOT_SUPPORTED",
    ),
    (
        ErrorKind::Unauthenticated,
        -32040,
        401,
        "UNAUTHENTICATED",
        "UNAUTHENTICATED",
    ),
    (
        ErrorKind::Forbidden,
        -32041,
        403,
        "PERMISSION_DENIED",
        "PERMISSION_DENIED",
    ),
    (
        ErrorKind::Busy,
        -32042,
        429,
        "RESOURCE_EXHAUSTED",
        "RESOURCE_EXHAUSTED",
    ),
    (
        ErrorKind::Unavailable,
        -32043,
        503,
        "UNAVAILABLE",
        "UNAVAILABLE",
    ),
];

impl ErrorKind {
    /// Returns the JSON-RPC code.
    pub fn code(self) -> i64 {
        match self {
            Self::Other(code) => code,
            _ => self.row().1,
        }
    }

    pub fn http_status(self) -> u16 {
        self.row().2
    }

    pub fn grpc_status(self) -> &'static str {
        self.row().3
    }

    pub fn reason(self) -> &'static str {
        self.row().4
    }

    pub fn from_code(code: i64) -> Self {
        let found = KINDS.iter().find(|row| row.1 == code);
        found.map_or(Self::Other(code), |row| row.0)
    }

    /// Classifies an HTTP+JSON error: the reason is more specific than the status.
    fn from_http(status: u16, reason: Option<&str>) -> Self {
        let by_reason = KINDS
            .iter()
            .find(|row| Some(row.4) == reason)
            .map(|row| row.0);
        by_reason.unwrap_or(match status {
            401 => Self::Unauthenticated,
            403 => Self::Forbidden,
            404 => Self::TaskNotFound,
            405 | 501 => Self::UnsupportedOperation,
            415 => Self::ContentTypeNotSupported,
            429 => Self::Busy,
            503 => Self::Unavailable,
            400..=499 => Self::InvalidRequest,
            _ => Self::Internal,
        })
    }

    fn row(self) -> &'static (Self, i64, u16, &'static str, &'static str) {
        let internal = &KINDS[4];
        KINDS.iter().find(|row| row.0 == self).unwrap_or(internal)
    }
}

impl ProtocolError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            metadata: Metadata::new(),
        }
    }

    pub fn with_metadata(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the `error` of a JSON-RPC response.
    pub fn to_rpc_json(&self, version: ProtocolVersion) -> Value {
        let mut error = json!({ "code": self.kind.code(), "message": self.message });
        match version {
            ProtocolVersion::V1_0 => error["data"] = self.details(),
            ProtocolVersion::V0_3 if !self.metadata.is_empty() => {
                error["data"] = Value::Object(self.metadata.clone())
            }
            ProtocolVersion::V0_3 => {}
        }
        error
    }

    /// Returns the body of an HTTP+JSON response; its status is [`ErrorKind::http_status`].
    pub fn to_rest_json(&self, version: ProtocolVersion) -> Value {
        let mut error = json!({
            "code": self.kind.http_status(),
            "status": self.kind.grpc_status(),
            "message": self.message,
        });
        if version == ProtocolVersion::V1_0 {
            error["details"] = self.details();
        }
        json!({ "error": error })
    }

    fn details(&self) -> Value {
        let to_text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let metadata: Metadata = self
            .metadata
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(to_text(value))))
            .collect();
        let mut details = vec![json!({
            "@type": ERROR_INFO, "reason": self.kind.reason(), "domain": DOMAIN, "metadata": metadata,
        })];
        if let Some(field) = metadata.get("field") {
            let violation = json!({ "field": field, "description": self.message });
            details.push(json!({ "@type": BAD_REQUEST, "fieldViolations": [violation] }));
        }
        Value::Array(details)
    }

    /// Parses the `error` of a JSON-RPC response. The message is reduced to one bounded line.
    pub fn from_rpc_json(error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64);
        Self::new(
            code.map_or(ErrorKind::Internal, ErrorKind::from_code),
            sanitize_message(error.get("message")),
        )
    }

    /// Parses the body of an HTTP error response.
    pub fn from_rest_json(status: u16, body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let details = error
            .get("details")
            .or_else(|| error.get("data"))
            .and_then(Value::as_array);
        let reason = details.and_then(|details| {
            details
                .iter()
                .find_map(|detail| detail.get("reason")?.as_str())
        });
        let message = error
            .get("message")
            .or_else(|| error.get("detail"))
            .or_else(|| error.get("title"));
        Self::new(
            ErrorKind::from_http(status, reason),
            sanitize_message(message),
        )
    }
}

/// Reduces a message of a remote agent to one bounded line.
fn sanitize_message(message: Option<&Value>) -> String {
    let message = message.and_then(Value::as_str).unwrap_or_default();
    match lango_text::sanitize::truncated_line(message, 200) {
        line if line.is_empty() => "no reason given".to_owned(),
        line => line,
    }
}

impl From<FieldError> for ProtocolError {
    fn from(error: FieldError) -> Self {
        let path = error.field_path();
        let invalid = Self::new(ErrorKind::InvalidParams, error.to_string());
        if path.is_empty() {
            invalid
        } else {
            invalid.with_metadata("field", path)
        }
    }
}
