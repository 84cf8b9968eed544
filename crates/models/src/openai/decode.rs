//! Chunks of a chat completion into fragments.

use std::collections::HashMap;

use lango_domain::event::Usage;
use lango_domain::model::{Fragment, ModelError, ModelRequest, Thought};
use serde::Deserialize;

use crate::calls::{Assembler, Piece};
use crate::dialect::{CUT_OFF, Decoder, Target, read_json};
use crate::sse::SseEvent;
use crate::status;
use crate::tool_names::names_back;

pub(crate) fn decoder(request: &ModelRequest, target: &Target) -> OpenAiDecoder {
    OpenAiDecoder {
        provider: target.provider.clone(),
        model: target.model.clone(),
        names_back: names_back(&request.tools),
        calls: Assembler::default(),
        thinking: String::new(),
        finished: false,
    }
}

pub(crate) struct OpenAiDecoder {
    provider: String,
    model: String,
    names_back: HashMap<String, String>,
    calls: Assembler,
    thinking: String,
    /// A finish reason or `[DONE]` was seen.
    finished: bool,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<WireUsage>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    /// `message` when the server does not stream.
    #[serde(default, borrow, alias = "message")]
    delta: Option<Delta<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta<'a> {
    content: Option<String>,
    /// What several servers call thinking.
    #[serde(alias = "reasoning")]
    reasoning_content: Option<String>,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    index: Option<u64>,
    #[serde(default, borrow)]
    id: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    function: Option<FunctionPiece>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<Arguments>,
}

/// A text as it should be, or the object itself as some servers send it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments {
    Text(String),
    Value(serde_json::Value),
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Decoder for OpenAiDecoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        match event.data.trim() {
            "" => Ok(()),
            "[DONE]" => {
                self.finished = true;
                Ok(())
            }
            data => self.chunk(data, out),
        }
    }

    fn end(&mut self, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        if !self.finished {
            return Err(ModelError::BrokeOff);
        }
        if !self.thinking.is_empty() {
            let (provider, text) = (self.provider.clone(), std::mem::take(&mut self.thinking));
            out.push(Fragment::Thought(Thought { provider, text, seal: None, call: None }));
        }
        out.extend(self.calls.finish(&self.names_back).into_iter().map(Fragment::Call));
        out.push(Fragment::Done);
        Ok(())
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        self.chunk(body, out)?;
        self.end(out)
    }
}

impl OpenAiDecoder {
    fn chunk(&mut self, data: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = read_json(data)?;
        if chunk.error.is_some() {
            return Err(status::detail(data).error());
        }
        if let Some(usage) = chunk.usage {
            out.push(Fragment::Usage(self.usage(&usage)));
        }
        if let Some(choice) = chunk.choices.into_iter().next() {
            self.delta(choice.delta.unwrap_or_default(), out)?;
            if let Some(reason) = choice.finish_reason {
                self.finish(&reason, out)?;
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            return Err(ModelError::Refused(refusal));
        }
        self.thinking.extend(delta.reasoning_content);
        out.extend(delta.content.filter(|text| !text.is_empty()).map(Fragment::Text));
        for piece in delta.tool_calls.into_iter().flatten() {
            let function = piece.function.unwrap_or_default();
            let arguments = match function.arguments {
                Some(Arguments::Text(text)) => text,
                Some(Arguments::Value(value)) if !value.is_null() => value.to_string(),
                _ => String::new(),
            };
            self.calls.take(&Piece {
                index: piece.index,
                id: piece.id.as_deref().unwrap_or_default(),
                name: function.name.as_deref().unwrap_or_default(),
                arguments: &arguments,
            });
        }
        Ok(())
    }

    fn finish(&mut self, reason: &str, out: &mut Vec<Fragment>) -> Result<(), ModelError> {
        self.finished = true;
        match reason {
            "content_filter" => Err(ModelError::Refused("its filter stopped the reply".to_owned())),
            "length" if self.calls.is_empty() => {
                out.push(Fragment::Text(CUT_OFF.to_owned()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn usage(&self, usage: &WireUsage) -> Usage {
        let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let reasoning = usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        Usage {
            model: format!("{}/{}", self.provider, self.model),
            input: usage.prompt_tokens,
            output: usage.completion_tokens,
            cached: cached.unwrap_or(0),
            reasoning: reasoning.unwrap_or(0),
            cost_usd: None,
        }
    }
}
