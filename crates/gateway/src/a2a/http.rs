//! The JSON-RPC and HTTP+JSON endpoints for both protocol versions.

use axum::body::Bytes;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use lango_remote::a2a::rest::{self, HttpMethod};
use lango_remote::a2a::rpc::{self, RpcRejection, RpcRequest};
use lango_remote::a2a::{
    A2aCall, A2aRequest, ErrorKind, ProtocolError, ProtocolVersion, WireFormat,
};
use serde_json::Value;

use super::card::{self, CardDetail};
use super::operations::{A2aResponse, TaskOperations};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{self, read_body};
use crate::gateway::Gateway;
use crate::sse;

/// Value of `Retry-After` for temporary errors, in seconds.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Serves JSON-RPC requests. The method name determines the version.
pub(crate) async fn rpc(
    State(gateway): State<Gateway>,
    caller: Caller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let (headers, uri) = (request.headers().clone(), request.uri().clone());
    let requested_version = requested_version(&headers, &uri);
    let parsed = if is_json(&headers) {
        let bytes = read_body(request, &gateway).await?;
        rpc::parse_request(&bytes, requested_version.as_deref())
    } else {
        let version = requested_version
            .as_deref()
            .and_then(ProtocolVersion::parse);
        Err(Box::new(RpcRejection {
            id: rpc::RpcId::Null,
            version: version.unwrap_or(ProtocolVersion::V0_3),
            error: not_json(),
        }))
    };
    let RpcRequest { id, version, call } = match parsed {
        Ok(request) => request,
        Err(rejection) => return Ok(json(rejection.to_response(), "application/json")),
    };
    let wire = WireFormat::rpc(version);
    let is_streaming = call.request.method().is_streaming();
    Ok(
        match execute(&gateway, &caller, (call, wire), &headers).await {
            Ok(A2aResponse::Value(value)) => {
                json(rpc::success_response(&id, value), "application/json")
            }
            Ok(A2aResponse::Stream(events)) => {
                let frames = events
                    .map(move |event| frame(&rpc::success_response(&id, event.to_json(wire))));
                sse::stream(&gateway, &caller, frames)
            }
            // Clients of version 0.3 that request a stream accept no other response.
            Err(error) if is_streaming && version == ProtocolVersion::V0_3 => {
                let failure = frame(&rpc::error_response(&id, &error, version));
                sse::stream(&gateway, &caller, futures::stream::iter([failure]))
            }
            Err(error) => json(
                rpc::error_response(&id, &error, version),
                "application/json",
            ),
        },
    )
}

/// Serves HTTP+JSON requests. The path determines the version.
pub(crate) async fn rest(
    State(gateway): State<Gateway>,
    caller: Caller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let (headers, uri) = (request.headers().clone(), request.uri().clone());
    let method = match *request.method() {
        Method::GET => HttpMethod::Get,
        Method::POST => HttpMethod::Post,
        Method::DELETE => HttpMethod::Delete,
        _ => return Ok(not_found(&uri)),
    };
    let bytes = read_body(request, &gateway).await?;
    let version = if path(&uri).starts_with("/v1/") {
        ProtocolVersion::V0_3
    } else {
        ProtocolVersion::V1_0
    };
    let body = match json_body(&headers, &bytes) {
        Ok(body) => body,
        Err(error) => return Ok(error_response(&error, version)),
    };
    let rest_request = rest::HttpRequest {
        method,
        path: path(&uri).to_owned(),
        query: query(&uri),
        body,
    };
    let Some(parsed) =
        rest::parse_request(&rest_request, requested_version(&headers, &uri).as_deref())
    else {
        return Ok(not_found(&uri));
    };
    let (call, version) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return Ok(error_response(&error, version)),
    };
    let wire = WireFormat::rest(version);
    Ok(
        match execute(&gateway, &caller, (call, wire), &headers).await {
            Ok(A2aResponse::Value(value)) => json(value, media_type(version)),
            Ok(A2aResponse::Stream(events)) => sse::stream(
                &gateway,
                &caller,
                events.map(move |event| frame(&event.to_json(wire))),
            ),
            Err(error) => error_response(&error, version),
        },
    )
}

async fn execute(
    gateway: &Gateway,
    caller: &Caller,
    (call, wire): (A2aCall, WireFormat),
    headers: &HeaderMap,
) -> Result<A2aResponse, ProtocolError> {
    if wire.version() == ProtocolVersion::V0_3 && !gateway.settings().a2a.older_version {
        let message = "A2A version '0.3' is not supported; use 1.0";
        return Err(ProtocolError::new(ErrorKind::VersionNotSupported, message));
    }
    if call.request == A2aRequest::ExtendedCard {
        return Ok(A2aResponse::Value(card::render_card(
            gateway,
            headers,
            CardDetail::Authenticated,
            wire.version(),
        )));
    }
    let operations = TaskOperations {
        gateway: gateway.clone(),
        caller: caller.clone(),
    };
    operations.execute(call, wire).await
}

/// Returns the protocol version that the request names in a header or query parameter.
fn requested_version(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let header = headers
        .get(ProtocolVersion::HEADER)
        .map(|version| version.to_str().unwrap_or("?").to_owned());
    header.or_else(|| {
        query(uri)
            .into_iter()
            .find(|(name, _)| name == ProtocolVersion::HEADER)
            .map(|(_, version)| version)
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    ["application/json", rest::CONTENT_TYPE].contains(&extract::media_type(headers).as_str())
}

fn not_json() -> ProtocolError {
    let message = "the body must be JSON; send `Content-Type: application/json`";
    ProtocolError::new(ErrorKind::ContentTypeNotSupported, message)
}

fn json_body(headers: &HeaderMap, bytes: &Bytes) -> Result<Option<Value>, ProtocolError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json(headers) {
        return Err(not_json());
    }
    let not_json = |_| ProtocolError::new(ErrorKind::Parse, "the body is not JSON");
    let parsed = lango_net::json::parse(bytes, extract::MAX_BODY_VALUES);
    parsed.map(Some).map_err(not_json)
}

/// Returns the path after `/a2a`.
fn path(uri: &Uri) -> &str {
    uri.path().strip_prefix("/a2a").unwrap_or_default()
}

fn query(uri: &Uri) -> Vec<(String, String)> {
    axum::extract::Query::try_from_uri(uri)
        .map(|axum::extract::Query(pairs)| pairs)
        .unwrap_or_default()
}

fn media_type(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::V1_0 => rest::CONTENT_TYPE,
        ProtocolVersion::V0_3 => "application/json",
    }
}

fn json(value: Value, media_type: &'static str) -> Response {
    (
        [(header::CONTENT_TYPE, HeaderValue::from_static(media_type))],
        value.to_string(),
    )
        .into_response()
}

fn error_response(error: &ProtocolError, version: ProtocolVersion) -> Response {
    let status =
        StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (
        status,
        json(error.to_rest_json(version), media_type(version)),
    )
        .into_response();
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    response
}

fn not_found(uri: &Uri) -> Response {
    let path = lango_text::sanitize::truncated_line(uri.path(), 200);
    let error = ProtocolError::new(
        ErrorKind::MethodNotFound,
        format!("no method matches {path}"),
    );
    error_response(&error, ProtocolVersion::V1_0)
}

fn frame(value: &Value) -> Frame {
    Frame::default().data(value.to_string())
}
