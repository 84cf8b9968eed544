use std::collections::BTreeMap;
use std::sync::Arc;

use lango_domain::AgentName;
use lango_domain::event::CallId;
use lango_domain::model::{
    Fragment, Message, ModelError, ModelRequest, Thought, ToolCall, ToolCallResult, ToolDeclaration,
};
use lango_domain::reply_limits::MAX_EVENT_BYTES;
use lango_models::{Dialect, ModelEndpoint, SseParser};
use serde_json::json;

pub const DIALECTS: [(Dialect, &str); 3] = [
    (Dialect::OpenAi, "openai"),
    (Dialect::Anthropic, "anthropic"),
    (Dialect::Gemini, "gemini"),
];

pub fn endpoint(provider: &str) -> ModelEndpoint {
    ModelEndpoint {
        provider: provider.into(),
        base_url: "http://model.test/".into(),
        key: None,
        model: "m-1".into(),
        headers: BTreeMap::new(),
        max_output_tokens: 8_192,
    }
}

pub fn long_name() -> String {
    format!("fs_{}", "very_".repeat(20))
}

fn tool(name: &str) -> ToolDeclaration {
    ToolDeclaration {
        name: name.into(),
        description: "Reads.".into(),
        parameters: json!({
            "type": "object",
            "$defs": { "Line": { "type": "integer" } },
            "properties": { "path": { "type": "string" }, "line": { "$ref": "#/$defs/Line" } },
            "required": ["path"],
            "additionalProperties": false
        }),
        phrases: Vec::new(),
    }
}

/// A request with all kinds of content: thoughts of several providers, parallel calls, failures,
/// adjacent messages.
pub fn request() -> ModelRequest {
    let call = |id: &str, name: &str, arguments| ToolCall {
        id: CallId::new(id),
        name: name.into(),
        arguments,
    };
    let result = |id: &str, name: &str, ok, content: &str| ToolCallResult {
        id: CallId::new(id),
        name: name.into(),
        ok,
        content: content.into(),
    };
    let thought = |provider: &str, seal, call: Option<&str>| Thought {
        provider: provider.into(),
        text: "hm".into(),
        seal: Some(seal),
        call: call.map(CallId::new),
    };
    ModelRequest {
        agent: AgentName::new("operator").unwrap(),
        system: "You work.".into(),
        tools: Arc::new([tool("fs_read"), tool(&long_name())]),
        messages: vec![
            Message::User("read both".into()),
            Message::User("<task>now</task>".into()),
            Message::Assistant {
                thoughts: vec![
                    thought(
                        "anthropic",
                        json!({ "type": "thinking", "thinking": "hm", "signature": "sig" }),
                        None,
                    ),
                    thought("gemini", json!("c2ln"), Some("c1")),
                ],
                text: "Reading.".into(),
                calls: vec![
                    call("c1", "fs_read", json!({ "path": "a" })),
                    call("c2", &long_name(), json!("{oops")),
                ],
            },
            Message::Results(vec![
                result("c1", "fs_read", true, "tea"),
                result("c2", &long_name(), false, "wrong arguments"),
            ]),
            Message::Assistant {
                thoughts: vec![],
                text: "It says tea.".into(),
                calls: vec![],
            },
            Message::User("thanks".into()),
        ],
    }
}

/// Decodes a whole stream; returns its fragments or the error that ends it.
pub fn decode(
    dialect: Dialect,
    provider: &str,
    chunks: &[&[u8]],
) -> Result<Vec<Fragment>, ModelError> {
    let mut decoder = dialect.decoder(&request(), &endpoint(provider));
    let (mut parser, mut events, mut fragments) =
        (SseParser::new(MAX_EVENT_BYTES), Vec::new(), Vec::new());
    for chunk in chunks {
        parser.feed(chunk, &mut events).map_err(invalid_stream)?;
    }
    parser.finish(&mut events).map_err(invalid_stream)?;
    for event in &events {
        decoder.decode_event(event, &mut fragments)?;
    }
    decoder.end(&mut fragments)?;
    Ok(fragments)
}

fn invalid_stream(error: impl std::fmt::Display) -> ModelError {
    ModelError::Malformed(error.to_string())
}
