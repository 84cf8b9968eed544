//! Reading what was sent: bounded in size and time, and refused in words.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use lango_domain::event::SessionId;
use lango_domain::text::is_terminal_control;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::ApiError;
use crate::gateway::Gateway;

/// No name of a session is longer.
const MAX_SESSION_NAME: usize = 200;

/// A body of JSON.
pub(crate) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Gateway> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, ApiError> {
        // A page can make a browser send a form without asking first, but not JSON.
        if media_type(request.headers()) != "application/json" {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "media_type",
                "the body must be JSON",
                "send `Content-Type: application/json`",
            ));
        }
        let bytes = read_body(request, gateway).await?;
        let wrong = |why: String| {
            let message = format!("the body is not what is expected here: {why}");
            ApiError::bad_request(message, "GET /api/openapi.json describes it")
        };
        let read = serde_json::from_slice::<Object<T>>(&bytes);
        read.map(|Object(value)| Self(value))
            .map_err(|error| wrong(error.to_string()))
    }
}

/// A value whose fields have names: derived readers take them off a list as well, by their order alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Object<T>(pub T);

/// Described as what it holds, which is an object already.
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

/// One of several words: derived readers take an object with the word as its key as well.
pub(crate) fn string_enum<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::deserialize(String::deserialize(deserializer)?.into_deserializer())
}

/// What the body says it is, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    kind.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

pub(crate) async fn read_body(request: Request, gateway: &Gateway) -> Result<Bytes, ApiError> {
    let most = gateway.settings().body_bytes.get();
    let too_large = || {
        let message = format!("the body is longer than {most} bytes");
        let hint = "send less; server.bodyBytes sets the limit";
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "size", message, hint)
    };
    // Whoever says beforehand that it is too much need not send it.
    if usize::try_from(request.body().size_hint().lower()).is_ok_and(|said| said > most) {
        return Err(too_large());
    }
    let reading = Limited::new(request.into_body(), most).collect();
    let read = tokio::time::timeout(gateway.settings().body_timeout(), reading)
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
    match read {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(ApiError::bad_request("the body broke off", "send it again")),
    }
}

/// A name that is part of the address.
pub(crate) struct PathName(pub String);

impl FromRequestParts<Gateway> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let read = Path::<String>::from_request_parts(parts, gateway).await;
        read.map(|Path(name)| Self(name)).map_err(|error| {
            let message = format!("the address cannot be read: {}", error.body_text());
            ApiError::bad_request(message, "names in it are UTF-8, written with `%`")
        })
    }
}

/// What stands behind the `?`.
pub(crate) struct QueryParams<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Gateway> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let read = Query::<T>::from_request_parts(parts, gateway).await;
        let wrong = |error: axum::extract::rejection::QueryRejection| {
            ApiError::bad_request(
                format!(
                    "the query is not what is expected here: {}",
                    error.body_text()
                ),
                "GET /api/openapi.json describes it",
            )
        };
        read.map(|Query(value)| Self(value)).map_err(wrong)
    }
}

/// How the name of a session is described: what [`session_named`] takes.
pub(crate) struct SessionName;

/// No character that commands a terminal, and at least one that is no white space either.
const SESSION_PATTERN: &str = concat!(
    r"^[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]*",
    r"[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u200e\u200f\u2028-\u202f\u205f\u2066-\u2069\u3000]",
    r"[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]*$",
);
/// At least one character that is no white space.
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

/// A session's name as it was sent.
pub(crate) fn parse_session_id(name: &str) -> Result<SessionId, ApiError> {
    let is_odd = |c: char| c.is_control() || is_terminal_control(c);
    if name.trim().is_empty() || name.chars().count() > MAX_SESSION_NAME || name.chars().any(is_odd)
    {
        return Err(ApiError::bad_request(
            format!("a session's id has 1 to {MAX_SESSION_NAME} printable characters"),
            "leave it out to begin a new session",
        ));
    }
    Ok(SessionId::new(name))
}
