//! Is there an Ollama on this machine? Asked only when nothing else was found.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const PORT: u16 = 11434;
/// It is on this machine: either it answers at once or it is not there.
const PATIENCE: Duration = Duration::from_millis(300);
const MOST: u64 = 1024 * 1024;

/// The first model that it has and that can talk.
pub fn first_model() -> Option<String> {
    let mut stream =
        TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"GET /api/tags HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.take(MOST).read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let listed: serde_json::Value = serde_json::from_str(body.trim()).ok()?;
    let names = listed.get("models")?.as_array()?.iter().filter_map(|model| model.get("name")?.as_str());
    // Models that only embed cannot talk.
    names.into_iter().find(|name| !name.contains("embed")).map(str::to_owned)
}
