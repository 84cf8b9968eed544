//! Client for one remote agent: sends a request and reads a response or a stream of events.

use std::time::Duration;

use lango_net::json::{self, JsonError};
use lango_net::sse::{SseEvent, SseParser};
use lango_net::{FetchError, body};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response};
use serde_json::Value;
use url::Url;

use crate::a2a::rest::HttpMethod;
use crate::a2a::{
    A2aCall, A2aRequest, ErrorKind, FieldError, ProtocolError, ProtocolVersion, StreamEvent,
    TaskId, rest, rpc,
};
use crate::endpoint::{Endpoint, SupportedBinding};
use crate::outbound::Outbound;

/// Maximum size of a response or of one event of a stream.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of JSON values in a response: a parsed value takes up to 60 times the memory of
/// its bytes.
const MAX_VALUES: usize = 50_000;
/// Maximum size of a whole stream.
const MAX_STREAM_BYTES: usize = 32 * 1024 * 1024;
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Servers send keep-alive comments more often than this.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Error of a request to a remote agent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum A2aClientError {
    #[error("{0}")]
    Fetch(#[from] FetchError),
    #[error("the credentials were rejected (status {0})")]
    Unauthorized(u16),
    #[error("the remote agent returned status {0}")]
    Status(u16),
    #[error("the remote agent sent a redirect, which is not followed for requests")]
    Redirect,
    #[error("the remote agent returned an error: {} ({})", .0.message, .0.kind.code())]
    Protocol(ProtocolError),
    #[error("the response is invalid: {0}")]
    Malformed(#[from] FieldError),
    #[error("the response is not valid JSON")]
    InvalidJson,
    #[error("the response has more than {MAX_VALUES} JSON values")]
    TooManyValues,
    #[error("no data received for {} s", .0.as_secs())]
    IdleTimeout(Duration),
    #[error("the task did not finish within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the stream ended without an answer")]
    StreamEnded,
}

impl A2aClientError {
    /// Returns true if the remote agent may not support this kind of request.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Protocol(error) => {
                matches!(
                    error.kind,
                    ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound
                )
            }
            Self::Status(code) => matches!(code, 404 | 405 | 406 | 501),
            _ => false,
        }
    }

    /// Returns true if the connection broke, as opposed to an error response.
    pub fn is_broken_connection(&self) -> bool {
        matches!(
            self,
            Self::Fetch(_) | Self::IdleTimeout(_) | Self::StreamEnded | Self::Status(500..=599)
        )
    }
}

pub(crate) struct A2aClient<'a> {
    pub outbound: &'a Outbound,
    pub endpoint: &'a Endpoint,
}

impl A2aClient<'_> {
    pub async fn call(&self, request: A2aRequest) -> Result<Value, A2aClientError> {
        let response = self.send(request).await?;
        self.read_response(response).await
    }

    /// Opens a stream of events; returns the plain response if the remote agent does not stream.
    pub async fn open_stream(&self, request: A2aRequest) -> Result<StreamReply, A2aClientError> {
        let response = self.send(request).await?;
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if content_type.starts_with("text/event-stream") {
            let events = A2aEventStream {
                response,
                parser: SseParser::new(MAX_BYTES),
                pending: Vec::new(),
                bytes: 0,
            };
            return Ok(StreamReply::Stream(events));
        }
        self.read_response(response).await.map(StreamReply::Answer)
    }

    /// Cancels a task that is no longer needed. Errors are only logged.
    pub async fn cancel(&self, task: TaskId) {
        let request = self.call(A2aRequest::CancelTask { task });
        if let Ok(Err(error)) = tokio::time::timeout(CLEANUP_TIMEOUT, request).await {
            tracing::debug!(%error, "could not cancel a remote task");
        }
    }

    /// Parses the data of one event of a stream.
    pub fn parse_event(&self, data: &str) -> Result<StreamEvent, A2aClientError> {
        let value = read_json(data.as_bytes())?;
        let value = self.unwrap_envelope(value)?;
        Ok(StreamEvent::from_json(&value, self.endpoint.wire())?)
    }

    async fn send(&self, request: A2aRequest) -> Result<Response, A2aClientError> {
        let is_streaming = request.method().is_streaming();
        let call = A2aCall {
            tenant: self.endpoint.tenant.clone(),
            request,
        };
        let (method, url, body) = self.http_request(&call)?;
        let mut builder = self.outbound.request(method, &url)?;
        builder = builder.header(
            ACCEPT,
            if is_streaming {
                "text/event-stream"
            } else {
                "application/json"
            },
        );
        if self.endpoint.version == ProtocolVersion::V1_0 {
            builder = builder.header(ProtocolVersion::HEADER, ProtocolVersion::V1_0.as_str());
        }
        if let Some(body) = body {
            builder = builder
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let response = builder
            .send()
            .await
            .map_err(|error| FetchError::from_reqwest(&error))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.read_error(response).await)
        }
    }

    fn http_request(&self, call: &A2aCall) -> Result<(Method, Url, Option<Value>), A2aClientError> {
        let unsupported = || {
            let message = "its protocol version does not support this operation";
            A2aClientError::Protocol(ProtocolError::new(ErrorKind::UnsupportedOperation, message))
        };
        let Endpoint {
            url,
            version,
            binding,
            ..
        } = self.endpoint;
        if *binding == SupportedBinding::JsonRpc {
            let body = rpc::encode_request(1, call, *version).ok_or_else(unsupported)?;
            return Ok((Method::POST, url.clone(), Some(body)));
        }
        let request = rest::encode_request(call, *version).ok_or_else(unsupported)?;
        let method = match request.method {
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
            HttpMethod::Delete => Method::DELETE,
        };
        Ok((method, request_url(url, &request), request.body))
    }

    async fn read_response(&self, response: Response) -> Result<Value, A2aClientError> {
        let bytes = body::read(response, MAX_BYTES).await?;
        let value = read_json(&bytes)?;
        self.unwrap_envelope(value)
    }

    /// Returns the result inside the envelope of the binding.
    fn unwrap_envelope(&self, value: Value) -> Result<Value, A2aClientError> {
        match self.endpoint.binding {
            SupportedBinding::JsonRpc => {
                rpc::parse_response(value).map_err(A2aClientError::Protocol)
            }
            SupportedBinding::HttpJson if value.get("error").is_some_and(Value::is_object) => Err(
                A2aClientError::Protocol(ProtocolError::from_rest_json(500, &value)),
            ),
            SupportedBinding::HttpJson => Ok(value),
        }
    }

    async fn read_error(&self, response: Response) -> A2aClientError {
        let status = response.status().as_u16();
        match status {
            300..=399 => return A2aClientError::Redirect,
            401 | 403 => return A2aClientError::Unauthorized(status),
            _ => {}
        }
        let bytes =
            tokio::time::timeout(CLEANUP_TIMEOUT, body::read(response, MAX_ERROR_BYTES)).await;
        let body = bytes
            .ok()
            .and_then(Result::ok)
            .and_then(|bytes| read_json(&bytes).ok());
        match (body, self.endpoint.binding) {
            (Some(body), SupportedBinding::JsonRpc) if body.get("error").is_some() => {
                A2aClientError::Protocol(
                    rpc::parse_response(body)
                        .err()
                        .unwrap_or_else(|| ProtocolError::new(ErrorKind::Internal, "")),
                )
            }
            (Some(body), SupportedBinding::HttpJson) if body.get("error").is_some() => {
                A2aClientError::Protocol(ProtocolError::from_rest_json(status, &body))
            }
            _ => A2aClientError::Status(status),
        }
    }
}

fn read_json(document: &[u8]) -> Result<Value, A2aClientError> {
    json::parse(document, MAX_VALUES).map_err(|error| match error {
        JsonError::TooMany { .. } => A2aClientError::TooManyValues,
        JsonError::Invalid(_) => A2aClientError::InvalidJson,
    })
}

/// Returns the URL of a request. A `/v1` at the end of the interface's URL is not repeated.
fn request_url(base: &Url, request: &rest::HttpRequest) -> Url {
    let mut url = base.clone();
    let base_path = base.path().trim_end_matches('/');
    let path = match request.path.strip_prefix("/v1") {
        Some(rest) if base_path.ends_with("/v1") => rest,
        _ => &request.path,
    };
    url.set_path(&format!("{base_path}{path}"));
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    url
}

/// Reply to a request for a stream.
pub(crate) enum StreamReply {
    Stream(A2aEventStream),
    Answer(Value),
}

/// A stream of server-sent events.
pub(crate) struct A2aEventStream {
    response: Response,
    parser: SseParser,
    /// Events that arrived together, in reverse order.
    pending: Vec<SseEvent>,
    bytes: usize,
}

impl A2aEventStream {
    /// Returns the data of the next event; none at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<String>, A2aClientError> {
        loop {
            if let Some(event) = self.pending.pop() {
                return Ok(Some(event.data));
            }
            let chunk = tokio::time::timeout(IDLE_TIMEOUT, self.response.chunk());
            let chunk = chunk
                .await
                .map_err(|_| A2aClientError::IdleTimeout(IDLE_TIMEOUT))?;
            let Some(bytes) = chunk.map_err(|error| FetchError::from_reqwest(&error))? else {
                return Ok(None);
            };
            self.bytes += bytes.len();
            if self.bytes > MAX_STREAM_BYTES {
                return Err(FetchError::TooLarge {
                    limit: MAX_STREAM_BYTES,
                }
                .into());
            }
            let mut events = Vec::new();
            self.parser
                .feed(&bytes, &mut events)
                .map_err(|error| FieldError::new(error.to_string()))?;
            events.reverse();
            self.pending = events;
        }
    }
}
