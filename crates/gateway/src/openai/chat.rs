//! What a client asks for.

use axum::http::StatusCode;
use lango_domain::suggest;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Value, json};

use super::TEAM_MODEL;
use crate::api::turns::parse_agent_name;
use crate::error::ApiError;
use crate::extract::{NOT_BLANK_PATTERN, Object};
use crate::gateway::ServedTeam;
use crate::turns::TurnTarget;

/// A request as OpenAI's clients make it; what is not named here is tolerated and has no effect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatBody {
    /// `lango` for the team, or the name of one of its agents; the team when left out.
    #[serde(default)]
    pub model: Option<String>,
    /// The whole conversation. The last message that is not empty is the request: it has to be the user's.
    #[schemars(transform = require_user_message)]
    pub messages: Vec<Object<MessageBody>>,
    /// Whether the answer is told as it comes.
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    pub stream_options: Option<Object<ChatStreamOptions>>,
    /// Refused unless empty: the team has tools of its own.
    #[serde(default)]
    #[schemars(length(max = 0))]
    pub tools: Option<Vec<Value>>,
    /// Refused unless empty, as `tools`.
    #[serde(default)]
    #[schemars(length(max = 0))]
    pub functions: Option<Vec<Value>>,
    /// One answer is given, so this is 1 or left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1))]
    pub n: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct MessageBody {
    #[schemars(extend("enum" = ["system", "developer", "user", "assistant"]))]
    pub role: String,
    #[serde(default)]
    pub content: Option<MessageContent>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum MessageContent {
    Text(String),
    Parts(Vec<Object<PartBody>>),
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct PartBody {
    #[serde(rename = "type")]
    #[schemars(extend("const" = "text"))]
    pub kind: String,
    #[schemars(with = "String", required)]
    pub text: Option<String>,
}

/// Says in the description that something has to be asked.
fn require_user_message(messages: &mut Schema) {
    let said = json!({ "pattern": NOT_BLANK_PATTERN });
    let part = json!({ "type": "object", "required": ["text"], "properties": { "text": said } });
    let content = json!({ "anyOf": [
        { "type": "string", "pattern": NOT_BLANK_PATTERN },
        { "type": "array", "contains": part },
    ] });
    let request = json!({ "required": ["content"], "properties": { "role": { "const": "user" }, "content": content } });
    messages.insert("contains".to_owned(), request);
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatStreamOptions {
    /// Whether the last chunk says what was taken.
    #[serde(default)]
    pub include_usage: Option<bool>,
}

/// What a request comes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChatRequest {
    pub target: TurnTarget,
    pub model: String,
    /// What the client says beside the conversation.
    pub system: String,
    pub history: Vec<ChatMessage>,
    pub request: String,
    pub response_mode: ResponseMode,
}

/// A message of the conversation so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatMessage {
    User(String),
    Assistant(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    Full,
    Stream { usage: IncludeUsage },
}

/// Whether a stream ends with what was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeUsage {
    Yes,
    No,
}

impl ChatRequest {
    pub fn parse(body: ChatBody, team: &ServedTeam) -> Result<Self, ApiError> {
        reject_unsupported(&body)?;
        let model = body
            .model
            .filter(|model| !model.is_empty())
            .unwrap_or_else(|| TEAM_MODEL.to_owned());
        let (mut system, mut history) = (String::new(), Vec::new());
        for Object(message) in body.messages {
            let text = content_text(message.content)?.trim().to_owned();
            match message.role.as_str() {
                "system" | "developer" | "user" | "assistant" if text.is_empty() => {}
                "system" | "developer" => append_paragraph(&mut system, &text),
                "user" => match history.last_mut() {
                    Some(ChatMessage::User(before)) => append_paragraph(before, &text),
                    _ => history.push(ChatMessage::User(text)),
                },
                "assistant" => history.push(ChatMessage::Assistant(text)),
                role => return Err(unsupported_content(role)),
            }
        }
        let Some(ChatMessage::User(request)) = history.pop() else {
            return Err(ApiError::bad_request(
                "the last message must be the user's, and not empty",
                "end `messages` with {\"role\": \"user\", \"content\": \"…\"}",
            ));
        };
        let to = turn_target(&model, team)?;
        let usage = body
            .stream_options
            .and_then(|Object(options)| options.include_usage)
            .unwrap_or(false);
        let usage = if usage {
            IncludeUsage::Yes
        } else {
            IncludeUsage::No
        };
        let form = if body.stream.unwrap_or(false) {
            ResponseMode::Stream { usage }
        } else {
            ResponseMode::Full
        };
        Ok(Self {
            target: to,
            model,
            system,
            history,
            request,
            response_mode: form,
        })
    }

    /// What the conversation began with.
    pub fn first_request(&self) -> &str {
        let asked = self.history.iter().find_map(|said| match said {
            ChatMessage::User(text) => Some(text.as_str()),
            ChatMessage::Assistant(_) => None,
        });
        asked.unwrap_or(&self.request)
    }
}

fn reject_unsupported(body: &ChatBody) -> Result<(), ApiError> {
    let is_there = |list: &Option<Vec<Value>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if is_there(&body.tools) || is_there(&body.functions) {
        return Err(ApiError::bad_request(
            "tools of the client are not called here: the team has its own",
            "leave out `tools` and `functions`",
        ));
    }
    if body.n.is_some_and(|n| n != 1.0) {
        return Err(ApiError::bad_request(
            "one answer is given, not several",
            "leave out `n`",
        ));
    }
    Ok(())
}

fn turn_target(model: &str, team: &ServedTeam) -> Result<TurnTarget, ApiError> {
    if model == TEAM_MODEL {
        return Ok(TurnTarget::Team);
    }
    match team.specialists().find(|agent| agent.name == model) {
        Some(agent) => Ok(TurnTarget::Agent(parse_agent_name(&agent.name)?)),
        None => Err(model_not_found(team, model)),
    }
}

pub(crate) fn model_not_found(team: &ServedTeam, model: &str) -> ApiError {
    let model: String = model.chars().take(100).collect();
    let names: Vec<&str> = std::iter::once(TEAM_MODEL)
        .chain(team.specialists().map(|agent| agent.name.as_str()))
        .collect();
    let hint = suggest::did_you_mean(&model, names.iter().copied())
        .unwrap_or_else(|| format!("there are {}", names.join(", ")));
    let message = format!("there is no model `{model}`");
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message, hint)
}

fn unsupported_content(role: &str) -> ApiError {
    let role: String = role.chars().take(100).collect();
    ApiError::bad_request(
        format!("messages of the role `{role}` are not read here"),
        "send messages of the roles system, developer, user and assistant",
    )
}

fn content_text(content: Option<MessageContent>) -> Result<String, ApiError> {
    match content {
        None => Ok(String::new()),
        Some(MessageContent::Text(text)) => Ok(text),
        Some(MessageContent::Parts(parts)) => {
            let mut whole = String::new();
            for Object(part) in parts {
                match (part.kind.as_str(), part.text) {
                    ("text", Some(text)) => append_paragraph(&mut whole, &text),
                    (kind, _) => {
                        let kind: String = kind.chars().take(100).collect();
                        let message = format!("parts of the type `{kind}` are not read here");
                        return Err(ApiError::bad_request(message, "send text"));
                    }
                }
            }
            Ok(whole)
        }
    }
}

fn append_paragraph(whole: &mut String, part: &str) {
    if !whole.is_empty() {
        whole.push_str("\n\n");
    }
    whole.push_str(part);
}
