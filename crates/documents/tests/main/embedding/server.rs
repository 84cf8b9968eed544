//! A scripted embedding provider.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A received request: the head in lower case, and the body.
pub struct CapturedRequest {
    pub head: String,
    pub body: serde_json::Value,
}

/// Answers each request with the next raw response, then closes the connection.
pub fn serve(responses: Vec<Vec<u8>>) -> (String, Receiver<CapturedRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    thread::spawn(move || {
        for response in responses {
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).unwrap_or(0) == 0 {
                    return;
                }
            }
            let head = head.to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .unwrap_or("0");
            let mut body = vec![0; length.trim().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let body = serde_json::from_slice(&body).unwrap();
            _ = sender.send(CapturedRequest { head, body });
            _ = reader.get_mut().write_all(&response);
        }
    });
    (address, requests)
}

pub fn raw_response(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub fn ok_response(body: &str) -> Vec<u8> {
    raw_response(200, "", body.as_bytes())
}
