//! A client of the browser's debugging protocol over a pair of pipes.
//!
//! Messages are JSON, each followed by a NUL byte. A pipe has no port that another process could use,
//! and the browser ends when Lango's end of the pipe is closed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

use crate::error::{BrowserError, Result};

/// Time after which a command without a response fails.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of one message. A screenshot of a long page is the largest.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The id of a protocol session: the connection to one tab, frame or worker.
pub type CdpSession = Arc<str>;

/// An event of the browser.
#[derive(Debug)]
pub struct CdpEvent {
    /// Absent for events of the browser itself.
    pub session: Option<CdpSession>,
    pub method: String,
    pub params: Value,
}

#[derive(Clone)]
pub struct CdpClient {
    shared: Arc<Shared>,
}

struct Shared {
    /// A missing message closes the pipe.
    outgoing: mpsc::UnboundedSender<Option<Vec<u8>>>,
    next_id: AtomicU64,
    pending: Mutex<Option<PendingCommands>>,
}

type PendingCommands = HashMap<u64, oneshot::Sender<Result<Value>>>;

#[derive(Deserialize)]
struct IncomingMessage {
    id: Option<u64>,
    #[serde(default)]
    result: Value,
    error: Option<IncomingError>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(rename = "sessionId")]
    session: Option<String>,
}

#[derive(Deserialize)]
struct IncomingError {
    message: String,
}

impl CdpClient {
    /// Connects to the browser. Events arrive in the returned channel, which ends with the browser.
    pub fn connect(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> (Self, mpsc::UnboundedReceiver<CdpEvent>) {
        let (outgoing, outgoing_messages) = mpsc::unbounded_channel();
        let (events, event_receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            outgoing,
            next_id: AtomicU64::new(1),
            pending: Mutex::new(Some(HashMap::new())),
        });
        tokio::spawn(write_messages(writer, outgoing_messages));
        tokio::spawn(read_messages(reader, Arc::clone(&shared), events));
        (Self { shared }, event_receiver)
    }

    /// Sends a command and waits for its response.
    pub async fn call(
        &self,
        session: Option<&CdpSession>,
        method: &str,
        params: Value,
    ) -> Result<Value> {
        self.call_within(session, method, params, COMMAND_TIMEOUT)
            .await
    }

    pub async fn call_within(
        &self,
        session: Option<&CdpSession>,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value> {
        let (id, response) = self.start(session, method, params)?;
        match tokio::time::timeout(limit, response).await {
            Ok(response) => response.unwrap_or(Err(BrowserError::Closed)),
            Err(_late) => {
                self.shared.forget(id);
                Err(BrowserError::Unresponsive(limit))
            }
        }
    }

    /// Sends a command whose response does not matter.
    pub fn send(&self, session: Option<&CdpSession>, method: &str, params: Value) {
        let _ = self.start(session, method, params);
    }

    /// Sends a command. Its response arrives in the returned channel.
    pub fn start(
        &self,
        session: Option<&CdpSession>,
        method: &str,
        params: Value,
    ) -> Result<(u64, oneshot::Receiver<Result<Value>>)> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = Value::from(&**session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let (sender, receiver) = oneshot::channel();
        match &mut *self.shared.lock() {
            Some(pending) => pending.insert(id, sender),
            None => return Err(BrowserError::Closed),
        };
        self.shared
            .outgoing
            .send(Some(bytes))
            .map_err(|_| BrowserError::Closed)?;
        Ok((id, receiver))
    }

    /// Closes the pipe, which ends the browser.
    pub fn close(&self) {
        let _ = self.shared.outgoing.send(None);
    }

    pub fn is_closed(&self) -> bool {
        self.shared.lock().is_none()
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PendingCommands>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, id: u64) {
        if let Some(pending) = &mut *self.lock() {
            pending.remove(&id);
        }
    }

    fn complete(&self, id: u64, response: Result<Value>) {
        let waiting = self.lock().as_mut().and_then(|pending| pending.remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(response);
        }
    }
}

async fn write_messages(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
) {
    while let Some(Some(message)) = messages.recv().await {
        if writer.write_all(&message).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

async fn read_messages(
    reader: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<CdpEvent>,
) {
    let mut reader = BufReader::with_capacity(256 * 1024, reader);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match reader.read_until(0, &mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(count) if count > MAX_MESSAGE_BYTES => break,
            Ok(_) => {}
        }
        bytes.pop();
        let Ok(message) = parse_message(&bytes) else {
            tracing::warn!("the browser sent a message that is not JSON");
            continue;
        };
        dispatch(message, &shared, &events);
    }
    // Dropping the senders ends every command that still waits.
    shared.lock().take();
}

/// Parses a message. Text of a page may hold half of a surrogate pair, which is not valid in Rust; it
/// becomes `\u{fffd}`.
fn parse_message(bytes: &[u8]) -> std::result::Result<IncomingMessage, serde_json::Error> {
    serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_slice(&replace_lone_surrogates(bytes)))
}

fn replace_lone_surrogates(bytes: &[u8]) -> Vec<u8> {
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut fixed = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], unit(at)) {
            (b'\\', Some(0xd800..=0xdbff)) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => {
                fixed.extend_from_slice(&bytes[at..at + 12]);
                at += 12;
            }
            (b'\\', Some(0xd800..=0xdfff)) => {
                fixed.extend_from_slice(b"\\ufffd");
                at += 6;
            }
            // Any other escape has two bytes at least; the second may be a backslash.
            (b'\\', _) => {
                let end = (at + 2).min(bytes.len());
                fixed.extend_from_slice(&bytes[at..end]);
                at = end;
            }
            (byte, _) => {
                fixed.push(byte);
                at += 1;
            }
        }
    }
    fixed
}

fn dispatch(message: IncomingMessage, shared: &Shared, events: &mpsc::UnboundedSender<CdpEvent>) {
    match (message.id, message.method) {
        (Some(id), _) => {
            let response = match message.error {
                Some(error) => Err(BrowserError::Protocol(error.message)),
                None => Ok(message.result),
            };
            shared.complete(id, response);
        }
        (None, Some(method)) => {
            let event = CdpEvent {
                session: message.session.map(Into::into),
                method,
                params: message.params,
            };
            let _ = events.send(event);
        }
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let text = r#"{"id":1,"result":{"a":"x\ud83d\ude00y\ud83dz\\ud83d \ude00"}}"#;
        let message = parse_message(text.as_bytes()).unwrap();
        assert_eq!(message.result["a"], "x😀y\u{fffd}z\\ud83d \u{fffd}");
    }

    #[tokio::test]
    async fn a_command_fails_when_the_browser_ends() {
        let (ours, theirs) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(ours);
        let (client, mut events) = CdpClient::connect(reader, writer);
        let waiting = client.start(None, "Browser.getVersion", json!({})).unwrap();
        drop(theirs);
        assert!(waiting.1.await.is_err());
        assert!(events.recv().await.is_none() && client.is_closed());
        let error = client.call(None, "Browser.getVersion", json!({})).await;
        assert_eq!(error, Err(BrowserError::Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_without_a_response_times_out() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(ours);
        let (client, _events) = CdpClient::connect(reader, writer);
        let error = client.call(None, "Page.enable", json!({})).await;
        assert_eq!(error, Err(BrowserError::Unresponsive(COMMAND_TIMEOUT)));
    }
}
