//! The dialect of OpenAI's chat completions, which most servers support.

mod decode;

use std::borrow::Cow;

use lango_domain::model::{Message, ModelRequest, ToolCall};
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
        content: Cow<'a, str>,
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
            Message::User(text) => match wire.last_mut() {
                Some(WireMessage::User { content }) => {
                    let content = content.to_mut();
                    content.push_str("\n\n");
                    content.push_str(text);
                }
                _ => wire.push(WireMessage::User {
                    content: Cow::Borrowed(text),
                }),
            },
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
                    content: &result.content,
                }))
            }
        }
    }
    wire
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
