//! A model server on loopback that sends scripted replies and failures.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::endless::EndlessReply;

/// The reply to one request.
#[derive(Clone, Debug)]
pub enum ServerReply {
    /// A status with headers and a body.
    Status {
        code: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// A stream, chunk by chunk; then the connection is closed.
    Stream(Vec<Vec<u8>>),
    /// A stream that stops without being closed.
    StreamThenHang(Vec<Vec<u8>>),
    /// A response with fewer bytes than announced.
    Reset(Vec<u8>),
    /// A reply that continues as long as the client reads.
    Endless(EndlessReply),
    /// No response.
    Hang,
}

impl ServerReply {
    pub fn status(code: u16, body: &str) -> Self {
        Self::Status {
            code,
            headers: Vec::new(),
            body: body.to_owned(),
        }
    }

    /// Returns a redirect to another address.
    pub fn redirect(to: String) -> Self {
        Self::Status {
            code: 302,
            headers: vec![("location", to)],
            body: String::new(),
        }
    }

    /// Returns a page with its media type.
    pub fn page(media_type: &str, body: String) -> Self {
        Self::Status {
            code: 200,
            headers: vec![("content-type", media_type.to_owned())],
            body,
        }
    }

    /// Returns a text reply of an OpenAI-compatible server.
    pub fn text(text: &str) -> Self {
        Self::chunks(&[json!({ "content": text })], "stop")
    }

    /// Returns a call of `tool` with these arguments.
    pub fn tool_call(tool: &str, arguments: &Value) -> Self {
        let function = json!({ "name": tool, "arguments": arguments.to_string() });
        Self::chunks(
            &[json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": function }] })],
            "tool_calls",
        )
    }

    /// Returns a stream of deltas, a finish reason and usage.
    pub fn chunks(deltas: &[Value], finish: &str) -> Self {
        Self::Stream(vec![Self::sse_bytes(deltas, finish)])
    }

    /// Returns the bytes of such a stream.
    pub fn sse_bytes(deltas: &[Value], finish: &str) -> Vec<u8> {
        let mut text = String::new();
        for delta in deltas {
            text += &format!(
                "data: {}\n\n",
                json!({ "choices": [{ "index": 0, "delta": delta }] })
            );
        }
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": { "cached_tokens": 60 } });
        text += &format!(
            "data: {}\n\n",
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] })
        );
        text += &format!(
            "data: {}\n\ndata: [DONE]\n\n",
            json!({ "choices": [], "usage": usage })
        );
        text.into_bytes()
    }
}

/// A scripted model server. It runs until the test process ends.
pub struct ModelServer {
    port: u16,
    traffic: Arc<Traffic>,
}

/// The requests received and bytes sent.
#[derive(Default)]
struct Traffic {
    requests: Mutex<Vec<ReceivedRequest>>,
    endless_bytes: AtomicU64,
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub head: String,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the path and query.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

impl ModelServer {
    /// Sends the replies in order, then repeats the last one.
    pub fn start(replies: Vec<ServerReply>) -> std::io::Result<Self> {
        Self::with_responder(move |_, number| {
            replies
                .get(number - 1)
                .or(replies.last())
                .cloned()
                .unwrap_or(ServerReply::Hang)
        })
    }

    /// Sends the replies that `respond` returns, given each request and its number, starting at 1.
    pub fn with_responder(
        respond: impl Fn(&ReceivedRequest, usize) -> ServerReply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::with_responder_at(Ipv4Addr::LOCALHOST, respond)
    }

    /// Like [`ModelServer::with_responder`], but listens on this address.
    pub fn with_responder_at(
        address: Ipv4Addr,
        respond: impl Fn(&ReceivedRequest, usize) -> ServerReply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let respond: Arc<Responder> = Arc::new(respond);
        let listener = TcpListener::bind((address, 0))?;
        let port = listener.local_addr()?.port();
        let traffic = Arc::new(Traffic::default());
        let server = Self {
            port,
            traffic: Arc::clone(&traffic),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (traffic, respond) = (Arc::clone(&traffic), Arc::clone(&respond));
                thread::spawn(move || serve(stream, &*respond, &traffic));
            }
        });
        Ok(server)
    }

    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.traffic
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the bytes of endless replies that were sent before the clients closed the connection.
    pub fn endless_bytes(&self) -> u64 {
        self.traffic.endless_bytes.load(Ordering::Relaxed)
    }
}

type Responder = dyn Fn(&ReceivedRequest, usize) -> ServerReply + Send + Sync;

fn serve(mut stream: TcpStream, respond: &Responder, traffic: &Traffic) -> Option<()> {
    let request = read_request(&mut stream)?;
    let number = {
        let mut requests = traffic
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        requests.push(request.clone());
        requests.len()
    };
    let reply = &respond(&request, number);
    const STREAM_HEAD: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    match reply {
        ServerReply::Status {
            code,
            headers,
            body,
        } => {
            let headers: String = headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n"))
                .collect();
            let head = format!(
                "HTTP/1.1 {code} X\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).ok()?;
            stream.write_all(body.as_bytes()).ok()?;
        }
        ServerReply::Stream(chunks) => write_chunks(&mut stream, STREAM_HEAD, chunks)?,
        ServerReply::StreamThenHang(chunks) => {
            write_chunks(&mut stream, STREAM_HEAD, chunks)?;
            thread::sleep(Duration::from_secs(60));
        }
        ServerReply::Reset(bytes) => {
            write_chunks(
                &mut stream,
                &format!("{STREAM_HEAD}content-length: 100000\r\n"),
                std::slice::from_ref(bytes),
            )?;
        }
        ServerReply::Endless(endless) => {
            write_endless(&mut stream, endless, &traffic.endless_bytes)?
        }
        ServerReply::Hang => thread::sleep(Duration::from_secs(60)),
    }
    stream.shutdown(Shutdown::Both).ok()
}

fn write_chunks(stream: &mut TcpStream, head: &str, chunks: &[Vec<u8>]) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    chunks
        .iter()
        .try_for_each(|chunk| stream.write_all(chunk))
        .ok()
}

/// Writes an endless reply until the client closes the connection.
fn write_endless(stream: &mut TcpStream, endless: &EndlessReply, sent: &AtomicU64) -> Option<()> {
    /// Small pieces are sent together, as by a fast server.
    const WRITE_CHUNK_BYTES: usize = 64 * 1024;
    let EndlessReply {
        status,
        content_type,
        prefix,
        repeat,
        ..
    } = endless;
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    let mut bytes = (head + &prefix()).into_bytes();
    for number in 0.. {
        bytes.extend_from_slice(repeat(number).as_bytes());
        if bytes.len() >= WRITE_CHUNK_BYTES {
            stream.write_all(&bytes).ok()?;
            sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            bytes.clear();
        }
    }
    Some(())
}

fn read_request(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse::<usize>()
                .ok()
        });
        let wanted = end + 4 + length.unwrap_or(0);
        while bytes.len() < wanted {
            let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&buffer[..read]);
        }
        return Some(ReceivedRequest {
            head,
            body: bytes[end + 4..].to_vec(),
        });
    }
}
