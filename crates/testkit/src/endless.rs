//! Endless replies: everything that a provider can send without stopping, by dialect (B105).

use lango_domain::reply_limits::Excess;
use serde_json::{Value, json};

/// A reply that continues as long as the client reads.
#[derive(Clone, Copy, Debug)]
pub struct EndlessReply {
    /// The part of the reply that is endless.
    pub name: &'static str,
    pub status: u16,
    pub content_type: &'static str,
    /// Returns the start of the reply.
    pub prefix: fn() -> String,
    /// Returns the part that is repeated, given the number of repetitions before it.
    pub repeat: fn(usize) -> String,
    /// The expected error; `None` if the status determines it.
    pub excess: Option<Excess>,
}

/// The dialects, as settings name them.
pub const DIALECTS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// Returns everything that can be endless in a dialect.
pub fn replies(dialect: &str) -> Vec<EndlessReply> {
    let mut replies = match dialect {
        "openai" => openai(),
        "anthropic" => anthropic(),
        _ => gemini(),
    };
    replies.extend(any_dialect());
    replies
}

fn endless_stream(
    name: &'static str,
    excess: Excess,
    prefix: fn() -> String,
    repeat: fn(usize) -> String,
) -> EndlessReply {
    let content_type = "text/event-stream";
    EndlessReply {
        name,
        status: 200,
        content_type,
        prefix,
        repeat,
        excess: Some(excess),
    }
}

fn any_dialect() -> Vec<EndlessReply> {
    let line = || "data: {\"text\":\"".to_owned();
    let whole = || "{\"text\":\"".to_owned();
    let json = "application/json";
    vec![
        endless_stream("comments", Excess::Wire, String::new, |_| {
            format!(": {}\n\n", filler())
        }),
        endless_stream("a line", Excess::Event, line, |_| filler()),
        endless_stream("an event", Excess::Event, String::new, |_| {
            format!("data: {}\n", filler())
        }),
        EndlessReply {
            content_type: json,
            ..endless_stream("a whole body", Excess::Whole, whole, |_| filler())
        },
        EndlessReply {
            status: 500,
            excess: None,
            ..endless_stream("an error", Excess::Whole, whole, |_| filler())
        },
    ]
}

fn openai() -> Vec<EndlessReply> {
    fn delta(delta: &Value) -> String {
        event(&json!({ "choices": [{ "index": 0, "delta": delta }] }))
    }
    fn call(function: &Value) -> String {
        delta(&json!({ "tool_calls": [{ "index": 0, "function": function }] }))
    }
    vec![
        endless_stream("text", Excess::Text, String::new, |_| {
            delta(&json!({ "content": filler() }))
        }),
        endless_stream("thoughts", Excess::Thoughts, String::new, |_| {
            delta(&json!({ "reasoning_content": filler() }))
        }),
        endless_stream("a refusal", Excess::Text, String::new, |_| {
            delta(&json!({ "refusal": filler() }))
        }),
        endless_stream(
            "arguments",
            Excess::CallBytes,
            || call(&json!({ "name": "a", "arguments": "{\"a\":\"" })),
            |_| call(&json!({ "arguments": filler() })),
        ),
        endless_stream("calls", Excess::Calls, String::new, |_| {
            call(&json!({ "name": "a", "arguments": "{}" }))
        }),
        endless_stream("ids", Excess::CallBytes, String::new, |number| {
            delta(&json!({ "tool_calls": [{ "index": number, "id": filler().repeat(32) }] }))
        }),
        endless_stream("usage", Excess::Wire, String::new, |_| {
            event(&json!({ "choices": [], "usage": { "prompt_tokens": 1 }, "x": filler() }))
        }),
        endless_stream("empty events", Excess::Wire, String::new, |_| {
            event(&json!({ "choices": [{ "delta": {} }], "x": filler() }))
        }),
        endless_stream("values", Excess::Values, String::new, |_| {
            event(&json!({ "usage": many_values() }))
        }),
    ]
}

fn anthropic() -> Vec<EndlessReply> {
    fn start(index: usize, block: &Value) -> String {
        event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
    }
    fn delta(delta: &Value) -> String {
        event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    }
    fn whole(block: &Value) -> String {
        start(0, block) + &event(&json!({ "type": "content_block_stop", "index": 0 }))
    }
    let call = || {
        start(
            0,
            &json!({ "type": "tool_use", "id": "c", "name": "a", "input": {} }),
        )
    };
    let thinking = || {
        start(
            0,
            &json!({ "type": "thinking", "thinking": "", "signature": "" }),
        )
    };
    vec![
        endless_stream("text", Excess::Text, String::new, |_| {
            delta(&json!({ "type": "text_delta", "text": filler() }))
        }),
        endless_stream("thoughts", Excess::Thoughts, thinking, |_| {
            delta(&json!({ "type": "thinking_delta", "thinking": filler() }))
        }),
        endless_stream("a seal", Excess::Thoughts, thinking, |_| {
            delta(&json!({ "type": "signature_delta", "signature": filler() }))
        }),
        endless_stream("hidden thoughts", Excess::Thoughts, String::new, |_| {
            whole(&json!({ "type": "redacted_thinking", "data": filler() }))
        }),
        endless_stream("arguments", Excess::CallBytes, call, |_| {
            delta(&json!({ "type": "input_json_delta", "partial_json": filler() }))
        }),
        endless_stream("calls", Excess::Calls, String::new, |_| {
            whole(&json!({ "type": "tool_use", "id": "c", "name": "a", "input": {} }))
        }),
        endless_stream("blocks", Excess::OpenBlocks, String::new, |number| {
            start(number, &json!({ "type": "text", "text": "" }))
        }),
        endless_stream("usage", Excess::Wire, String::new, |_| {
            event(
                &json!({ "type": "message_delta", "delta": {}, "usage": { "output_tokens": 1 }, "x": filler() }),
            )
        }),
        endless_stream("empty events", Excess::Wire, String::new, |_| {
            event(&json!({ "type": "ping", "x": filler() }))
        }),
        endless_stream("values", Excess::Values, String::new, |number| {
            start(
                number,
                &json!({ "type": "redacted_thinking", "data": many_values() }),
            )
        }),
    ]
}

fn gemini() -> Vec<EndlessReply> {
    fn part(part: &Value) -> String {
        event(&json!({ "candidates": [{ "content": { "parts": [part] } }] }))
    }
    vec![
        endless_stream("text", Excess::Text, String::new, |_| {
            part(&json!({ "text": filler() }))
        }),
        endless_stream("thoughts", Excess::Thoughts, String::new, |_| {
            part(&json!({ "text": filler(), "thought": true }))
        }),
        endless_stream("seals", Excess::Thoughts, String::new, |_| {
            let call = json!({ "name": "a", "args": {} });
            part(&json!({ "functionCall": call, "thoughtSignature": filler().repeat(64) }))
        }),
        endless_stream("arguments", Excess::CallBytes, String::new, |_| {
            part(&json!({ "functionCall": { "name": "a", "args": { "a": filler().repeat(32) } } }))
        }),
        endless_stream("calls", Excess::Calls, String::new, |_| {
            part(&json!({ "functionCall": { "name": "a", "args": {} } }))
        }),
        endless_stream("usage", Excess::Wire, String::new, |_| {
            event(&json!({ "usageMetadata": { "promptTokenCount": 1 }, "x": filler() }))
        }),
        endless_stream("empty events", Excess::Wire, String::new, |_| {
            event(&json!({ "candidates": [], "x": filler() }))
        }),
        endless_stream("values", Excess::Values, String::new, |_| {
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

/// Returns a value whose text is small, but takes much memory when parsed.
fn many_values() -> Value {
    json!(vec![json!({ "": 0 }); 15_000])
}
