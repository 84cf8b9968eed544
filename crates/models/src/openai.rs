//! The dialect of OpenAI's chat completions, which most servers support.

mod decode;

use std::borrow::Cow;

use lango_domain::model::{Message, ModelRequest, ToolCall, ToolCallResult};
use lango_domain::{Attachment, Content, ContentPart};
use serde::Serialize;
use serde_json::Value;

use crate::dialect::{ModelEndpoint, WireRequest};
use crate::tool_names::wire_name;

pub(crate) use decode::decoder;

pub(crate) fn encode(request: &ModelRequest, endpoint: &ModelEndpoint) -> WireRequest {
    let body = ChatCompletionBody {
        model: &endpoint.model,
        tools: request.tools.iter().map(Tool::from_declaration).collect(),
        messages: messages(request),
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
    };
    WireRequest {
        url: format!(
            "{}/chat/completions",
            endpoint.base_url.trim_end_matches('/')
        ),
        headers: Vec::new(),
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

/// The request body. Stable fields come first, so that providers can cache the prefix.
#[derive(Serialize)]
struct ChatCompletionBody<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Tool<'a> {
    fn from_declaration(tool: &'a lango_domain::model::ToolDeclaration) -> Self {
        let (name, description) = (wire_name(&tool.name), tool.description.as_str());
        Self {
            r#type: "function",
            function: Function {
                name,
                description,
                parameters: &tool.parameters,
            },
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

/// Text alone is a string, because many servers accept nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
    File { file: WireFile<'a> },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireFile<'a> {
    filename: &'a str,
    file_data: String,
}

impl<'a> UserContent<'a> {
    fn new(content: &'a Content) -> Self {
        if content.attachments.is_empty() {
            return Self::Text(Cow::Borrowed(&content.text));
        }
        Self::Parts(content.parts().into_iter().map(wire_part).collect())
    }

    /// Appends content, as a paragraph of its own where both are text.
    fn append(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::Text(text), Self::Text(more)) => {
                let text = text.to_mut();
                text.push_str("\n\n");
                text.push_str(&more);
            }
            (Self::Parts(parts), more) => parts.extend(more.into_parts()),
            (Self::Text(text), Self::Parts(more)) => {
                let text = std::mem::take(text);
                let parts = std::iter::once(WirePart::Text { text }).chain(more);
                *self = Self::Parts(parts.collect());
            }
        }
    }

    fn into_parts(self) -> Vec<WirePart<'a>> {
        match self {
            Self::Text(text) => vec![WirePart::Text { text }],
            Self::Parts(parts) => parts,
        }
    }
}

fn wire_part(part: ContentPart<'_>) -> WirePart<'_> {
    let data = |attachment: &Attachment| attachment.data_url().unwrap_or_default();
    match part {
        ContentPart::Text(text) => WirePart::Text {
            text: Cow::Borrowed(text),
        },
        ContentPart::Image(image) => WirePart::ImageUrl {
            image_url: ImageUrl { url: data(image) },
        },
        ContentPart::File(file) => WirePart::File {
            file: WireFile {
                filename: &file.name,
                file_data: data(file),
            },
        },
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

/// Returns the messages; adjacent user messages are merged, because many chat templates require
/// alternating roles.
fn messages(request: &ModelRequest) -> Vec<WireMessage<'_>> {
    let mut wire = vec![WireMessage::System {
        content: &request.system,
    }];
    for message in &request.messages {
        match message {
            Message::User(content) => push_user(&mut wire, UserContent::new(content)),
            Message::Assistant { text, calls, .. } => {
                let content =
                    Some(text.as_str()).filter(|text| !text.is_empty() || calls.is_empty());
                wire.push(WireMessage::Assistant {
                    content,
                    tool_calls: calls.iter().map(wire_call).collect(),
                });
            }
            Message::Results(results) => {
                wire.extend(results.iter().map(|result| WireMessage::Tool {
                    tool_call_id: result.id.as_str(),
                    content: &result.content.text,
                }));
                let attached = results.iter().flat_map(attached_parts).collect::<Vec<_>>();
                if !attached.is_empty() {
                    push_user(&mut wire, UserContent::Parts(attached));
                }
            }
        }
    }
    wire
}

fn push_user<'a>(wire: &mut Vec<WireMessage<'a>>, more: UserContent<'a>) {
    match wire.last_mut() {
        Some(WireMessage::User { content }) => content.append(more),
        _ => wire.push(WireMessage::User { content: more }),
    }
}

/// Returns the attachments of a result as parts of a user message: tool messages are text only.
fn attached_parts(result: &ToolCallResult) -> Vec<WirePart<'_>> {
    if result.content.attachments.is_empty() {
        return Vec::new();
    }
    let text = Cow::Owned(format!("[attached to the result of {}]", result.name));
    let parts = result.content.parts().into_iter().map(wire_part);
    let attached = parts.filter(|part| !matches!(part, WirePart::Text { .. }));
    std::iter::once(WirePart::Text { text })
        .chain(attached)
        .collect()
}

fn wire_call(call: &ToolCall) -> WireCall<'_> {
    let arguments = match &call.arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let function = CalledFunction {
        name: wire_name(&call.name),
        arguments,
    };
    WireCall {
        id: call.id.as_str(),
        r#type: "function",
        function,
    }
}
