//! `lango-bench model-server`: a model server that replies instantly. The root transfers, the
//! operator reads a file, then answers.

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub fn run(port: u16) -> Result<()> {
    let replies = std::sync::Arc::new(CannedReplies::new());
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", port)).await?;
            loop {
                let (stream, _) = listener.accept().await?;
                let replies = std::sync::Arc::clone(&replies);
                tokio::spawn(async move { serve(stream, &replies).await });
            }
        })
}

/// The three replies as complete HTTP responses.
struct CannedReplies {
    transfer: Vec<u8>,
    call: Vec<u8>,
    answer: Vec<u8>,
}

impl CannedReplies {
    fn new() -> Self {
        let call = |name: &str, arguments: &str| json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": { "name": name, "arguments": arguments } }] });
        Self {
            transfer: sse_response(
                &[call(
                    "transfer_to_agent",
                    r#"{"agent_name":"operator","task":"read the file"}"#,
                )],
                "tool_calls",
            ),
            call: sse_response(&[call("fs_read", r#"{"path":"notes.txt"}"#)], "tool_calls"),
            answer: sse_response(
                &[
                    json!({ "content": "The file " }),
                    json!({ "content": "says: " }),
                    json!({ "content": "contents of notes.txt" }),
                ],
                "stop",
            ),
        }
    }

    /// Selects the reply by the content of the request.
    fn select(&self, body: &[u8]) -> &[u8] {
        let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
        if has(b"\"name\":\"transfer_to_agent\"") && !has(b"\"role\":\"tool\"") {
            &self.transfer
        } else if has(b"\"role\":\"tool\"") {
            &self.answer
        } else {
            &self.call
        }
    }
}

fn sse_response(deltas: &[Value], finish: &str) -> Vec<u8> {
    let mut events = String::new();
    for delta in deltas {
        events += &format!(
            "data: {}\n\n",
            json!({ "id": "x", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
        );
    }
    events += &format!(
        "data: {}\n\n",
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] })
    );
    events += &format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({ "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 20 } })
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{events}",
        events.len()
    )
    .into_bytes()
}

async fn serve(mut stream: TcpStream, replies: &CannedReplies) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut buffer = Vec::with_capacity(64 * 1024);
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        };
        let length = content_length(&buffer[..head]);
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        }
        stream
            .write_all(replies.select(&buffer[head..head + length]))
            .await
            .ok()?;
        buffer.drain(..head + length);
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_lowercase();
    head.lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0)
}
