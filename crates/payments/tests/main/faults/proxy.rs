//! A node that fails in one way. It forwards requests to a real one.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks before the node sees the request of this number.
    BeforeTheNode,
    /// The connection breaks after the node did what the request of this number asked for.
    AfterTheNode,
    /// After this many right answers, the chain id is another.
    OtherChainId,
    /// No authorization is used, and there is no receipt.
    NothingIsUsed,
    Garbage,
    HugeAnswer,
    ServerError,
}

pub struct FaultyNode {
    port: u16,
    is_hit: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

struct Node {
    target: u16,
    fault: Fault,
    at: u64,
    seen: AtomicU64,
    is_hit: Arc<AtomicBool>,
}

impl FaultyNode {
    pub fn start(target: u16, fault: Fault, at: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_hit, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let node = Arc::new(Node {
            target,
            fault,
            at,
            seen: AtomicU64::new(0),
            is_hit: Arc::clone(&is_hit),
        });
        let ends = Arc::clone(&is_over);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                let node = Arc::clone(&node);
                std::thread::spawn(move || node.serve(stream));
            }
        });
        Self {
            port,
            is_hit,
            is_over,
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn is_hit(&self) -> bool {
        self.is_hit.load(Ordering::Relaxed)
    }
}

impl Drop for FaultyNode {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Node {
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let body = read_message(&mut reader)?;
            let number = self.seen.fetch_add(1, Ordering::Relaxed);
            let is_turn = number == self.at;
            if is_turn && self.fault == Fault::BeforeTheNode {
                self.is_hit.store(true, Ordering::Relaxed);
                return None;
            }
            let answer = match self.fault {
                Fault::Garbage => b"<html>".to_vec(),
                Fault::HugeAnswer => vec![b'['; 3 * 1024 * 1024],
                Fault::ServerError => {
                    stream
                        .write_all(b"HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n")
                        .ok()?;
                    continue;
                }
                _ => forward(self.target, &body)?,
            };
            if is_turn && self.fault == Fault::AfterTheNode {
                self.is_hit.store(true, Ordering::Relaxed);
                return None;
            }
            let answer = self.changed(&body, answer);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            stream.write_all(head.as_bytes()).ok()?;
            stream.write_all(&answer).ok()?;
        }
    }

    fn changed(&self, body: &[u8], answer: Vec<u8>) -> Vec<u8> {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let method = request["method"].as_str().unwrap_or_default();
        let input = request["params"][0]["input"].as_str().unwrap_or_default();
        // The selector of `authorizationState`.
        let is_state = method == "eth_call" && input.starts_with("0xe94a0102");
        let result = match (self.fault, method) {
            (Fault::OtherChainId, "eth_chainId") if self.seen.load(Ordering::Relaxed) > self.at => {
                json!("0x1")
            }
            (Fault::NothingIsUsed, _) if is_state => json!(format!("0x{:064x}", 0)),
            (Fault::NothingIsUsed, "eth_getTransactionReceipt" | "eth_getTransactionByHash") => {
                Value::Null
            }
            _ => return answer,
        };
        json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
            .to_string()
            .into_bytes()
    }
}

/// Reads the body of an HTTP message.
pub fn read_message(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn forward(port: u16, body: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    read_message(&mut BufReader::new(stream))
}
