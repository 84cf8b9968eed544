//! Detects a local Ollama server. Used only if no other provider is configured.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Deserialize;

const PORT: u16 = 11434;
/// Short, since a local server either responds at once or is not running.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);
const MAX_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
struct TagsResponse {
    models: Vec<TagsModel>,
}

#[derive(Deserialize)]
struct TagsModel {
    name: String,
}

/// Returns the first chat model of the server.
pub fn first_model() -> Option<String> {
    let mut stream = TcpStream::connect_timeout(
        &SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
        PROBE_TIMEOUT,
    )
    .ok()?;
    stream
        .write_all(b"GET /api/tags HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        .ok()?;
    first_chat_model(&read_response(&mut stream, Instant::now() + PROBE_TIMEOUT)?)
}

/// Reads the whole response. Returns none if it is too long or too slow.
fn read_response(stream: &mut TcpStream, deadline: Instant) -> Option<Vec<u8>> {
    let mut response = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while response.len() <= MAX_BYTES {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return None;
        }
        stream.set_read_timeout(Some(remaining)).ok()?;
        match stream.read(&mut buffer).ok()? {
            0 => return Some(response),
            count => response.extend_from_slice(&buffer[..count]),
        }
    }
    None
}

/// Returns the first listed model that is not an embedding model.
fn first_chat_model(response: &[u8]) -> Option<String> {
    let response = std::str::from_utf8(response).ok()?;
    let (_, body) = response.split_once("\r\n\r\n")?;
    let tags: TagsResponse = serde_json::from_str(body.trim()).ok()?;
    tags.models
        .into_iter()
        .map(|model| model.name)
        .find(|name| !name.contains("embed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn read_from_server(
        serve: impl FnOnce(TcpStream) + Send + 'static,
        time: Duration,
    ) -> Option<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = thread::spawn(move || serve(listener.accept().unwrap().0));
        let mut stream = TcpStream::connect(address).unwrap();
        let response = read_response(&mut stream, Instant::now() + time);
        drop(stream);
        served.join().unwrap();
        response
    }

    #[test]
    fn picks_first_chat_model() {
        let tags = b"HTTP/1.0 200 OK\r\n\r\n{\"models\":[{\"name\":\"nomic-embed\"},{\"name\":\"qwen3\",\"size\":1}]}";
        assert_eq!(first_chat_model(tags).as_deref(), Some("qwen3"));
        for odd in [
            &b""[..],
            b"\r\n\r\n{}",
            b"\r\n\r\n[{\"name\":\"x\"}]",
            b"\r\n\r\n\xff",
        ] {
            assert_eq!(first_chat_model(odd), None);
        }
    }

    /// B105
    #[test]
    fn gives_up_on_endless_or_slow_responses() {
        let endless = |mut stream: TcpStream| while stream.write_all(&[b'x'; 65536]).is_ok() {};
        assert_eq!(
            read_from_server(endless, Duration::from_secs(60)),
            None,
            "too long"
        );
        let silent = |mut stream: TcpStream| {
            stream.write_all(b"x").unwrap();
            let _ = stream.read(&mut [0]);
        };
        assert_eq!(
            read_from_server(silent, Duration::from_millis(50)),
            None,
            "too slow"
        );
        let whole = |mut stream: TcpStream| stream.write_all(b"hi").unwrap();
        assert_eq!(
            read_from_server(whole, Duration::from_secs(60)).as_deref(),
            Some(&b"hi"[..])
        );
    }
}
