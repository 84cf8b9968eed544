//! A remote agent on loopback with scripted replies.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The reply to one request.
pub enum ServerReply {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Events, then the connection closes.
    Events(Vec<Value>),
    /// Events, then silence while the connection stays open.
    EventsThenSilence(Vec<Value>),
    /// Events, then the connection breaks in the middle of one.
    EventsThenBreak(Vec<Value>),
    /// The same event repeatedly, as long as the client reads.
    Endless(Value),
    /// One byte at a time, with this pause.
    Drip(Duration),
    /// A `content-length` of this many bytes, and spaces as long as the client reads. 0 sends no
    /// length.
    Flood(u64),
    Hang,
}

impl ServerReply {
    pub fn json(body: &Value) -> Self {
        Self::status(200, body)
    }

    pub fn status(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self::Answer {
            status,
            headers,
            body: body.to_string().into_bytes(),
        }
    }

    pub fn redirect(to: String) -> Self {
        Self::Answer {
            status: 302,
            headers: vec![("location", to)],
            body: Vec::new(),
        }
    }

    pub fn rpc(result: Value) -> Self {
        Self::json(&rpc(result))
    }
}

pub fn rpc(result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": result })
}

/// A request received by the server.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    pub path: String,
    pub head: String,
    pub body: Value,
}

impl ServerRequest {
    pub fn is_card(&self) -> bool {
        self.path.ends_with("/.well-known/agent-card.json")
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    }

    /// Returns the JSON-RPC method.
    pub fn rpc_method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// A test server; it runs until the process ends.
pub struct Server {
    port: u16,
    received: Arc<Mutex<Vec<ServerRequest>>>,
}

type Decide = dyn Fn(&ServerRequest, &str) -> ServerReply + Send + Sync;

impl Server {
    /// Starts a server that replies with the result of `decide`, which gets the request and the
    /// server's origin.
    pub fn start(
        decide: impl Fn(&ServerRequest, &str) -> ServerReply + Send + Sync + 'static,
    ) -> Self {
        let decide: Arc<Decide> = Arc::new(decide);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, decide) = (Arc::clone(&log), Arc::clone(&decide));
                thread::spawn(move || serve(stream, &*decide, &log, port));
            }
        });
        Self { port, received }
    }

    /// Starts a remote agent of one binding and version; `decide` replies to all requests except
    /// the card's.
    pub fn remote_agent(
        binding: &'static str,
        version: &'static str,
        streaming: bool,
        decide: impl Fn(&ServerRequest) -> ServerReply + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |request, origin| match request.is_card() {
            true => ServerReply::json(&card(origin, binding, version, streaming)),
            false => decide(request),
        })
    }

    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn received(&self) -> Vec<ServerRequest> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the requests that are not for the card.
    pub fn task_requests(&self) -> Vec<ServerRequest> {
        self.received()
            .into_iter()
            .filter(|request| !request.path.contains("/.well-known/"))
            .collect()
    }
}

pub fn card(origin: &str, binding: &str, version: &str, streaming: bool) -> Value {
    let mut card = json!({
        "name": "Weather", "description": "Knows the weather.", "version": "1",
        "capabilities": { "streaming": streaming },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "forecast", "name": "Forecast", "description": "Tells it.", "tags": ["weather"] }],
    });
    let url = format!("{origin}/a2a");
    if version == "1.0" {
        card["supportedInterfaces"] =
            json!([{ "url": url, "protocolBinding": binding, "protocolVersion": version }]);
    } else {
        card["protocolVersion"] = json!(version);
        card["url"] = json!(url);
        card["preferredTransport"] = json!(binding);
    }
    card
}

const SSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn serve(
    mut stream: TcpStream,
    decide: &Decide,
    log: &Mutex<Vec<ServerRequest>>,
    port: u16,
) -> Option<()> {
    let request = read_request(&mut stream)?;
    log.lock().unwrap().push(request.clone());
    let reply = decide(&request, &format!("http://127.0.0.1:{port}"));
    write_reply(&mut stream, reply)?;
    stream.shutdown(Shutdown::Both).ok()
}

fn write_reply(stream: &mut TcpStream, reply: ServerReply) -> Option<()> {
    let mut write = |text: String| stream.write_all(text.as_bytes()).ok();
    match reply {
        ServerReply::Answer {
            status,
            headers,
            body,
        } => write_answer(stream, status, &headers, &body)?,
        ServerReply::Events(events) => write(format!("{SSE_HEAD}{}", sse_data(&events)))?,
        ServerReply::EventsThenSilence(events) => {
            write(format!("{SSE_HEAD}{}", sse_data(&events)))?;
            thread::sleep(Duration::from_secs(120));
        }
        ServerReply::EventsThenBreak(events) => {
            let head = SSE_HEAD.replace("connection: close", "content-length: 1000000");
            write(format!("{head}{}data: {{\"cut", sse_data(&events)))?;
        }
        ServerReply::Endless(event) => {
            write(SSE_HEAD.to_owned())?;
            let block = sse_data(&vec![event; 50]);
            while stream.write_all(block.as_bytes()).is_ok() {}
        }
        ServerReply::Drip(pause) => {
            write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_owned())?;
            while stream.write_all(b" ").is_ok() {
                thread::sleep(pause);
            }
        }
        ServerReply::Flood(length) => {
            write(match length {
                0 => "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned(),
                length => format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"),
            })?;
            while stream.write_all(&[b' '; 65536]).is_ok() {}
        }
        ServerReply::Hang => thread::sleep(Duration::from_secs(120)),
    }
    Some(())
}

fn write_answer(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &[u8],
) -> Option<()> {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()
}

fn sse_data(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

fn read_request(stream: &mut TcpStream) -> Option<ServerRequest> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 65536]);
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
        while bytes.len() < end + 4 + length.unwrap_or(0) {
            let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&buffer[..read]);
        }
        let mut tokens = head.split_whitespace();
        let path = tokens.nth(1)?.to_owned();
        return Some(ServerRequest {
            path,
            body: serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default(),
            head,
        });
    }
}
