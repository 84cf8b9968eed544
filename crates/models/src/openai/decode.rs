//! Decodes chunks of a chat completion into fragments.

use std::collections::HashMap;

use lango_domain::event::Usage;
use lango_domain::model::{Fragment, ModelError, ModelRequest, Thought};
use lango_domain::reply_limits::ReplyMeter;
use serde::Deserialize;
use serde_json::Value;

use crate::dialect::{DecodeProgress, Decoder, ModelEndpoint, TRUNCATION_MARKER, read_json};
use crate::provider_error;
use crate::tool_call_assembly::{ToolCallAssembler, ToolCallDelta};
use crate::tool_names::original_names;
use lango_net::sse::SseEvent;

pub(crate) fn decoder(request: &ModelRequest, endpoint: &ModelEndpoint) -> OpenAiDecoder {
    OpenAiDecoder {
        provider: endpoint.provider.clone(),
        model: endpoint.model.clone(),
        original_names: original_names(&request.tools),
        calls: ToolCallAssembler::default(),
        thinking: String::new(),
        meter: ReplyMeter::default(),
        refusal: None,
        progress: DecodeProgress::Running,
    }
}

pub(crate) struct OpenAiDecoder {
    provider: String,
    model: String,
    original_names: HashMap<String, String>,
    calls: ToolCallAssembler,
    thinking: String,
    /// Counts content that is buffered and not yet emitted.
    meter: ReplyMeter,
    /// Text of the model or its content filter that replaces the answer.
    refusal: Option<String>,
    progress: DecodeProgress,
}

/// A chunk of the stream. Servers omit any field or set it to null.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Value>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    /// Used instead of `delta` by servers that do not stream.
    #[serde(default, borrow)]
    message: Option<Delta<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta<'a> {
    content: Option<String>,
    /// Servers use two names for thinking; some send both.
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<DeltaToolCall<'a>>>,
}

#[derive(Deserialize)]
struct DeltaToolCall<'a> {
    index: Option<u64>,
    #[serde(default, borrow)]
    id: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    function: Option<DeltaFunction>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DeltaFunction {
    name: Option<String>,
    arguments: Option<Arguments>,
}

/// Arguments as a string, or as an object from some servers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments {
    Text(String),
    Value(Value),
}

impl Decoder for OpenAiDecoder {
    fn decode_event(
        &mut self,
        event: &SseEvent,
        out: &mut Vec<Fragment>,
    ) -> Result<(), ModelError> {
        match event.data.trim() {
            "" => Ok(()),
            "[DONE]" => {
                self.progress = DecodeProgress::Finished;
                Ok(())
            }
            data => self.decode_chunk(data, out),
        }
    }

    fn progress(&self) -> DecodeProgress {
        self.progress
    }

    fn end(&mut self, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        if self.progress == DecodeProgress::Running {
            return Err(ModelError::BrokeOff);
        }
        if let Some(refusal) = self.refusal.take() {
            return Err(ModelError::Refused(
                lango_text::sanitize::one_line(&refusal)
                    .chars()
                    .take(300)
                    .collect(),
            ));
        }
        if !self.thinking.is_empty() {
            let (provider, text) = (self.provider.clone(), std::mem::take(&mut self.thinking));
            out.push(Fragment::Thought(Thought {
                provider,
                text,
                seal: None,
                call: None,
            }));
        }
        out.extend(
            self.calls
                .finish(&self.original_names)?
                .into_iter()
                .map(Fragment::Call),
        );
        out.push(Fragment::Done);
        Ok(())
    }

    fn full_body(&mut self, body: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        self.decode_chunk(body, out)?;
        self.end(out)
    }
}

impl OpenAiDecoder {
    fn decode_chunk(&mut self, data: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = read_json(data)?;
        if chunk.error.is_some() {
            return Err(provider_error::parse_detail(data).to_model_error());
        }
        if let Some(usage) = chunk.usage.filter(Value::is_object) {
            out.push(Fragment::Usage(self.parse_usage(&usage)));
        }
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            self.apply_delta(choice.delta.or(choice.message).unwrap_or_default(), out)?;
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.apply_finish_reason(&reason, out);
            }
        }
        Ok(())
    }

    fn apply_delta(&mut self, delta: Delta<'_>, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.meter.add_text(refusal.len())?;
            self.refusal.get_or_insert_default().push_str(&refusal);
        }
        if let Some(thinking) = delta.reasoning_content.or(delta.reasoning) {
            self.meter.add_thought(thinking.len())?;
            self.thinking.push_str(&thinking);
        }
        out.extend(
            delta
                .content
                .filter(|text| !text.is_empty())
                .map(Fragment::Text),
        );
        for call in delta.tool_calls.into_iter().flatten() {
            let function = call.function.unwrap_or_default();
            let arguments = match function.arguments {
                Some(Arguments::Text(text)) => text,
                Some(Arguments::Value(value)) if !value.is_null() => value.to_string(),
                _ => String::new(),
            };
            self.calls.push(&ToolCallDelta {
                index: call.index,
                id: call.id.as_deref().unwrap_or_default(),
                name: function.name.as_deref().unwrap_or_default(),
                arguments: &arguments,
            })?;
        }
        Ok(())
    }

    fn apply_finish_reason(&mut self, reason: &str, out: &mut Vec<Fragment>) {
        if self.progress == DecodeProgress::Running {
            self.progress = DecodeProgress::Stopped;
        }
        match reason {
            "content_filter" => {
                self.refusal = Some("the provider's content filter stopped the reply".to_owned())
            }
            "length" if self.calls.is_empty() => {
                out.push(Fragment::Text(TRUNCATION_MARKER.to_owned()))
            }
            _ => {}
        }
    }

    /// Parses usage leniently: invalid numbers must not cost the answer.
    fn parse_usage(&self, usage: &Value) -> Usage {
        let number = |pointer: &str| {
            let value = usage.pointer(pointer)?;
            value
                .as_u64()
                .or_else(|| value.as_f64().map(|number| number.max(0.0) as u64))
        };
        Usage {
            model: format!("{}/{}", self.provider, self.model),
            input: number("/prompt_tokens").unwrap_or(0),
            output: number("/completion_tokens").unwrap_or(0),
            cached: number("/prompt_tokens_details/cached_tokens").unwrap_or(0),
            reasoning: number("/completion_tokens_details/reasoning_tokens").unwrap_or(0),
            ..Usage::default()
        }
    }
}
