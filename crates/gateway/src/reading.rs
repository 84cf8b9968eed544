//! Reading what was sent: bounded in size and time, and refused in words.

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use lango_domain::event::SessionId;
use lango_domain::text::commands_a_terminal;
use serde::de::DeserializeOwned;

use crate::gateway::Gateway;
use crate::refusal::Refusal;

/// No name of a session is longer.
const MAX_SESSION_NAME: usize = 200;

/// A body of JSON.
pub(crate) struct Sent<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Gateway> for Sent<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, Refusal> {
        // A page can make a browser send a form without asking first, but not JSON.
        if media_type(request.headers()) != "application/json" {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "media_type",
                "the body must be JSON",
                "send `Content-Type: application/json`",
            ));
        }
        let bytes = body(request, gateway).await?;
        let wrong = |why: String| {
            let message = format!("the body is not what is expected here: {why}");
            Refusal::bad_request(message, "GET /api/openapi.json describes it")
        };
        let value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        // Fields could be read off a list as well, by their order alone.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(wrong("it must be an object".to_owned()));
        }
        Ok(Self(value))
    }
}

/// What the body says it is, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) async fn body(request: Request, gateway: &Gateway) -> Result<Bytes, Refusal> {
    let most = gateway.settings().body_bytes.get();
    let too_large = || {
        let message = format!("the body is longer than {most} bytes");
        let hint = "send less; server.bodyBytes sets the limit";
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "size", message, hint)
    };
    // Whoever says beforehand that it is too much need not send it.
    if usize::try_from(request.body().size_hint().lower()).is_ok_and(|said| said > most) {
        return Err(too_large());
    }
    let reading = Limited::new(request.into_body(), most).collect();
    let read = tokio::time::timeout(gateway.settings().body_time(), reading).await.map_err(|_| {
        let hint = "send it faster; server.bodySeconds sets the limit";
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "slow", "the body did not arrive in time", hint)
    })?;
    match read {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Refusal::bad_request("the body broke off", "send it again")),
    }
}

/// A name that is part of the address.
pub(crate) struct Named(pub String);

impl FromRequestParts<Gateway> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Refusal> {
        let read = Path::<String>::from_request_parts(parts, gateway).await;
        read.map(|Path(name)| Self(name)).map_err(|error| {
            let message = format!("the address cannot be read: {}", error.body_text());
            Refusal::bad_request(message, "names in it are UTF-8, written with `%`")
        })
    }
}

/// What stands behind the `?`.
pub(crate) struct Asked<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Gateway> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Refusal> {
        let read = Query::<T>::from_request_parts(parts, gateway).await;
        let wrong = |error: axum::extract::rejection::QueryRejection| {
            Refusal::bad_request(
                format!("the query is not what is expected here: {}", error.body_text()),
                "GET /api/openapi.json describes it",
            )
        };
        read.map(|Query(value)| Self(value)).map_err(wrong)
    }
}

/// A session's name as it was sent.
pub(crate) fn session_named(name: &str) -> Result<SessionId, Refusal> {
    let is_odd = |c: char| c.is_control() || commands_a_terminal(c);
    if name.trim().is_empty() || name.chars().count() > MAX_SESSION_NAME || name.chars().any(is_odd) {
        return Err(Refusal::bad_request(
            format!("a session's id has 1 to {MAX_SESSION_NAME} printable characters"),
            "leave it out to begin a new session",
        ));
    }
    Ok(SessionId::new(name))
}
