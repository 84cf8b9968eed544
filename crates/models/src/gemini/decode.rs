//! Decodes chunks of generated content into fragments.

use std::collections::HashMap;

use lango_domain::event::{CallId, Usage};
use lango_domain::model::{Fragment, ModelError, ModelRequest, Thought, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::dialect::{DecodeProgress, Decoder, ModelEndpoint, TRUNCATION_MARKER, read_json};
use crate::provider_error;
use crate::tool_names::original_names;
use lango_net::sse::SseEvent;

pub(crate) fn decoder(request: &ModelRequest, endpoint: &ModelEndpoint) -> GeminiDecoder {
    GeminiDecoder {
        provider: endpoint.provider.clone(),
        model: endpoint.model.clone(),
        original_names: original_names(&request.tools),
        calls: 0,
        finish_reason: None,
        usage: None,
    }
}

pub(crate) struct GeminiDecoder {
    provider: String,
    model: String,
    original_names: HashMap<String, String>,
    calls: usize,
    finish_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Option<WireUsage>,
    prompt_feedback: Option<Feedback>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Part {
    text: Option<String>,
    thought: bool,
    function_call: Option<FunctionCall>,
    thought_signature: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionCall {
    name: String,
    args: Option<Value>,
    id: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WireUsage {
    prompt_token_count: u64,
    candidates_token_count: u64,
    cached_content_token_count: u64,
    thoughts_token_count: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

impl Decoder for GeminiDecoder {
    fn decode_event(
        &mut self,
        event: &SseEvent,
        out: &mut Vec<Fragment>,
    ) -> Result<(), ModelError> {
        if event.data.trim().is_empty() {
            Ok(())
        } else {
            self.decode_chunk(&event.data, out)
        }
    }

    fn progress(&self) -> DecodeProgress {
        if self.finish_reason.is_some() {
            DecodeProgress::Stopped
        } else {
            DecodeProgress::Running
        }
    }

    fn end(&mut self, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        out.extend(self.usage.take().map(Fragment::Usage));
        match self.finish_reason.as_deref() {
            None => return Err(ModelError::BrokeOff),
            Some("MAX_TOKENS") => out.push(Fragment::Text(TRUNCATION_MARKER.to_owned())),
            Some("MALFORMED_FUNCTION_CALL") => {
                return Err(ModelError::Malformed(
                    "the model's tool call could not be parsed".to_owned(),
                ));
            }
            Some(
                reason @ ("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"),
            ) => {
                return Err(ModelError::Refused(reason.to_lowercase()));
            }
            Some(_) => {}
        }
        out.push(Fragment::Done);
        Ok(())
    }

    fn full_body(&mut self, body: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        self.decode_chunk(body, out)?;
        self.end(out)
    }
}

impl GeminiDecoder {
    fn decode_chunk(&mut self, data: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        let chunk: Chunk = read_json(data)?;
        if chunk.error.is_some() {
            return Err(provider_error::parse_detail(data).to_model_error());
        }
        if let Some(reason) = chunk
            .prompt_feedback
            .and_then(|feedback| feedback.block_reason)
        {
            return Err(ModelError::Refused(reason.to_lowercase()));
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage = Some(self.convert_usage(&usage));
        }
        if let Some(candidate) = chunk.candidates.into_iter().flatten().next() {
            candidate
                .content
                .unwrap_or_default()
                .parts
                .into_iter()
                .flatten()
                .for_each(|part| self.decode_part(part, out));
            self.finish_reason = candidate.finish_reason.or(self.finish_reason.take());
        }
        Ok(())
    }

    fn decode_part(&mut self, part: Part, out: &mut Vec<Fragment>) {
        if let Some(call) = part.function_call {
            self.calls += 1;
            // Gemini sends no call ids. One is generated so that the seal can refer to its call;
            // the engine makes it unique.
            let id = CallId::new(call.id.unwrap_or_else(|| format!("gemini-{}", self.calls)));
            if let Some(seal) = part.thought_signature {
                let (provider, text) = (self.provider.clone(), String::new());
                out.push(Fragment::Thought(Thought {
                    provider,
                    text,
                    seal: Some(seal),
                    call: Some(id.clone()),
                }));
            }
            let name = self
                .original_names
                .get(&call.name)
                .cloned()
                .unwrap_or(call.name);
            out.push(Fragment::Call(ToolCall {
                id,
                name,
                arguments: call.args.unwrap_or_else(|| Value::Object(Map::new())),
            }));
        } else if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            let thought = || Thought {
                provider: self.provider.clone(),
                text: text.clone(),
                seal: None,
                call: None,
            };
            out.push(if part.thought {
                Fragment::Thought(thought())
            } else {
                Fragment::Text(text)
            });
        }
    }

    fn convert_usage(&self, usage: &WireUsage) -> Usage {
        Usage {
            model: format!("{}/{}", self.provider, self.model),
            input: usage.prompt_token_count,
            output: usage
                .candidates_token_count
                .saturating_add(usage.thoughts_token_count),
            cached: usage.cached_content_token_count,
            reasoning: usage.thoughts_token_count,
            ..Usage::default()
        }
    }
}
