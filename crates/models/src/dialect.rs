//! What a dialect is: pure functions between our requests and fragments and a provider's bytes.

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

/// Whom a request goes to.
#[derive(Clone, Debug)]
pub struct ModelEndpoint {
    /// The provider's id in the settings; thoughts are carried back only to whoever made them.
    pub provider: String,
    pub base_url: String,
    pub key: Option<Secret>,
    pub model: String,
    pub headers: BTreeMap<String, Secret>,
    /// How much a reply may hold, where a provider wants to know.
    pub max_output_tokens: u64,
}

/// A request as it goes over the wire, apart from the key.
#[derive(Clone, Debug, PartialEq)]
pub struct WireRequest {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeProgress {
    Running,
    /// The model has stopped; only what it took may still come.
    Stopped,
    /// Nothing more will come, whether or not the connection closes.
    Finished,
}

/// Turns a provider's events into fragments.
pub trait Decoder: Send {
    fn decode_event(&mut self, event: &SseEvent, out: &mut Vec<Fragment>)
    -> Result<(), ModelError>;

    /// How far the reply has come.
    fn progress(&self) -> DecodeProgress;

    /// The stream has ended; a reply that is whole gives [`Fragment::Done`].
    fn end(&mut self, out: &mut Vec<Fragment>) -> Result<(), ModelError>;

    /// A server that does not stream answers with one JSON document instead.
    fn full_body(&mut self, body: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError>;
}

impl Dialect {
    pub fn encode(self, request: &ModelRequest, target: &ModelEndpoint) -> WireRequest {
        match self {
            Self::OpenAi => openai::encode(request, target),
            Self::Anthropic => anthropic::encode(request, target),
            Self::Gemini => gemini::encode(request, target),
        }
    }

    pub fn decoder(self, request: &ModelRequest, target: &ModelEndpoint) -> Box<dyn Decoder> {
        match self {
            Self::OpenAi => Box::new(openai::decoder(request, target)),
            Self::Anthropic => Box::new(anthropic::decoder(request, target)),
            Self::Gemini => Box::new(gemini::decoder(request, target)),
        }
    }

    /// The header that carries the key, and what stands before it.
    pub(crate) fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenAi => ("authorization", "Bearer "),
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }
}

/// Reads one JSON document of a stream.
pub(crate) fn read_json<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, ModelError> {
    json::parse(text.as_bytes(), MAX_VALUES).map_err(|error| match error {
        JsonError::TooMany { .. } => ModelError::TooLarge(Excess::Values),
        JsonError::Invalid(error) => {
            ModelError::Malformed(format!("it is not the JSON that was expected: {error}"))
        }
    })
}

/// What stands at the end of a reply that the provider cut off.
pub(crate) const TRUNCATION_MARKER: &str =
    "\n[The reply was cut off: the model reached its length limit.]";
