//! The dialect of Anthropic's messages.

mod decode;

use lango_domain::model::{Message, ModelRequest, Thought, ToolCall};
use serde_json::{Value, json};

use crate::dialect::{ModelEndpoint, WireRequest};
// Ids of calls have to look like names there.
use crate::tool_names::wire_name;

pub(crate) use decode::decoder;

/// The version of the API that is spoken here.
const API_VERSION: &str = "2023-06-01";

pub(crate) fn encode(request: &ModelRequest, target: &ModelEndpoint) -> WireRequest {
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({ "name": wire_name(&tool.name), "description": tool.description, "input_schema": tool.parameters }))
        .collect();
    // What stays the same comes first: tools and system prompt, up to where caching is worth it.
    let mut body =
        json!({ "model": target.model, "max_tokens": target.max_output_tokens, "stream": true });
    if !tools.is_empty() {
        body["tools"] = Value::Array(tools);
    }
    body["system"] = json!([{ "type": "text", "text": &*request.system, "cache_control": { "type": "ephemeral" } }]);
    body["messages"] = messages(request, &target.provider).into();
    WireRequest {
        url: format!(
            "{}/v1/messages",
            target
                .base_url
                .trim_end_matches('/')
                .trim_end_matches("/v1")
        ),
        headers: vec![("anthropic-version", API_VERSION.to_owned())],
        body: serde_json::to_vec(&body).unwrap_or_default(),
    }
}

/// Turns alternate: what follows each other from one side is one message. The last block is a second place to cache up
/// to, so that a conversation is not read anew each time.
fn messages(request: &ModelRequest, provider: &str) -> Vec<Value> {
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            Message::User(text) => ("user", text_block(text).into_iter().collect()),
            Message::Assistant {
                thoughts,
                text,
                calls,
            } => (
                "assistant",
                assistant_blocks(provider, thoughts, text, calls),
            ),
            Message::Results(results) => {
                let block = |result: &lango_domain::model::ToolCallResult| json!({ "type": "tool_result", "tool_use_id": wire_name(result.id.as_str()), "content": result.content, "is_error": !result.ok });
                ("user", results.iter().map(block).collect())
            }
        };
        match turns.last_mut() {
            Some((last, so_far)) if *last == role => so_far.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    if let Some(last) = turns.last_mut().and_then(|(_, blocks)| blocks.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    let whole = turns.into_iter().filter(|(_, blocks)| !blocks.is_empty());
    whole
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn assistant_blocks(
    provider: &str,
    thoughts: &[Thought],
    text: &str,
    calls: &[ToolCall],
) -> Vec<Value> {
    // A thought without its seal, or somebody else's, would be refused.
    let own = thoughts
        .iter()
        .filter(|thought| thought.provider == provider)
        .filter_map(|thought| thought.seal.clone());
    let called = calls.iter().map(|call| {
        let input = if call.arguments.is_object() {
            call.arguments.clone()
        } else {
            json!({ "said": call.arguments })
        };
        json!({ "type": "tool_use", "id": wire_name(call.id.as_str()), "name": wire_name(&call.name), "input": input })
    });
    own.chain(text_block(text)).chain(called).collect()
}

/// An empty block is refused there.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}
