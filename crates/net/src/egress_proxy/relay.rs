//! Copies bytes between the browser and a server, within the limits.

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::EgressLimits;
use super::request_head::{self, ProxyRequest, is_hop_by_hop};

const BUFFER_BYTES: usize = 32 * 1024;

/// Answers a request that is not forwarded.
pub async fn refuse(client: &mut TcpStream, status: &str, reason: &str) {
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{reason}",
        reason.len()
    );
    let _ = client.write_all(response.as_bytes()).await;
    let _ = client.shutdown().await;
}

/// Forwards one request and its response, or a tunnel until either side ends it.
pub async fn run(
    mut client: TcpStream,
    mut server: TcpStream,
    request: ProxyRequest,
    limits: &EgressLimits,
) -> io::Result<()> {
    match request.forwarded {
        None => {
            let accepted = b"HTTP/1.1 200 Connection established\r\n\r\n";
            client.write_all(accepted).await?;
            server.write_all(&request.rest).await?;
            copy_both(client, server, limits).await
        }
        Some(head) => {
            server.write_all(&latin1(&head)).await?;
            server.write_all(&request.rest).await?;
            let (client_read, client_write) = client.split();
            let (server_read, server_write) = server.split();
            let activity = Activity::new(limits);
            tokio::select! {
                // The end of the response ends the exchange, even if the browser keeps its side open.
                done = copy_response(server_read, client_write, &activity) => done,
                Err(error) = copy(client_read, server_write, &activity) => Err(error),
            }
        }
    }
}

async fn copy_both(
    mut client: TcpStream,
    mut server: TcpStream,
    limits: &EgressLimits,
) -> io::Result<()> {
    let (client_read, client_write) = client.split();
    let (server_read, server_write) = server.split();
    let activity = Activity::new(limits);
    tokio::try_join!(
        copy(client_read, server_write, &activity),
        copy(server_read, client_write, &activity),
    )?;
    Ok(())
}

/// Copies a response. The browser must not send another request on this connection, so the response
/// says that it ends here.
async fn copy_response(
    mut server: impl AsyncRead + Unpin,
    mut client: impl AsyncWrite + Unpin,
    activity: &Activity<'_>,
) -> io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let head = request_head::read(&mut server, unread);
        let head = tokio::time::timeout(activity.limits.idle, head).await??;
        // A response that switches protocols is the last one.
        let status = head.text.split(' ').nth(1).unwrap_or_default();
        let is_interim = status.starts_with('1') && status != "101";
        let mut kept: String = head
            .text
            .trim_end_matches("\r\n")
            .split("\r\n")
            .filter(|line| !is_hop_by_hop(line))
            .flat_map(|line| [line, "\r\n"])
            .collect();
        if !is_interim {
            kept.push_str("Connection: close\r\n");
        }
        kept.push_str("\r\n");
        client.write_all(&latin1(&kept)).await?;
        if !is_interim {
            client.write_all(&head.rest).await?;
            return copy(server, client, activity).await;
        }
        unread = head.rest;
    }
}

/// Returns the bytes of a head that was read as Latin-1.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| c as u8).collect()
}

/// The last time at which bytes passed in either direction.
struct Activity<'a> {
    limits: &'a EgressLimits,
    last: Mutex<Instant>,
}

impl<'a> Activity<'a> {
    fn new(limits: &'a EgressLimits) -> Self {
        Self {
            limits,
            last: Mutex::new(Instant::now()),
        }
    }

    fn note(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns when the connection counts as idle.
    fn deadline(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) + self.limits.idle
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    activity: &Activity<'_>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut total = 0u64;
    loop {
        let deadline = activity.deadline();
        let count = match tokio::time::timeout_at(deadline, from.read(&mut buffer)).await {
            Ok(count) => count?,
            // The other direction may have been active meanwhile.
            Err(_) if activity.deadline() > deadline => continue,
            Err(late) => return Err(late.into()),
        };
        if count == 0 {
            return to.shutdown().await;
        }
        activity.note();
        total += count as u64;
        if total > activity.limits.bytes {
            return Err(io::Error::other("the connection transferred too much"));
        }
        to.write_all(&buffer[..count]).await?;
    }
}
