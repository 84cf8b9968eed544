//! Chat completion requests.

use axum::http::StatusCode;
use lango_domain::Content;
use lango_domain::content::Attachment;
use lango_domain::markers::ATTACHMENTS_ONLY_REQUEST;
use lango_domain::redaction::Redact;
use lango_domain::secret_reference::SecretRedactor;
use lango_text::suggest;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::{Value, json};

use super::TEAM_MODEL;
use crate::api::turns::parse_agent_name;
use crate::attachments::bad_attachment;
use crate::error::ApiError;
use crate::extract::{NOT_BLANK_PATTERN, Object};
use crate::gateway::ServedTeam;
use lango_runtime::TurnTarget;

/// A chat completion request. Other fields of OpenAI's API are ignored.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatBody {
    /// `lango` for the team, or the name of an agent; the team if omitted.
    #[serde(default)]
    pub model: Option<String>,
    /// The whole conversation. The last non-empty message is the request and must be from the
    /// user.
    #[schemars(transform = require_user_message)]
    pub messages: Vec<Object<MessageBody>>,
    /// Streams the answer as it is generated.
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    pub stream_options: Option<Object<ChatStreamOptions>>,
    /// Must be empty: the team uses its own tools.
    #[serde(default)]
    #[schemars(length(max = 0))]
    pub tools: Option<Vec<Value>>,
    /// Must be empty, like `tools`.
    #[serde(default)]
    #[schemars(length(max = 0))]
    pub functions: Option<Vec<Value>>,
    /// Number of answers; only 1 is supported.
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

/// A part of a message: a text, an image or a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(transform = require_field_of_type)]
pub(crate) struct PartBody {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["text", "image_url", "file"]))]
    pub kind: String,
    #[serde(default)]
    #[schemars(with = "String")]
    pub text: Option<String>,
    #[serde(default)]
    #[schemars(with = "ImageUrlBody")]
    pub image_url: Option<Object<ImageUrlBody>>,
    #[serde(default)]
    #[schemars(with = "FileBody")]
    pub file: Option<Object<FileBody>>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct ImageUrlBody {
    /// A `data:` URL with base64. Other URLs are not fetched.
    #[schemars(regex(pattern = "^[dD][aA][tT][aA]:"))]
    pub url: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct FileBody {
    /// The name of the file.
    #[serde(default)]
    pub filename: Option<String>,
    /// The content as base64, or as a `data:` URL with base64.
    pub file_data: String,
}

/// Adds to the schema that a part has the field that its type names.
fn require_field_of_type(part: &mut Schema) {
    let of_type =
        |kind: &str| json!({ "properties": { "type": { "const": kind } }, "required": [kind] });
    part.insert(
        "oneOf".to_owned(),
        json!([of_type("text"), of_type("image_url"), of_type("file")]),
    );
}

/// Adds to the schema that one message must be a non-empty message of the user.
fn require_user_message(messages: &mut Schema) {
    let text = json!({ "pattern": NOT_BLANK_PATTERN });
    let part = json!({ "type": "object", "anyOf": [
        { "required": ["text"], "properties": { "type": { "const": "text" }, "text": text } },
        { "properties": { "type": { "enum": ["image_url", "file"] } } },
    ] });
    let content = json!({ "anyOf": [
        { "type": "string", "pattern": NOT_BLANK_PATTERN },
        { "type": "array", "contains": part },
    ] });
    let request = json!({ "required": ["content"], "properties": { "role": { "const": "user" }, "content": content } });
    messages.insert("contains".to_owned(), request);
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatStreamOptions {
    /// Adds a last chunk with the token usage.
    #[serde(default)]
    pub include_usage: Option<bool>,
}

/// A validated chat completion request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChatRequest {
    pub target: TurnTarget,
    pub model: String,
    /// The system and developer messages of the client.
    pub system: String,
    pub history: Vec<ChatMessage>,
    pub request: Content,
    pub response_mode: ResponseMode,
}

impl Redact for ChatRequest {
    fn redact(&mut self, redactor: &SecretRedactor) {
        self.system.redact(redactor);
        self.request.redact(redactor);
        for message in &mut self.history {
            match message {
                ChatMessage::User(content) => content.redact(redactor),
                ChatMessage::Assistant(text) => text.redact(redactor),
            }
        }
    }
}

/// A message of the conversation so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatMessage {
    User(Content),
    Assistant(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    Full,
    Stream { usage: IncludeUsage },
}

/// Selects whether a stream ends with the token usage.
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
            let content = parse_content(message.content)?;
            match message.role.as_str() {
                "system" | "developer" | "user" | "assistant" if content.is_empty() => {}
                "system" | "developer" | "assistant" if !content.attachments.is_empty() => {
                    return Err(ApiError::bad_request(
                        "only messages of the user may have images and files",
                        "send them in a message with the role user",
                    ));
                }
                "system" | "developer" => append_paragraph(&mut system, &content.text),
                "user" => match history.last_mut() {
                    Some(ChatMessage::User(previous)) => previous.append(content),
                    _ => history.push(ChatMessage::User(content)),
                },
                "assistant" => history.push(ChatMessage::Assistant(content.text)),
                role => return Err(unsupported_role(role)),
            }
        }
        let Some(ChatMessage::User(mut request)) = history.pop() else {
            return Err(ApiError::bad_request(
                "the last message must be from the user and not empty",
                "end `messages` with {\"role\": \"user\", \"content\": \"…\"}",
            ));
        };
        Attachment::check_all(&request.attachments).map_err(bad_attachment)?;
        if request.text.is_empty() {
            request.push_paragraph(ATTACHMENTS_ONLY_REQUEST);
        }
        let target = turn_target(&model, team)?;
        let usage = body
            .stream_options
            .and_then(|Object(options)| options.include_usage)
            .unwrap_or(false);
        let usage = if usage {
            IncludeUsage::Yes
        } else {
            IncludeUsage::No
        };
        let response_mode = if body.stream.unwrap_or(false) {
            ResponseMode::Stream { usage }
        } else {
            ResponseMode::Full
        };
        Ok(Self {
            target,
            model,
            system,
            history,
            request,
            response_mode,
        })
    }

    /// Returns the first request of the conversation.
    pub fn first_request(&self) -> &str {
        let first = self.history.iter().find_map(|message| match message {
            ChatMessage::User(content) if content.text.is_empty() => Some(ATTACHMENTS_ONLY_REQUEST),
            ChatMessage::User(content) => Some(content.text.as_str()),
            ChatMessage::Assistant(_) => None,
        });
        first.unwrap_or(&self.request.text)
    }
}

fn reject_unsupported(body: &ChatBody) -> Result<(), ApiError> {
    let is_set = |list: &Option<Vec<Value>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if is_set(&body.tools) || is_set(&body.functions) {
        return Err(ApiError::bad_request(
            "client tools are not supported: the team uses its own",
            "omit `tools` and `functions`",
        ));
    }
    if body.n.is_some_and(|n| n != 1.0) {
        return Err(ApiError::bad_request(
            "only one answer per request is supported",
            "omit `n`",
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
        .unwrap_or_else(|| format!("available models: {}", names.join(", ")));
    let message = format!("unknown model `{model}`");
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message, hint)
}

fn unsupported_role(role: &str) -> ApiError {
    let role: String = role.chars().take(100).collect();
    ApiError::bad_request(
        format!("messages with the role `{role}` are not supported"),
        "use the roles system, developer, user and assistant",
    )
}

/// Returns the content of a message. Text around attachments stays as it is, as they have positions
/// in it.
fn parse_content(content: Option<MessageContent>) -> Result<Content, ApiError> {
    match content {
        None => Ok(Content::default()),
        Some(MessageContent::Text(text)) => Ok(text.trim().into()),
        Some(MessageContent::Parts(parts)) => {
            let mut content = Content::default();
            for Object(part) in parts {
                match (part.kind.as_str(), part.text, part.image_url, part.file) {
                    ("text", Some(text), ..) => content.push_paragraph(text.trim()),
                    ("image_url", _, Some(Object(image)), _) => {
                        content.attach(parse_image(&image.url)?);
                    }
                    ("file", _, _, Some(Object(file))) => content.attach(parse_file(&file)?),
                    (kind, ..) => return Err(unsupported_part(kind)),
                }
            }
            if content.attachments.is_empty() {
                return Ok(content.text.trim().into());
            }
            Ok(content)
        }
    }
}

fn parse_image(url: &str) -> Result<Attachment, ApiError> {
    match Attachment::from_data_url(url, "image") {
        Some(image) => image.map_err(bad_attachment),
        None => Err(ApiError::bad_request(
            "images are not fetched from other addresses",
            "send the image as a data URL: `data:image/png;base64,…`",
        )),
    }
}

fn parse_file(file: &FileBody) -> Result<Attachment, ApiError> {
    let name = file.filename.as_deref().unwrap_or("file");
    let parsed = Attachment::from_data_url(&file.file_data, name)
        .unwrap_or_else(|| Attachment::from_base64(&file.file_data, name, None));
    parsed.map_err(bad_attachment)
}

fn unsupported_part(kind: &str) -> ApiError {
    let kind: String = kind.chars().take(100).collect();
    ApiError::bad_request(
        format!("content parts of the type `{kind}` are not supported, or lack the field `{kind}`"),
        "send parts of the types `text`, `image_url` and `file`",
    )
}

fn append_paragraph(text: &mut String, paragraph: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}
