//! The HTTP driver for all dialects: sends the request, enforces timeouts, decodes bytes into
//! fragments.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use lango_domain::ReadableKinds;
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};
use lango_domain::reply_limits::{
    Excess, MAX_BODY_BYTES, MAX_ERROR_BYTES, MAX_EVENT_BYTES, MAX_WIRE_BYTES, ReplyMeter,
};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect;

use crate::catalog::Price;
use crate::dialect::{DecodeProgress, Decoder, Dialect, ModelEndpoint, WireRequest};
use crate::provider_error::ErrorResponse;
use lango_domain::secret::Secret;
use lango_net::sse::{SseError, SseParser};

/// Timeouts of a model request.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub connect: Duration,
    pub first_byte: Duration,
    pub idle: Duration,
}

/// Time limit for the body of an error response. A later body is dropped.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the HTTP client for models. It follows no redirects, because a key belongs to one
/// address.
pub fn http_client(connect: Duration) -> Result<reqwest::Client, ModelError> {
    lango_net::install_tls();
    reqwest::Client::builder()
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true)
        .build()
        .map_err(|error| ModelError::Connection(error.to_string()))
}

/// A model reached over HTTP.
pub struct HttpModel {
    pub client: reqwest::Client,
    pub dialect: Dialect,
    pub endpoint: ModelEndpoint,
    pub timeouts: Timeouts,
    pub window: usize,
    pub readable: ReadableKinds,
    pub price: Option<Price>,
}

impl Model for HttpModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let wire = self.dialect.encode(&request, &self.endpoint);
        let decoder = self.dialect.decoder(&request, &self.endpoint);
        let (timeouts, price) = (self.timeouts, self.price);
        let secrets: Vec<Secret> = self
            .endpoint
            .key
            .iter()
            .chain(self.endpoint.headers.values())
            .cloned()
            .collect();
        let sending = self.send(wire);
        let opening = async move {
            let response = sending.await?;
            Ok(fragment_stream(response, decoder, timeouts))
        };
        let add_cost = move |fragment| match fragment {
            Fragment::Usage(mut usage) => {
                usage.cost_usd = price.map(|price| price.cost(&usage));
                Fragment::Usage(usage)
            }
            other => other,
        };
        // Providers may repeat secrets in error messages.
        let redact_secrets = move |error: ModelError| {
            error.map_message(|message| {
                secrets.iter().fold(message.to_owned(), |message, secret| {
                    secret.redact(&message)
                })
            })
        };
        stream::once(opening)
            .try_flatten()
            .map_ok(add_cost)
            .map_err(redact_secrets)
            .boxed()
    }

    fn window(&self) -> usize {
        self.window
    }

    fn readable_kinds(&self) -> ReadableKinds {
        self.readable
    }
}

impl HttpModel {
    fn send(
        &self,
        wire: WireRequest,
    ) -> impl Future<Output = Result<reqwest::Response, ModelError>> + Send + 'static {
        let headers = self.headers(&wire);
        let (client, first_byte) = (self.client.clone(), self.timeouts.first_byte);
        async move {
            let request = client.post(&wire.url).headers(headers?).body(wire.body);
            let response = tokio::time::timeout(first_byte, request.send())
                .await
                .map_err(|_| {
                    ModelError::Connection(format!("no response within {} s", first_byte.as_secs()))
                })?
                .map_err(|error| ModelError::Connection(root_cause(&error)))?;
            if response.status().is_success() {
                Ok(response)
            } else {
                Err(read_error(response).await)
            }
        }
    }

    fn headers(&self, wire: &WireRequest) -> Result<HeaderMap, ModelError> {
        let invalid = |name: &str| ModelError::Malformed(format!("the header {name} is invalid"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let dialect_headers = wire
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let configured = self
            .endpoint
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()));
        for (name, value) in dialect_headers.chain(configured) {
            let header = HeaderName::try_from(name).map_err(|_| invalid(name))?;
            headers.insert(
                header,
                HeaderValue::from_str(value).map_err(|_| invalid(name))?,
            );
        }
        if let Some(key) = &self.endpoint.key {
            let (name, prefix) = self.dialect.key_header();
            let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose()))
                .map_err(|_| invalid(name))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// Reads the body of an error response and converts it to an error.
async fn read_error(mut response: reqwest::Response) -> ModelError {
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            let remaining = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(remaining)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
    };
    // A partial body is enough to classify the error.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await;
    ErrorResponse {
        status,
        retry_after: retry_after.as_deref(),
        body: &String::from_utf8_lossy(&body),
    }
    .to_model_error()
}

/// Streams the fragments of a response as its bytes arrive.
fn fragment_stream(
    response: reqwest::Response,
    decoder: Box<dyn Decoder>,
    timeouts: Timeouts,
) -> BoxStream<'static, Result<Fragment, ModelError>> {
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_stream = !content_type.starts_with("application/json");
    let reader = ResponseReader {
        response,
        decoder,
        timeouts,
        is_stream,
        has_started: false,
        parser: SseParser::new(MAX_EVENT_BYTES),
        body: Vec::new(),
        wire_bytes: 0,
        meter: ReplyMeter::default(),
        ready: VecDeque::new(),
        is_finished: false,
    };
    stream::unfold(reader, |mut reader| async move {
        loop {
            if let Some(fragment) = reader.ready.pop_front() {
                return Some((fragment, reader));
            }
            if reader.is_finished {
                return None;
            }
            if let Err(error) = reader.read_next().await {
                reader.is_finished = true;
                reader.ready.push_back(Err(error));
            }
        }
    })
    .boxed()
}

struct ResponseReader {
    response: reqwest::Response,
    decoder: Box<dyn Decoder>,
    timeouts: Timeouts,
    is_stream: bool,
    /// True once a fragment of the reply has arrived.
    has_started: bool,
    parser: SseParser,
    body: Vec<u8>,
    /// Bytes received so far, including frames and comments.
    wire_bytes: usize,
    /// Counts the emitted fragments against the reply limits (B105).
    meter: ReplyMeter,
    ready: VecDeque<Result<Fragment, ModelError>>,
    is_finished: bool,
}

impl ResponseReader {
    async fn read_next(&mut self) -> Result<(), ModelError> {
        let timeout = if self.has_started {
            self.timeouts.idle
        } else {
            self.timeouts.first_byte
        };
        let chunk = match tokio::time::timeout(timeout, self.response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            // A reply that has stopped is complete, no matter how its connection ends.
            _ if self.decoder.progress() != DecodeProgress::Running => None,
            Ok(Err(error)) => return Err(ModelError::Connection(root_cause(&error))),
            Err(_) => {
                return Err(ModelError::Connection(format!(
                    "no data received for {} s",
                    timeout.as_secs()
                )));
            }
        };
        let mut fragments = Vec::new();
        self.wire_bytes += chunk.as_ref().map_or(0, |bytes| bytes.len());
        let decoded = match chunk {
            Some(_) if self.wire_bytes > MAX_WIRE_BYTES => Err(ModelError::TooLarge(Excess::Wire)),
            Some(bytes) if self.is_stream => self.decode_events(&bytes, &mut fragments),
            Some(bytes) => self.append_body(&bytes),
            None => self.finish(&mut fragments),
        };
        self.has_started |= !fragments.is_empty();
        self.emit(fragments).and(decoded)
    }

    fn emit(&mut self, fragments: Vec<Fragment>) -> Result<(), ModelError> {
        for fragment in merge_adjacent(fragments) {
            self.meter.add_fragment(&fragment)?;
            self.ready.push_back(Ok(fragment));
        }
        Ok(())
    }

    fn decode_events(&mut self, bytes: &[u8], out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        let mut events = Vec::new();
        self.parser
            .feed(bytes, &mut events)
            .map_err(invalid_stream)?;
        events
            .iter()
            .try_for_each(|event| self.decoder.decode_event(event, out))?;
        if self.decoder.progress() == DecodeProgress::Finished {
            self.is_finished = true;
            self.decoder.end(out)?;
        }
        Ok(())
    }

    fn append_body(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if self.body.len() + bytes.len() > MAX_BODY_BYTES {
            return Err(ModelError::TooLarge(Excess::Whole));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        self.is_finished = true;
        if !self.is_stream {
            let body = String::from_utf8(std::mem::take(&mut self.body));
            let body = body
                .map_err(|_| ModelError::Malformed("the response is not valid UTF-8".to_owned()))?;
            return self.decoder.full_body(&body, out);
        }
        let mut events = Vec::new();
        self.parser.finish(&mut events).map_err(invalid_stream)?;
        // A truncated event means that the reply broke off, not that it is malformed.
        let tail = events
            .iter()
            .try_for_each(|event| self.decoder.decode_event(event, out));
        tail.map_err(|_| ModelError::BrokeOff)?;
        self.decoder.end(out)
    }
}

/// Merges adjacent fragments that arrived together, so that a fast provider does not cost one
/// fragment per token.
fn merge_adjacent(fragments: Vec<Fragment>) -> Vec<Fragment> {
    let mut merged: Vec<Fragment> = Vec::new();
    for fragment in fragments {
        match (merged.last_mut(), fragment) {
            (Some(Fragment::Text(text)), Fragment::Text(more)) => text.push_str(&more),
            (Some(Fragment::Usage(usage)), Fragment::Usage(newer)) => *usage = newer,
            (_, fragment) => merged.push(fragment),
        }
    }
    merged
}

fn invalid_stream(error: SseError) -> ModelError {
    match error {
        SseError::TooLong => ModelError::TooLarge(Excess::Event),
        SseError::NotText => ModelError::Malformed(error.to_string()),
    }
}

/// Returns the innermost cause: the outer ones only say that a request failed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
