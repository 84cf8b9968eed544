//! Decodes message events into fragments.

use std::collections::{BTreeMap, HashMap};

use lango_domain::event::{CallId, Usage};
use lango_domain::model::{Fragment, ModelError, ModelRequest, Thought, ToolCall};
use lango_domain::reply_limits::{Excess, MAX_OPEN_BLOCKS, ReplyMeter};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dialect::{DecodeProgress, Decoder, ModelEndpoint, TRUNCATION_MARKER, read_json};
use crate::provider_error;
use crate::tool_call_assembly::parse_arguments;
use crate::tool_names::original_names;
use lango_net::sse::SseEvent;

pub(crate) fn decoder(request: &ModelRequest, endpoint: &ModelEndpoint) -> AnthropicDecoder {
    AnthropicDecoder {
        provider: endpoint.provider.clone(),
        original_names: original_names(&request.tools),
        blocks: BTreeMap::new(),
        meter: ReplyMeter::default(),
        usage: Usage {
            model: format!("{}/{}", endpoint.provider, endpoint.model),
            ..Usage::default()
        },
        stop_reason: None,
        is_finished: false,
    }
}

pub(crate) struct AnthropicDecoder {
    provider: String,
    original_names: HashMap<String, String>,
    blocks: BTreeMap<u64, Block>,
    /// Counts the content of incomplete blocks.
    meter: ReplyMeter,
    usage: Usage,
    stop_reason: Option<String>,
    is_finished: bool,
}

/// An incomplete content block.
enum Block {
    Text,
    Call {
        id: String,
        name: String,
        input: String,
    },
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking that the provider encrypts; sent back unchanged.
    RedactedThinking(Value),
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireEvent {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: MessageDelta,
        #[serde(default)]
        usage: WireUsage,
    },
    MessageStop,
    Error,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageStart {
    usage: WireUsage,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Unknown,
}

impl Decoder for AnthropicDecoder {
    fn decode_event(
        &mut self,
        event: &SseEvent,
        out: &mut Vec<Fragment>,
    ) -> Result<(), ModelError> {
        if event.data.trim().is_empty() {
            return Ok(());
        }
        match read_json::<WireEvent>(&event.data)? {
            WireEvent::MessageStart { message } => self.update_usage(&message.usage),
            WireEvent::ContentBlockStart {
                index,
                content_block,
            } => {
                self.start_block(index, Block::from_content_block(content_block, out))?;
            }
            WireEvent::ContentBlockDelta { index, delta } => self.apply_delta(index, delta, out)?,
            WireEvent::ContentBlockStop { index } => self.finish_block(index, out)?,
            WireEvent::MessageDelta { delta, usage } => {
                self.update_usage(&usage);
                self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
            }
            WireEvent::MessageStop => self.is_finished = true,
            WireEvent::Error => {
                return Err(provider_error::parse_detail(&event.data).to_model_error());
            }
            WireEvent::Unknown => {}
        }
        Ok(())
    }

    fn progress(&self) -> DecodeProgress {
        match (&self.stop_reason, self.is_finished) {
            (_, true) => DecodeProgress::Finished,
            (Some(_), false) => DecodeProgress::Stopped,
            (None, false) => DecodeProgress::Running,
        }
    }

    fn end(&mut self, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        if self.progress() == DecodeProgress::Running {
            return Err(ModelError::BrokeOff);
        }
        out.push(Fragment::Usage(self.usage.clone()));
        match self.stop_reason.as_deref() {
            Some("refusal") => return Err(ModelError::Refused("the model declined".to_owned())),
            Some("max_tokens" | "model_context_window_exceeded") => {
                out.push(Fragment::Text(TRUNCATION_MARKER.to_owned()))
            }
            _ => {}
        }
        out.push(Fragment::Done);
        Ok(())
    }

    fn full_body(&mut self, body: &str, _out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        Err(provider_error::parse_detail(body).to_model_error())
    }
}

impl Block {
    fn from_content_block(block: Value, out: &mut Vec<Fragment>) -> Self {
        let text = |key: &str| {
            block
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                out.extend(
                    Some(text("text"))
                        .filter(|text| !text.is_empty())
                        .map(Fragment::Text),
                );
                Self::Text
            }
            Some("tool_use") => {
                let input = block
                    .get("input")
                    .filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                Self::Call {
                    id: text("id"),
                    name: text("name"),
                    input: input.map(Value::to_string).unwrap_or_default(),
                }
            }
            Some("thinking") => Self::Thinking {
                text: text("thinking"),
                signature: text("signature"),
            },
            Some("redacted_thinking") => Self::RedactedThinking(block),
            _ => Self::Other,
        }
    }
}

impl AnthropicDecoder {
    fn start_block(&mut self, index: u64, block: Block) -> Result<(), ModelError> {
        match &block {
            Block::Call { id, name, input } => {
                self.meter.add_call()?;
                self.meter
                    .add_call_bytes(id.len() + name.len() + input.len())?;
            }
            Block::Thinking { text, signature } => {
                self.meter.add_thought(text.len() + signature.len())?
            }
            Block::RedactedThinking(block) => self.meter.add_thought(block.to_string().len())?,
            Block::Text | Block::Other => {}
        }
        self.blocks.insert(index, block);
        if self.blocks.len() > MAX_OPEN_BLOCKS {
            Err(ModelError::TooLarge(Excess::OpenBlocks))
        } else {
            Ok(())
        }
    }

    fn apply_delta(
        &mut self,
        index: u64,
        delta: Delta,
        out: &mut Vec<Fragment>,
    ) -> Result<(), ModelError> {
        match (self.blocks.get_mut(&index), delta) {
            (Some(Block::Call { input, .. }), Delta::InputJson { partial_json }) => {
                self.meter.add_call_bytes(partial_json.len())?;
                input.push_str(&partial_json);
            }
            (Some(Block::Thinking { text, .. }), Delta::Thinking { thinking }) => {
                self.meter.add_thought(thinking.len())?;
                text.push_str(&thinking);
            }
            (Some(Block::Thinking { signature, .. }), Delta::Signature { signature: more }) => {
                self.meter.add_thought(more.len())?;
                signature.push_str(&more);
            }
            (_, Delta::Text { text }) if !text.is_empty() => out.push(Fragment::Text(text)),
            _ => {}
        }
        Ok(())
    }

    fn finish_block(&mut self, index: u64, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        match self.blocks.remove(&index) {
            Some(Block::Call { id, name, input }) => {
                let name = self.original_names.get(&name).cloned().unwrap_or(name);
                let arguments = parse_arguments(&input, &mut self.meter)?;
                out.push(Fragment::Call(ToolCall {
                    id: CallId::new(id),
                    name,
                    arguments,
                }));
            }
            Some(Block::Thinking { text, signature }) => {
                let seal = json!({ "type": "thinking", "thinking": text, "signature": signature });
                let seal = (!signature.is_empty()).then_some(seal);
                out.push(Fragment::Thought(Thought {
                    provider: self.provider.clone(),
                    text,
                    seal,
                    call: None,
                }));
            }
            Some(Block::RedactedThinking(block)) => {
                let (provider, text) = (self.provider.clone(), String::new());
                out.push(Fragment::Thought(Thought {
                    provider,
                    text,
                    seal: Some(block),
                    call: None,
                }));
            }
            Some(Block::Text | Block::Other) | None => {}
        }
        Ok(())
    }

    /// Updates the usage. Tokens read from and written to the cache count as input.
    fn update_usage(&mut self, usage: &WireUsage) {
        if let Some(input) = usage.input_tokens {
            let (cached, written) = (
                usage.cache_read_input_tokens.unwrap_or(0),
                usage.cache_creation_input_tokens.unwrap_or(0),
            );
            (self.usage.cached, self.usage.cache_written) = (cached, written);
            self.usage.input = input.saturating_add(cached).saturating_add(written);
        }
        self.usage.output = usage.output_tokens.unwrap_or(self.usage.output);
    }
}
