//! Provider dialects: pure functions between requests or fragments and a provider's bytes.

use std::collections::BTreeMap;

use lango_domain::model::{Fragment, ModelError, ModelRequest};

use crate::{anthropic, gemini, openai};
use lango_domain::reply_limits::{Excess, MAX_VALUES};
use lango_domain::secret::Secret;
use lango_net::json::{self, JsonError};
use lango_net::sse::SseEvent;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    OpenAi,
    Anthropic,
    Gemini,
}

/// The provider and model that a request is sent to.
#[derive(Clone, Debug)]
pub struct ModelEndpoint {
    /// The provider's id in the settings. Thoughts are sent back only to the provider that made
    /// them.
    pub provider: String,
    pub base_url: String,
    pub key: Option<Secret>,
    pub model: String,
    pub headers: BTreeMap<String, Secret>,
    /// Token limit of a reply, for providers that require one.
    pub max_output_tokens: u64,
}

/// An encoded HTTP request, without the API key.
#[derive(Clone, Debug, PartialEq)]
pub struct WireRequest {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeProgress {
    Running,
    /// The model has stopped; only usage may follow.
    Stopped,
    /// The reply is complete, even if the connection stays open.
    Finished,
}

/// Decodes a provider's events into fragments.
pub trait Decoder: Send {
    fn decode_event(&mut self, event: &SseEvent, out: &mut Vec<Fragment>)
    -> Result<(), ModelError>;

    /// Returns the progress of the reply.
    fn progress(&self) -> DecodeProgress;

    /// Ends the stream. A complete reply yields [`Fragment::Done`], an incomplete one an error.
    fn end(&mut self, out: &mut Vec<Fragment>) -> Result<(), ModelError>;

    /// Decodes the single JSON document of a server that does not stream.
    fn full_body(&mut self, body: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError>;
}

impl Dialect {
    pub fn encode(self, request: &ModelRequest, endpoint: &ModelEndpoint) -> WireRequest {
        match self {
            Self::OpenAi => openai::encode(request, endpoint),
            Self::Anthropic => anthropic::encode(request, endpoint),
            Self::Gemini => gemini::encode(request, endpoint),
        }
    }

    pub fn decoder(self, request: &ModelRequest, endpoint: &ModelEndpoint) -> Box<dyn Decoder> {
        match self {
            Self::OpenAi => Box::new(openai::decoder(request, endpoint)),
            Self::Anthropic => Box::new(anthropic::decoder(request, endpoint)),
            Self::Gemini => Box::new(gemini::decoder(request, endpoint)),
        }
    }

    /// Returns the name of the key header and the prefix of its value.
    pub(crate) fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenAi => ("authorization", "Bearer "),
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }
}

/// Parses one JSON document of a stream.
pub(crate) fn read_json<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, ModelError> {
    json::parse(text.as_bytes(), MAX_VALUES).map_err(|error| match error {
        JsonError::TooMany { .. } => ModelError::TooLarge(Excess::Values),
        JsonError::Invalid(error) => ModelError::Malformed(format!("unexpected JSON: {error}")),
    })
}

/// Appended to a reply that the provider truncated.
pub(crate) const TRUNCATION_MARKER: &str =
    "\n[The reply was cut off: the model reached its length limit.]";
