//! Replies that never end: for each dialect, everything that a provider can send without stopping (B105).

use lango_domain::reply_limits::Excess;
use serde_json::{Value, json};

/// A reply that goes on for as long as somebody reads it.
#[derive(Clone, Copy, Debug)]
pub struct Endless {
    /// What has no end.
    pub name: &'static str,
    pub status: u16,
    pub content_type: &'static str,
    /// What comes first.
    pub begin: fn() -> String,
    /// What comes again and again, given how often it came before.
    pub again: fn(usize) -> String,
    /// What is to be refused; nothing where the status says enough.
    pub excess: Option<Excess>,
}

/// The dialects, as settings name them.
pub const DIALECTS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// Everything that can be endless in a dialect.
pub fn replies(dialect: &str) -> Vec<Endless> {
    let mut replies = match dialect {
        "openai" => openai(),
        "anthropic" => anthropic(),
        _ => gemini(),
    };
    replies.extend(in_any_dialect());
    replies
}

fn streamed(
    name: &'static str,
    excess: Excess,
    begin: fn() -> String,
    again: fn(usize) -> String,
) -> Endless {
    let content_type = "text/event-stream";
    Endless { name, status: 200, content_type, begin, again, excess: Some(excess) }
}

fn in_any_dialect() -> Vec<Endless> {
    let line = || "data: {\"text\":\"".to_owned();
    let whole = || "{\"text\":\"".to_owned();
    let json = "application/json";
    vec![
        streamed("comments", Excess::Wire, String::new, |_| format!(": {}\n\n", filler())),
        streamed("a line", Excess::Event, line, |_| filler()),
        streamed("an event", Excess::Event, String::new, |_| format!("data: {}\n", filler())),
        Endless { content_type: json, ..streamed("a whole body", Excess::Whole, whole, |_| filler()) },
        Endless { status: 500, excess: None, ..streamed("an error", Excess::Whole, whole, |_| filler()) },
    ]
}

fn openai() -> Vec<Endless> {
    fn delta(delta: &Value) -> String {
        event(&json!({ "choices": [{ "index": 0, "delta": delta }] }))
    }
    fn call(function: &Value) -> String {
        delta(&json!({ "tool_calls": [{ "index": 0, "function": function }] }))
    }
    vec![
        streamed("text", Excess::Text, String::new, |_| delta(&json!({ "content": filler() }))),
        streamed("thoughts", Excess::Thoughts, String::new, |_| {
            delta(&json!({ "reasoning_content": filler() }))
        }),
        streamed("a refusal", Excess::Text, String::new, |_| delta(&json!({ "refusal": filler() }))),
        streamed(
            "arguments",
            Excess::CallBytes,
            || call(&json!({ "name": "a", "arguments": "{\"a\":\"" })),
            |_| call(&json!({ "arguments": filler() })),
        ),
        streamed("calls", Excess::Calls, String::new, |_| call(&json!({ "name": "a", "arguments": "{}" }))),
        streamed("ids", Excess::CallBytes, String::new, |number| {
            delta(&json!({ "tool_calls": [{ "index": number, "id": filler().repeat(32) }] }))
        }),
        streamed("usage", Excess::Wire, String::new, |_| {
            event(&json!({ "choices": [], "usage": { "prompt_tokens": 1 }, "x": filler() }))
        }),
        streamed("empty events", Excess::Wire, String::new, |_| {
            event(&json!({ "choices": [{ "delta": {} }], "x": filler() }))
        }),
        streamed("values", Excess::Values, String::new, |_| event(&json!({ "usage": many_values() }))),
    ]
}

fn anthropic() -> Vec<Endless> {
    fn start(index: usize, block: &Value) -> String {
        event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
    }
    fn delta(delta: &Value) -> String {
        event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    }
    fn whole(block: &Value) -> String {
        start(0, block) + &event(&json!({ "type": "content_block_stop", "index": 0 }))
    }
    let call = || start(0, &json!({ "type": "tool_use", "id": "c", "name": "a", "input": {} }));
    let thinking = || start(0, &json!({ "type": "thinking", "thinking": "", "signature": "" }));
    vec![
        streamed("text", Excess::Text, String::new, |_| {
            delta(&json!({ "type": "text_delta", "text": filler() }))
        }),
        streamed("thoughts", Excess::Thoughts, thinking, |_| {
            delta(&json!({ "type": "thinking_delta", "thinking": filler() }))
        }),
        streamed("a seal", Excess::Thoughts, thinking, |_| {
            delta(&json!({ "type": "signature_delta", "signature": filler() }))
        }),
        streamed("hidden thoughts", Excess::Thoughts, String::new, |_| {
            whole(&json!({ "type": "redacted_thinking", "data": filler() }))
        }),
        streamed("arguments", Excess::CallBytes, call, |_| {
            delta(&json!({ "type": "input_json_delta", "partial_json": filler() }))
        }),
        streamed("calls", Excess::Calls, String::new, |_| {
            whole(&json!({ "type": "tool_use", "id": "c", "name": "a", "input": {} }))
        }),
        streamed("blocks", Excess::OpenBlocks, String::new, |number| {
            start(number, &json!({ "type": "text", "text": "" }))
        }),
        streamed("usage", Excess::Wire, String::new, |_| {
            event(
                &json!({ "type": "message_delta", "delta": {}, "usage": { "output_tokens": 1 }, "x": filler() }),
            )
        }),
        streamed("empty events", Excess::Wire, String::new, |_| {
            event(&json!({ "type": "ping", "x": filler() }))
        }),
        streamed("values", Excess::Values, String::new, |number| {
            start(number, &json!({ "type": "redacted_thinking", "data": many_values() }))
        }),
    ]
}

fn gemini() -> Vec<Endless> {
    fn part(part: &Value) -> String {
        event(&json!({ "candidates": [{ "content": { "parts": [part] } }] }))
    }
    vec![
        streamed("text", Excess::Text, String::new, |_| part(&json!({ "text": filler() }))),
        streamed("thoughts", Excess::Thoughts, String::new, |_| {
            part(&json!({ "text": filler(), "thought": true }))
        }),
        streamed("seals", Excess::Thoughts, String::new, |_| {
            let call = json!({ "name": "a", "args": {} });
            part(&json!({ "functionCall": call, "thoughtSignature": filler().repeat(64) }))
        }),
        streamed("arguments", Excess::CallBytes, String::new, |_| {
            part(&json!({ "functionCall": { "name": "a", "args": { "a": filler().repeat(32) } } }))
        }),
        streamed("calls", Excess::Calls, String::new, |_| {
            part(&json!({ "functionCall": { "name": "a", "args": {} } }))
        }),
        streamed("usage", Excess::Wire, String::new, |_| {
            event(&json!({ "usageMetadata": { "promptTokenCount": 1 }, "x": filler() }))
        }),
        streamed("empty events", Excess::Wire, String::new, |_| {
            event(&json!({ "candidates": [], "x": filler() }))
        }),
        streamed("values", Excess::Values, String::new, |_| {
            part(&json!({ "functionCall": { "name": "a", "args": many_values() } }))
        }),
    ]
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn filler() -> String {
    "x".repeat(1024)
}

/// A small text that takes much memory once it is read.
fn many_values() -> Value {
    json!(vec![json!({ "": 0 }); 15_000])
}
