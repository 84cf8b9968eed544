//! Speaking with a colleague: one request, one answer or one stream of events.

use std::time::Duration;

use lango_net::json::{self, JsonError};
use lango_net::sse::{SseEvent, SseParser};
use lango_net::{FetchError, body};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response};
use serde_json::Value;
use url::Url;

use crate::a2a::rest::Verb;
use crate::a2a::{
    A2aCall, ErrorKind, Malformed, ProtocolError, A2aRequest, StreamEvent, TaskId, ProtocolVersion, rest, rpc,
};
use crate::endpoint::{Endpoint, SupportedBinding};
use crate::outbound::Outbound;

/// An answer, or an event of a stream, that is longer is no answer to anything.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Values of JSON in it: each takes up to 60 times the memory of its bytes.
const MOST_VALUES: usize = 50_000;
/// A whole stream, however many events it has.
const MOST_STREAM_BYTES: usize = 32 * 1024 * 1024;
const MOST_REFUSAL_BYTES: usize = 64 * 1024;
/// Servers send a sign of life more often.
const SILENCE: Duration = Duration::from_secs(90);
const FAREWELL: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum A2aClientError {
    #[error("{0}")]
    Fetch(#[from] FetchError),
    #[error("it refuses the credentials (status {0})")]
    Refused(u16),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("it redirects, which is not followed for requests")]
    Redirects,
    #[error("it answered: {} ({})", .0.message, .0.kind.code())]
    Protocol(ProtocolError),
    #[error("its answer makes no sense: {0}")]
    Malformed(#[from] Malformed),
    #[error("its answer is no JSON")]
    NotJson,
    #[error("its answer has more than {MOST_VALUES} values")]
    TooManyValues,
    #[error("nothing came for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("it did not finish within {} s", .0.as_secs())]
    TooLong(Duration),
    #[error("the stream ended without an answer")]
    Unfinished,
}

impl A2aClientError {
    /// Whether it may be a way of asking that the peer does not know.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Protocol(error) => {
                matches!(error.kind, ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound)
            }
            Self::Status(code) => matches!(code, 404 | 405 | 406 | 501),
            _ => false,
        }
    }

    /// Whether the connection broke, as against an answer that says no.
    pub fn is_broken_connection(&self) -> bool {
        matches!(self, Self::Fetch(_) | Self::Silent(_) | Self::Unfinished | Self::Status(500..=599))
    }
}

pub(crate) struct A2aClient<'a> {
    pub outgoing: &'a Outbound,
    pub endpoint: &'a Endpoint,
}

impl A2aClient<'_> {
    pub async fn call(&self, request: A2aRequest) -> Result<Value, A2aClientError> {
        let response = self.send(request).await?;
        self.answer(response).await
    }

    /// A stream of events; where the peer answers without one, that answer.
    pub async fn open(&self, request: A2aRequest) -> Result<StreamReply, A2aClientError> {
        let response = self.send(request).await?;
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            let events =
                A2aEventStream { response, parser: SseParser::new(MOST_BYTES), waiting: Vec::new(), bytes: 0 };
            return Ok(StreamReply::Stream(events));
        }
        self.answer(response).await.map(StreamReply::Answer)
    }

    /// Tells the peer that nobody waits any more; whether it listens is its own affair.
    pub async fn cancel(&self, task: TaskId) {
        let told = tokio::time::timeout(FAREWELL, self.call(A2aRequest::CancelTask { task })).await;
        if let Ok(Err(trouble)) = told {
            tracing::debug!(%trouble, "a remote task was not cancelled");
        }
    }

    /// What one event of a stream carries.
    pub fn event(&self, data: &str) -> Result<StreamEvent, A2aClientError> {
        let value = read_json(data.as_bytes())?;
        let value = self.unwrapped(value)?;
        Ok(StreamEvent::read(&value, self.endpoint.wire())?)
    }

    async fn send(&self, request: A2aRequest) -> Result<Response, A2aClientError> {
        let streams = request.method().is_streaming();
        let call = A2aCall { tenant: self.endpoint.tenant.clone(), request };
        let (method, url, body) = self.addressed(&call)?;
        let mut sent = self.outgoing.request(method, &url)?;
        sent = sent.header(ACCEPT, if streams { "text/event-stream" } else { "application/json" });
        if self.endpoint.version == ProtocolVersion::V1_0 {
            sent = sent.header(ProtocolVersion::HEADER, ProtocolVersion::V1_0.as_str());
        }
        if let Some(body) = body {
            sent = sent.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let response = sent.send().await.map_err(|error| FetchError::of(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    fn addressed(&self, call: &A2aCall) -> Result<(Method, Url, Option<Value>), A2aClientError> {
        let unknown = || {
            let message = "its version of the protocol does not have this";
            A2aClientError::Protocol(ProtocolError::new(ErrorKind::UnsupportedOperation, message))
        };
        let Endpoint { url, version, binding, .. } = self.endpoint;
        if *binding == SupportedBinding::JsonRpc {
            let body = rpc::request(1, call, *version).ok_or_else(unknown)?;
            return Ok((Method::POST, url.clone(), Some(body)));
        }
        let request = rest::request(call, *version).ok_or_else(unknown)?;
        let method = match request.verb {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Delete => Method::DELETE,
        };
        Ok((method, request_url(url, &request), request.body))
    }

    async fn answer(&self, response: Response) -> Result<Value, A2aClientError> {
        let bytes = body::read(response, MOST_BYTES).await?;
        let value = read_json(&bytes)?;
        self.unwrapped(value)
    }

    /// The result inside an envelope, where there is one.
    fn unwrapped(&self, value: Value) -> Result<Value, A2aClientError> {
        match self.endpoint.binding {
            SupportedBinding::JsonRpc => rpc::result(value).map_err(A2aClientError::Protocol),
            SupportedBinding::HttpJson if value.get("error").is_some_and(Value::is_object) => {
                Err(A2aClientError::Protocol(ProtocolError::read_rest(500, &value)))
            }
            SupportedBinding::HttpJson => Ok(value),
        }
    }

    async fn refusal(&self, response: Response) -> A2aClientError {
        let status = response.status().as_u16();
        match status {
            300..=399 => return A2aClientError::Redirects,
            401 | 403 => return A2aClientError::Refused(status),
            _ => {}
        }
        let read = tokio::time::timeout(FAREWELL, body::read(response, MOST_REFUSAL_BYTES)).await;
        let body = read.ok().and_then(Result::ok).and_then(|bytes| read_json(&bytes).ok());
        match (body, self.endpoint.binding) {
            (Some(body), SupportedBinding::JsonRpc) if body.get("error").is_some() => A2aClientError::Protocol(
                rpc::result(body).err().unwrap_or_else(|| ProtocolError::new(ErrorKind::Internal, "")),
            ),
            (Some(body), SupportedBinding::HttpJson) if body.get("error").is_some() => {
                A2aClientError::Protocol(ProtocolError::read_rest(status, &body))
            }
            _ => A2aClientError::Status(status),
        }
    }
}

fn read_json(document: &[u8]) -> Result<Value, A2aClientError> {
    json::read(document, MOST_VALUES).map_err(|error| match error {
        JsonError::TooMany { .. } => A2aClientError::TooManyValues,
        JsonError::Wrong(_) => A2aClientError::NotJson,
    })
}

/// The address of a request; where the interface's own ends in `/v1` already, that is not said twice.
fn request_url(base: &Url, request: &rest::HttpRequest) -> Url {
    let mut url = base.clone();
    let start = base.path().trim_end_matches('/');
    let path = match request.path.strip_prefix("/v1") {
        Some(rest) if start.ends_with("/v1") => rest,
        _ => &request.path,
    };
    url.set_path(&format!("{start}{path}"));
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    url
}

/// How a peer answers a wish for a stream.
pub(crate) enum StreamReply {
    Stream(A2aEventStream),
    Answer(Value),
}

/// The events of a stream as they come.
pub(crate) struct A2aEventStream {
    response: Response,
    parser: SseParser,
    /// Those that came together, the next one last.
    waiting: Vec<SseEvent>,
    bytes: usize,
}

impl A2aEventStream {
    /// The data of the next event; nothing at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<String>, A2aClientError> {
        loop {
            if let Some(event) = self.waiting.pop() {
                return Ok(Some(event.data));
            }
            let chunk = tokio::time::timeout(SILENCE, self.response.chunk());
            let chunk = chunk.await.map_err(|_| A2aClientError::Silent(SILENCE))?;
            let Some(bytes) = chunk.map_err(|error| FetchError::of(&error))? else { return Ok(None) };
            self.bytes += bytes.len();
            if self.bytes > MOST_STREAM_BYTES {
                return Err(FetchError::TooLarge { limit: MOST_STREAM_BYTES }.into());
            }
            let mut events = Vec::new();
            let fed = self.parser.feed(&bytes, &mut events);
            fed.map_err(|error| Malformed::new(error.to_string()))?;
            events.reverse();
            self.waiting = events;
        }
    }
}
