//! Axum extractors with size and time limits.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use lango_domain::event::SessionId;
use lango_text::sanitize::is_terminal_control;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::ApiError;
use crate::gateway::Gateway;

/// Maximum length of a session id in characters.
const MAX_SESSION_NAME: usize = 200;

/// Maximum number of values in a JSON body. Many small values take far more memory than their bytes.
pub(crate) const MAX_BODY_VALUES: usize = 200_000;

/// Extracts a JSON body.
pub(crate) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Gateway> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, ApiError> {
        // Browsers send forms cross-origin without a CORS preflight, but not JSON.
        if media_type(request.headers()) != "application/json" {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "media_type",
                "the body must be JSON",
                "send `Content-Type: application/json`",
            ));
        }
        let bytes = read_body(request, gateway).await?;
        match lango_net::json::parse::<Object<T>>(&bytes, MAX_BODY_VALUES) {
            Ok(Object(value)) => Ok(Self(value)),
            Err(error) => Err(ApiError::bad_request(
                format!("invalid request body: {error}"),
                "see GET /api/openapi.json for the expected fields",
            )),
        }
    }
}

/// A value that must be a JSON object. Derived `Deserialize` implementations also accept an array
/// of the fields in order; this type rejects it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Object<T>(pub T);

/// Uses the schema of the inner type, which is an object already.
impl<T: JsonSchema> JsonSchema for Object<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_map(ObjectVisitor(PhantomData))
            .map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

/// Deserializes an enum from a string only. Derived implementations also accept an object with the
/// variant as its key.
pub(crate) fn string_enum<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::deserialize(String::deserialize(deserializer)?.into_deserializer())
}

/// Returns the media type of the body without parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Reads the body within `server.bodyBytes` and `server.bodySeconds`.
pub(crate) async fn read_body(request: Request, gateway: &Gateway) -> Result<Bytes, ApiError> {
    let max_bytes = gateway.settings().body_bytes.get();
    let too_large = || {
        let message = format!("the body is longer than {max_bytes} bytes");
        let hint = "send a shorter body; server.bodyBytes sets the limit";
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "size", message, hint)
    };
    // Reject an oversized `Content-Length` before reading the body.
    if usize::try_from(request.body().size_hint().lower())
        .is_ok_and(|announced| announced > max_bytes)
    {
        return Err(too_large());
    }
    // Without an announced length, the body may have any.
    let announced = request.body().size_hint().upper();
    let announced = announced.and_then(|bytes| usize::try_from(bytes).ok());
    let _memory = gateway
        .body_memory()
        .reserve(announced.unwrap_or(max_bytes))?;
    let body = Limited::new(request.into_body(), max_bytes).collect();
    let result = tokio::time::timeout(gateway.settings().body_timeout(), body)
        .await
        .map_err(|_| {
            let hint = "send it faster; server.bodySeconds sets the limit";
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "slow",
                "the body did not arrive in time",
                hint,
            )
        })?;
    match result {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(ApiError::bad_request(
            "the body is incomplete",
            "send it again",
        )),
    }
}

/// Extracts a name from the path.
pub(crate) struct PathName(pub String);

impl FromRequestParts<Gateway> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let result = Path::<String>::from_request_parts(parts, gateway).await;
        result.map(|Path(name)| Self(name)).map_err(|error| {
            let message = format!("invalid path: {}", error.body_text());
            ApiError::bad_request(message, "percent-encode names in the path as UTF-8")
        })
    }
}

/// Extracts the query parameters.
pub(crate) struct QueryParams<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Gateway> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        match Query::<T>::from_request_parts(parts, gateway).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(error) => Err(ApiError::bad_request(
                format!("invalid query: {}", error.body_text()),
                "see GET /api/openapi.json for the query parameters",
            )),
        }
    }
}

/// The schema of a session id, matching [`parse_session_id`].
pub(crate) struct SessionName;

/// Matches texts without terminal control characters and with at least one other character that is
/// not whitespace.
const SESSION_PATTERN: &str = concat!(
    r"^[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]*",
    r"[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u200e\u200f\u2028-\u202f\u205f\u2066-\u2069\u3000]",
    r"[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]*$",
);
/// Matches texts with at least one character that is not whitespace.
pub(crate) const NOT_BLANK_PATTERN: &str =
    r"[^\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

impl JsonSchema for SessionName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SessionName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX_SESSION_NAME, "pattern": SESSION_PATTERN })
    }
}

/// Parses a session id sent by a client.
pub(crate) fn parse_session_id(name: &str) -> Result<SessionId, ApiError> {
    let is_control = |c: char| c.is_control() || is_terminal_control(c);
    if name.trim().is_empty()
        || name.chars().count() > MAX_SESSION_NAME
        || name.chars().any(is_control)
    {
        return Err(ApiError::bad_request(
            format!("a session id must have 1 to {MAX_SESSION_NAME} printable characters"),
            "omit it to start a new session",
        ));
    }
    Ok(SessionId::new(name))
}
