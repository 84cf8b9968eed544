//! The dialect of Anthropic's Messages API.

mod decode;

use lango_domain::model::{Message, ModelRequest, Thought, ToolCall, ToolCallResult};
use lango_domain::{Attachment, Content, ContentPart};
use serde_json::{Value, json};

use crate::dialect::{ModelEndpoint, WireRequest};
// Anthropic accepts only name characters in call ids.
use crate::tool_names::wire_name;

pub(crate) use decode::decoder;

/// The API version sent with every request.
const API_VERSION: &str = "2023-06-01";

pub(crate) fn encode(request: &ModelRequest, endpoint: &ModelEndpoint) -> WireRequest {
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({ "name": wire_name(&tool.name), "description": tool.description, "input_schema": tool.parameters }))
        .collect();
    // Stable parts come first, so that the prefix up to the system prompt can be cached.
    let mut body = json!({ "model": endpoint.model, "max_tokens": endpoint.max_output_tokens, "stream": true });
    if !tools.is_empty() {
        body["tools"] = Value::Array(tools);
    }
    body["system"] = json!([{ "type": "text", "text": &*request.system, "cache_control": { "type": "ephemeral" } }]);
    body["messages"] = messages(request, &endpoint.provider).into();
    WireRequest {
        url: format!(
            "{}/v1/messages",
            endpoint
                .base_url
                .trim_end_matches('/')
                .trim_end_matches("/v1")
        ),
        headers: vec![("anthropic-version", API_VERSION.to_owned())],
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

/// Returns the messages with alternating roles: adjacent blocks of one role are merged. The last
/// block is a second cache breakpoint, so that a session is not processed again for each request.
fn messages(request: &ModelRequest, provider: &str) -> Vec<Value> {
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            Message::User(content) => ("user", content_blocks(content)),
            Message::Assistant {
                thoughts,
                text,
                calls,
            } => (
                "assistant",
                assistant_blocks(provider, thoughts, text, calls),
            ),
            Message::Results(results) => ("user", results.iter().map(result_block).collect()),
        };
        match turns.last_mut() {
            Some((last, merged)) if *last == role => merged.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    if let Some(last) = turns.last_mut().and_then(|(_, blocks)| blocks.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    let non_empty = turns.into_iter().filter(|(_, blocks)| !blocks.is_empty());
    non_empty
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn assistant_blocks(
    provider: &str,
    thoughts: &[Thought],
    text: &str,
    calls: &[ToolCall],
) -> Vec<Value> {
    // The API rejects thoughts without a seal and thoughts of other providers.
    let sealed = thoughts
        .iter()
        .filter(|thought| thought.provider == provider)
        .filter_map(|thought| thought.seal.clone());
    let tool_uses = calls.iter().map(|call| {
        let input = if call.arguments.is_object() {
            call.arguments.clone()
        } else {
            json!({ "said": call.arguments })
        };
        json!({ "type": "tool_use", "id": wire_name(call.id.as_str()), "name": wire_name(&call.name), "input": input })
    });
    sealed.chain(text_block(text)).chain(tool_uses).collect()
}

fn result_block(result: &ToolCallResult) -> Value {
    let content = match result.content.attachments.is_empty() {
        true => Value::from(result.content.text.as_str()),
        false => content_blocks(&result.content).into(),
    };
    json!({ "type": "tool_result", "tool_use_id": wire_name(result.id.as_str()), "content": content, "is_error": !result.ok })
}

fn content_blocks(content: &Content) -> Vec<Value> {
    let source = |attachment: &Attachment| json!({ "type": "base64", "media_type": attachment.media_type, "data": attachment.base64() });
    let block = |part| match part {
        ContentPart::Text(text) => text_block(text),
        ContentPart::Image(image) => Some(json!({ "type": "image", "source": source(image) })),
        ContentPart::File(file) => {
            Some(json!({ "type": "document", "source": source(file), "title": file.name }))
        }
    };
    content.parts().into_iter().filter_map(block).collect()
}

/// Returns a text block, or none for blank text: the API rejects empty blocks.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}
