//! A small HTTP client that sends exactly the bytes of a test.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Returns the error code.
    pub fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    }
}

/// A request that may be malformed.
#[derive(Clone)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

impl Request {
    pub fn get(path: &str) -> Self {
        Self {
            method: "GET",
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub fn post(path: &str, body: &Value) -> Self {
        let body = Some(body.to_string().into_bytes());
        let request = Self {
            method: "POST",
            path: path.to_owned(),
            headers: Vec::new(),
            body,
        };
        request.with("content-type", "application/json")
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(existing, _)| existing != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn with_token(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nconnection: close\r\n",
            self.method, self.path
        );
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head += &format!("host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = &self.body {
            head += &format!("content-length: {}\r\n", body.len());
        }
        let mut bytes = (head + "\r\n").into_bytes();
        bytes.extend(self.body.as_deref().unwrap_or_default());
        bytes
    }

    pub async fn send(&self, address: SocketAddr) -> Reply {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may reject the request before all of it is sent.
        let _ = stream.write_all(&self.bytes(address)).await;
        read_reply(stream).await
    }

    /// Sends the request and returns its event stream.
    pub async fn events(&self, address: SocketAddr) -> Events {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&self.bytes(address)).await.unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).await.unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Events { lines, head }
    }
}

pub async fn read_reply(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked {
        decode_chunked(body)
    } else {
        body.to_owned()
    };
    Reply {
        status,
        head: head.to_owned(),
        body,
    }
}

fn decode_chunked(mut body: &str) -> String {
    let mut decoded = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || size > rest.len() {
            break;
        }
        decoded.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    decoded
}

pub struct Events {
    lines: BufReader<TcpStream>,
    pub head: String,
}

impl Events {
    /// Returns the id and the data of the next event, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<(Option<u64>, String)> {
        let mut id = None;
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            if let Some(number) = line.strip_prefix("id: ") {
                id = number.trim().parse().ok();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((id, data.trim_end().to_owned()));
            }
        }
    }

    pub async fn next_json(&mut self) -> Option<Value> {
        let (_, data) = self.next().await?;
        Some(serde_json::from_str(&data).unwrap_or(Value::String(data)))
    }

    pub async fn next_of_type(&mut self, kind: &str) -> Value {
        loop {
            let event = self
                .next_json()
                .await
                .unwrap_or_else(|| panic!("the stream ended without {kind}"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    pub async fn collect_rest(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.next_json().await {
            all.push(event);
        }
        all
    }
}
