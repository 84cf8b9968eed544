//! Servers of paid resources on loopback: a real shop, a proxy that loses answers, and one that always says
//! the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::Address;

use crate::usdc_chain::{UsdcChain, payment_peers};

/// A shop made with `@x402/express`: `/paper` and `/old-paper` cost 0.01 USDC, `/free` nothing.
pub struct PaperShop {
    child: Child,
    pub port: u16,
}

#[expect(clippy::panic, reason = "a test without its server fails")]
impl PaperShop {
    /// # Panics
    /// If the shop does not start.
    pub fn start(chain: &UsdcChain, payee: Address) -> Self {
        let mut child = Command::new("node")
            .args(["x402_server.mjs", &chain.url(), &payee.to_checksum(None)])
            .current_dir(payment_peers())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("node does not start (`cargo xtask test` installs it): {error}")
            });
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let port = line
            .trim()
            .strip_prefix("port ")
            .and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("the shop does not listen"));
        Self { child, port }
    }
}

impl Drop for PaperShop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Forwards requests, and drops the first answers to paid ones.
pub struct LossyProxy {
    pub port: u16,
    headers: Arc<Mutex<Vec<String>>>,
}

impl LossyProxy {
    pub fn start(target: u16, drops: usize) -> Self {
        let headers = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&headers);
        let port = serve(move |mut stream| {
            let request = read_head(&mut stream)?;
            let paid = request
                .lines()
                .find(|line| line.to_lowercase().starts_with("payment-signature:"))
                .map(str::to_owned);
            let answer = forward(target, &request)?;
            if let Some(header) = paid {
                let mut seen = seen.lock().ok()?;
                seen.push(header);
                if seen.len() <= drops {
                    return None;
                }
            }
            stream.write_all(&answer).ok()
        });
        Self { port, headers }
    }

    /// Returns the payment headers that passed through.
    pub fn payment_headers(&self) -> Vec<String> {
        let headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        headers.clone()
    }
}

/// Gives the answers in turn, and the last one for ever.
pub struct StaticServer {
    pub port: u16,
    count: Arc<AtomicUsize>,
}

impl StaticServer {
    pub fn start(answers: Vec<String>) -> Self {
        let count = Arc::<AtomicUsize>::default();
        let seen = Arc::clone(&count);
        let port = serve(move |mut stream| {
            read_head(&mut stream)?;
            let number = seen.fetch_add(1, Ordering::Relaxed);
            let answer = answers.get(number).or(answers.last())?;
            stream.write_all(answer.as_bytes()).ok()
        });
        Self { port, count }
    }

    pub fn requests(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// Serves one request per connection, until the process ends.
#[expect(clippy::panic, reason = "a test without its server fails")]
fn serve(answer: impl Fn(TcpStream) -> Option<()> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
    let port = listener.local_addr().map(|address| address.port());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || answer(stream));
        }
    });
    port.unwrap_or_default()
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

fn forward(port: u16, head: &str) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let kept = |line: &&str| !line.to_lowercase().starts_with("connection:");
    let head: Vec<&str> = head.trim_end().lines().filter(kept).collect();
    write!(stream, "{}\r\nConnection: close\r\n\r\n", head.join("\r\n")).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(answer)
}
