//! The dialect of Gemini's `generateContent` API.

mod decode;

use lango_domain::model::{Message, ModelRequest, Thought, ToolCall, ToolCallResult};
use lango_domain::{Attachment, Content, ContentPart};
use serde_json::{Value, json};

use crate::dialect::{ModelEndpoint, WireRequest};
use crate::schema::to_gemini_schema;
use crate::tool_names::wire_name;

pub(crate) use decode::decoder;

pub(crate) fn encode(request: &ModelRequest, endpoint: &ModelEndpoint) -> WireRequest {
    let declarations: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({ "name": wire_name(&tool.name), "description": tool.description, "parameters": to_gemini_schema(&tool.parameters) })
        })
        .collect();
    let mut body = json!({ "systemInstruction": { "parts": [{ "text": &*request.system }] } });
    if !declarations.is_empty() {
        body["tools"] = json!([{ "functionDeclarations": declarations }]);
    }
    body["contents"] = contents(request, &endpoint.provider).into();
    let base = endpoint.base_url.trim_end_matches('/');
    WireRequest {
        url: format!(
            "{base}/v1beta/models/{}:streamGenerateContent?alt=sse",
            endpoint.model
        ),
        headers: Vec::new(),
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

/// Returns the messages with alternating roles; all results of one reply are in one message.
fn contents(request: &ModelRequest, provider: &str) -> Vec<Value> {
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, parts) = match message {
            Message::User(content) if content.attachments.is_empty() => {
                ("user", vec![json!({ "text": content.text })])
            }
            Message::User(content) => ("user", content_parts(content)),
            Message::Assistant {
                thoughts,
                text,
                calls,
            } => ("model", model_parts(provider, thoughts, text, calls)),
            Message::Results(results) => {
                let part = |result: &ToolCallResult| {
                    let key = if result.ok { "output" } else { "error" };
                    json!({ "functionResponse": { "name": wire_name(&result.name), "response": { key: result.content.text } } })
                };
                // Responses hold no images, so these follow behind all of them.
                let attached = results
                    .iter()
                    .flat_map(|result| attached_parts(&result.content));
                ("user", results.iter().map(part).chain(attached).collect())
            }
        };
        match turns.last_mut() {
            Some((last, merged)) if *last == role => merged.extend(parts),
            _ => turns.push((role, parts)),
        }
    }
    turns
        .into_iter()
        .map(|(role, parts)| json!({ "role": role, "parts": parts }))
        .collect()
}

fn content_parts(content: &Content) -> Vec<Value> {
    let part = |part| match part {
        ContentPart::Text(text) => json!({ "text": text }),
        ContentPart::Image(attachment) | ContentPart::File(attachment) => inline_data(attachment),
    };
    content.parts().into_iter().map(part).collect()
}

fn attached_parts(content: &Content) -> impl Iterator<Item = Value> {
    content.attachments.iter().map(inline_data)
}

fn inline_data(attachment: &Attachment) -> Value {
    json!({ "inlineData": { "mimeType": attachment.media_type, "data": attachment.base64() } })
}

fn model_parts(provider: &str, thoughts: &[Thought], text: &str, calls: &[ToolCall]) -> Vec<Value> {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({ "text": text }));
    }
    for call in calls {
        let args = if call.arguments.is_object() {
            call.arguments.clone()
        } else {
            json!({ "said": call.arguments })
        };
        let mut part = json!({ "functionCall": { "name": wire_name(&call.name), "args": args } });
        let belongs_to_call = |thought: &&Thought| {
            thought.provider == provider && thought.call.as_ref() == Some(&call.id)
        };
        if let Some(seal) = thoughts
            .iter()
            .find(belongs_to_call)
            .and_then(|thought| thought.seal.clone())
        {
            part["thoughtSignature"] = seal;
        }
        parts.push(part);
    }
    if parts.is_empty() {
        parts.push(json!({ "text": "" }));
    }
    parts
}
