//! Completion and chunk bodies of the OpenAI-compatible API.

use lango_domain::event::{ApprovalState, EventBody, Update, Usage};
use lango_domain::failure::FailureCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::stream_merge::StreamMerger;
use crate::error::ApiError;

/// Collects the updates of a turn for its completion.
#[derive(Default)]
pub(super) struct TurnAccumulator {
    merger: StreamMerger,
    answers: Vec<String>,
    usage: Usage,
    denied: Vec<DeniedCall>,
    end: TurnEnd,
}

/// The end of a turn.
#[derive(Default)]
enum TurnEnd {
    /// The turn was stopped without a final event.
    #[default]
    Unfinished,
    Done,
    Failed(ApiError),
}

/// A tool call that was not approved.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct DeniedCall {
    pub tool: String,
    /// The reason, and what to do about it.
    pub why: &'static str,
}

impl TurnAccumulator {
    /// Adds an update and returns the new text for the stream.
    pub fn push(&mut self, update: &Update) -> Vec<String> {
        match update {
            Update::Event(event) => match &event.body {
                EventBody::Answer(content) => {
                    self.answers.push(content.to_plain_text().trim().to_owned())
                }
                EventBody::Usage(usage) => self.add_usage(usage),
                EventBody::Approval { tool, state, .. } => {
                    self.denied.extend(denied_call(tool, *state))
                }
                EventBody::TurnDone { .. } => self.end = TurnEnd::Done,
                EventBody::TurnFailed {
                    code,
                    message,
                    hint,
                } => {
                    self.end = TurnEnd::Failed(ApiError::turn_failed(*code, message, hint));
                }
                _ => {}
            },
            Update::StoreFailed(error) => self.end = TurnEnd::Failed(ApiError::from(error.clone())),
            Update::Delta { .. } | Update::ToolOutputDelta { .. } => {}
        }
        self.merger.push(update)
    }

    /// Returns the remaining text for the stream.
    pub fn finish(&mut self) -> Vec<String> {
        self.merger.finish()
    }

    /// Returns the error if the turn has no answer.
    pub fn failure(&self) -> Option<ApiError> {
        match &self.end {
            TurnEnd::Done => None,
            TurnEnd::Failed(error) => Some(error.clone()),
            TurnEnd::Unfinished => Some(ApiError::turn_failed(
                FailureCode::Cancelled,
                "the turn was stopped before it finished",
                "send the request again",
            )),
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        let total = &mut self.usage;
        total.input = total.input.saturating_add(usage.input);
        total.output = total.output.saturating_add(usage.output);
        total.cached = total.cached.saturating_add(usage.cached);
        total.reasoning = total.reasoning.saturating_add(usage.reasoning);
    }
}

fn denied_call(tool: &str, state: ApprovalState) -> Option<DeniedCall> {
    let why = match state {
        ApprovalState::Denied => "the call was denied",
        ApprovalState::TimedOut => {
            "the approval timed out; answer pending questions at /api/approvals"
        }
        ApprovalState::NobodyThere => {
            "the call could not be approved: no token of this principal has the scope `approve`"
        }
        ApprovalState::Asked | ApprovalState::Approved | ApprovalState::Interrupted => return None,
    };
    Some(DeniedCall {
        tool: tool.to_owned(),
        why,
    })
}

/// The fields that all chunks of a completion share.
pub(super) struct Completion {
    pub id: String,
    pub created: i64,
    pub model: String,
    pub session: String,
}

/// A complete chat completion.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CompletionBody {
    pub id: String,
    #[schemars(extend("const" = "chat.completion"))]
    pub object: &'static str,
    pub created: i64,
    pub model: String,
    pub choices: Vec<CompletionChoice>,
    pub usage: UsageBody,
    pub lango: LangoExtension,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CompletionChoice {
    pub index: u32,
    pub message: AnswerMessage,
    #[schemars(extend("const" = "stop"))]
    pub finish_reason: &'static str,
    /// Always null.
    #[schemars(with = "()")]
    pub logprobs: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AnswerMessage {
    #[schemars(extend("const" = "assistant"))]
    pub role: &'static str,
    pub content: String,
    /// Always null.
    #[schemars(with = "()")]
    pub refusal: Option<String>,
}

/// A chunk of a streamed completion.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChunkBody {
    pub id: String,
    #[schemars(extend("const" = "chat.completion.chunk"))]
    pub object: &'static str,
    pub created: i64,
    pub model: String,
    pub choices: Vec<ChunkChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lango: Option<LangoExtension>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ChunkChoice {
    pub index: u32,
    pub delta: ChunkDelta,
    /// `stop` in the last chunk, otherwise null.
    #[schemars(extend("enum" = ["stop", null]))]
    pub finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct ChunkDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// The token usage of all model calls of the turn.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UsageBody {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    pub prompt_tokens_details: PromptDetails,
    pub completion_tokens_details: CompletionDetails,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct PromptDetails {
    pub cached_tokens: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct CompletionDetails {
    pub reasoning_tokens: u64,
}

/// Fields that OpenAI's API does not have.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LangoExtension {
    /// The session of the conversation.
    pub session: String,
    /// Tool calls that were not approved.
    pub denied: Vec<DeniedCall>,
}

impl Completion {
    pub fn full(&self, turn: &TurnAccumulator) -> CompletionBody {
        let (role, content) = ("assistant", turn.answers.join("\n\n"));
        let message = AnswerMessage {
            role,
            content,
            refusal: None,
        };
        CompletionBody {
            id: self.id.clone(),
            object: "chat.completion",
            created: self.created,
            model: self.model.clone(),
            choices: vec![CompletionChoice {
                index: 0,
                message,
                finish_reason: "stop",
                logprobs: None,
            }],
            usage: usage_body(&turn.usage),
            lango: self.lango_extension(turn),
        }
    }

    pub fn first_chunk(&self) -> ChunkBody {
        self.chunk(
            ChunkDelta {
                role: Some("assistant"),
                content: Some(String::new()),
            },
            None,
        )
    }

    pub fn text_chunk(&self, text: String) -> ChunkBody {
        self.chunk(
            ChunkDelta {
                role: None,
                content: Some(text),
            },
            None,
        )
    }

    pub fn last_chunk(&self, turn: &TurnAccumulator) -> ChunkBody {
        let lango = Some(self.lango_extension(turn));
        ChunkBody {
            lango,
            ..self.chunk(ChunkDelta::default(), Some("stop"))
        }
    }

    pub fn usage_chunk(&self, turn: &TurnAccumulator) -> ChunkBody {
        let usage = Some(usage_body(&turn.usage));
        ChunkBody {
            choices: Vec::new(),
            usage,
            ..self.chunk(ChunkDelta::default(), None)
        }
    }

    fn chunk(&self, delta: ChunkDelta, finish_reason: Option<&'static str>) -> ChunkBody {
        ChunkBody {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            choices: vec![ChunkChoice {
                index: 0,
                delta,
                finish_reason,
            }],
            usage: None,
            lango: None,
        }
    }

    fn lango_extension(&self, turn: &TurnAccumulator) -> LangoExtension {
        LangoExtension {
            session: self.session.clone(),
            denied: turn.denied.clone(),
        }
    }
}

fn usage_body(usage: &Usage) -> UsageBody {
    UsageBody {
        prompt_tokens: usage.input,
        completion_tokens: usage.output,
        total_tokens: usage.input.saturating_add(usage.output),
        prompt_tokens_details: PromptDetails {
            cached_tokens: usage.cached,
        },
        completion_tokens_details: CompletionDetails {
            reasoning_tokens: usage.reasoning,
        },
    }
}
