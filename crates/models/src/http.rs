//! One driver for every dialect: sends the request, watches the clock, turns bytes into fragments.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
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

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub connect: Duration,
    pub first_byte: Duration,
    pub idle: Duration,
}

/// An error that takes longer to arrive is told without its words.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// A client for models: it follows no redirect, because a key belongs to one address.
pub fn http_client(connect: Duration) -> Result<reqwest::Client, ModelError> {
    lango_net::install_tls();
    reqwest::Client::builder()
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true)
        .build()
        .map_err(|error| ModelError::Connection(error.to_string()))
}

/// A model behind HTTP.
pub struct HttpModel {
    pub client: reqwest::Client,
    pub dialect: Dialect,
    pub endpoint: ModelEndpoint,
    pub timeouts: Timeouts,
    pub window: usize,
    pub price: Option<Price>,
}

impl Model for HttpModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let wire = self.dialect.encode(&request, &self.endpoint);
        let decoder = self.dialect.decoder(&request, &self.endpoint);
        let (timing, price) = (self.timeouts, self.price);
        let secrets: Vec<Secret> = self
            .endpoint
            .key
            .iter()
            .chain(self.endpoint.headers.values())
            .cloned()
            .collect();
        let sent = self.send(wire);
        let opened = async move {
            let response = sent.await?;
            Ok(fragment_stream(response, decoder, timing))
        };
        let priced = move |fragment| match fragment {
            Fragment::Usage(mut usage) => {
                usage.cost_usd = price.map(|price| price.cost(&usage));
                Fragment::Usage(usage)
            }
            other => other,
        };
        // Whatever a provider repeats of our secrets stays here.
        let hidden = move |error: ModelError| {
            error.map_message(|words| {
                secrets
                    .iter()
                    .fold(words.to_owned(), |words, secret| secret.redact(&words))
            })
        };
        stream::once(opened)
            .try_flatten()
            .map_ok(priced)
            .map_err(hidden)
            .boxed()
    }

    fn window(&self) -> usize {
        self.window
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
                    ModelError::Connection(format!("no answer within {} s", first_byte.as_secs()))
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
        let wrong = |what: &str| ModelError::Malformed(format!("the header {what} cannot be sent"));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let own = wire
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let configured = self
            .endpoint
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()));
        for (name, value) in own.chain(configured) {
            let header = HeaderName::try_from(name).map_err(|_| wrong(name))?;
            headers.insert(
                header,
                HeaderValue::from_str(value).map_err(|_| wrong(name))?,
            );
        }
        if let Some(key) = &self.endpoint.key {
            let (name, before) = self.dialect.key_header();
            let mut value = HeaderValue::from_str(&format!("{before}{}", key.expose()))
                .map_err(|_| wrong(name))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// What a provider says instead of a reply.
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
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
    };
    // What came in time is enough to tell.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await;
    ErrorResponse {
        status,
        retry_after: retry_after.as_deref(),
        body: &String::from_utf8_lossy(&body),
    }
    .to_model_error()
}

/// The fragments of a response as its bytes come.
fn fragment_stream(
    response: reqwest::Response,
    decoder: Box<dyn Decoder>,
    timing: Timeouts,
) -> BoxStream<'static, Result<Fragment, ModelError>> {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_stream = !kind.starts_with("application/json");
    let reading = ResponseReader {
        response,
        decoder,
        timeouts: timing,
        is_stream,
        has_started: false,
        parser: SseParser::new(MAX_EVENT_BYTES),
        body: Vec::new(),
        wire_bytes: 0,
        meter: ReplyMeter::default(),
        ready: VecDeque::new(),
        is_finished: false,
    };
    stream::unfold(reading, |mut reading| async move {
        loop {
            if let Some(fragment) = reading.ready.pop_front() {
                return Some((fragment, reading));
            }
            if reading.is_finished {
                return None;
            }
            if let Err(error) = reading.read_next().await {
                reading.is_finished = true;
                reading.ready.push_back(Err(error));
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
    /// Whether anything of the reply has come.
    has_started: bool,
    parser: SseParser,
    body: Vec<u8>,
    /// Everything that came, frames and comments included.
    wire_bytes: usize,
    /// Counts what is handed on (B105).
    meter: ReplyMeter,
    ready: VecDeque<Result<Fragment, ModelError>>,
    is_finished: bool,
}

impl ResponseReader {
    async fn read_next(&mut self) -> Result<(), ModelError> {
        let patience = if self.has_started {
            self.timeouts.idle
        } else {
            self.timeouts.first_byte
        };
        let chunk = match tokio::time::timeout(patience, self.response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            // A reply that has stopped is whole, however its connection ends.
            _ if self.decoder.progress() != DecodeProgress::Running => None,
            Ok(Err(error)) => return Err(ModelError::Connection(root_cause(&error))),
            Err(_) => {
                return Err(ModelError::Connection(format!(
                    "nothing came for {} s",
                    patience.as_secs()
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
            let body =
                body.map_err(|_| ModelError::Malformed("it is not valid UTF-8".to_owned()))?;
            return self.decoder.full_body(&body, out);
        }
        let mut events = Vec::new();
        self.parser.finish(&mut events).map_err(invalid_stream)?;
        // An event that is cut in the middle is a reply that broke off, not one that makes no sense.
        let tail = events
            .iter()
            .try_for_each(|event| self.decoder.decode_event(event, out));
        tail.map_err(|_| ModelError::BrokeOff)?;
        self.decoder.end(out)
    }
}

/// Neighbours that came together become one: a provider that is faster than whoever reads costs no piece for each token.
fn merge_adjacent(fragments: Vec<Fragment>) -> Vec<Fragment> {
    let mut joined: Vec<Fragment> = Vec::new();
    for fragment in fragments {
        match (joined.last_mut(), fragment) {
            (Some(Fragment::Text(text)), Fragment::Text(more)) => text.push_str(&more),
            (Some(Fragment::Usage(usage)), Fragment::Usage(newer)) => *usage = newer,
            (_, fragment) => joined.push(fragment),
        }
    }
    joined
}

fn invalid_stream(error: SseError) -> ModelError {
    match error {
        SseError::TooLong => ModelError::TooLarge(Excess::Event),
        SseError::NotText => ModelError::Malformed(error.to_string()),
    }
}

/// The innermost reason: the outer ones only say that a request failed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
