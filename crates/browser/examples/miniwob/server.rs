//! Serves the pages of the package on loopback.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Starts the server and returns its address.
pub async fn start(folder: PathBuf) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, folder.clone()));
        }
    });
    Ok(address)
}

async fn serve(mut stream: TcpStream, folder: PathBuf) {
    let mut bytes = vec![0; 8192];
    let count = stream.read(&mut bytes).await.unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let path = text.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let path = path.trim_start_matches('/');
    let is_safe = !path.contains("..");
    let body = std::fs::read(folder.join(path)).ok().filter(|_| is_safe);
    let kind = match Path::new(path).extension().and_then(|end| end.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    };
    let status = match body {
        Some(_) => "200 OK",
        None => "404 Not Found",
    };
    let body = body.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
    let _ = stream.shutdown().await;
}
