//! The head of a request to the proxy.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use url::{Host, Url};

const MAX_HEAD_BYTES: usize = 128 * 1024;

/// The bytes of a head, and what was read after it.
pub struct Head {
    pub text: String,
    pub rest: Vec<u8>,
}

/// Reads up to the empty line that ends a head, starting with bytes that were read before.
pub async fn read(stream: &mut (impl AsyncRead + Unpin), mut bytes: Vec<u8>) -> io::Result<Head> {
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            // Header values may hold any byte; Latin-1 keeps each of them.
            let text = bytes.iter().map(|byte| char::from(*byte)).collect();
            return Ok(Head { text, rest });
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Err(io::Error::other("the head is too long"));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// A request that the browser sent to the proxy.
#[derive(Debug)]
pub struct ProxyRequest {
    pub host: String,
    pub port: u16,
    /// The head to send to the server; none for a tunnel.
    pub forwarded: Option<String>,
    /// The first bytes of the body or of the tunnel.
    pub rest: Vec<u8>,
}

impl ProxyRequest {
    pub fn parse(head: &Head) -> Result<Self, String> {
        let mut lines = head.text.split("\r\n");
        let start = lines.next().unwrap_or_default();
        let mut words = start.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("malformed request line".to_owned());
        };
        if !version.starts_with("HTTP/1.") {
            return Err("unsupported HTTP version".to_owned());
        }
        let rest = head.rest.clone();
        if method == "CONNECT" {
            let url = Url::parse(&format!("https://{target}/"))
                .map_err(|_| "malformed address".to_owned())?;
            let (host, port) = host_and_port(&url)?;
            return Ok(Self {
                host,
                port,
                forwarded: None,
                rest,
            });
        }
        let url = Url::parse(target).map_err(|_| "the target is not a URL".to_owned())?;
        if url.scheme() != "http" {
            return Err(format!("the scheme {} is not supported", url.scheme()));
        }
        let (host, port) = host_and_port(&url)?;
        let forwarded = forwarded_head(method, &url, lines);
        Ok(Self {
            host,
            port,
            forwarded: Some(forwarded),
            rest,
        })
    }
}

fn host_and_port(url: &Url) -> Result<(String, u16), String> {
    let host = match url.host() {
        Some(Host::Domain(name)) => name.to_ascii_lowercase(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => return Err("the address has no host".to_owned()),
    };
    let port = url.port_or_known_default().ok_or("the port is missing")?;
    Ok((host, port))
}

/// Returns the head as the server gets it. A connection carries one request, so that no later request
/// reaches a server that was checked for another one.
fn forwarded_head<'a>(method: &str, url: &Url, headers: impl Iterator<Item = &'a str>) -> String {
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut head = format!("{method} {target} HTTP/1.1\r\n");
    for header in headers.filter(|header| !header.is_empty()) {
        if !is_hop_by_hop(header) {
            head.push_str(header);
            head.push_str("\r\n");
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    head
}

/// Returns true for headers that are about the connection to the proxy.
pub fn is_hop_by_hop(header: &str) -> bool {
    let name = header.split(':').next().unwrap_or_default().trim();
    [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "upgrade",
    ]
    .iter()
    .any(|hop| name.eq_ignore_ascii_case(hop))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ProxyRequest, String> {
        ProxyRequest::parse(&Head {
            text: text.to_owned(),
            rest: Vec::new(),
        })
    }

    #[test]
    fn a_request_is_forwarded_without_the_headers_of_the_proxy() {
        let request = parse(
            "GET http://Example.org:81/a?b#c HTTP/1.1\r\nHost: example.org:81\r\nProxy-Connection: keep-alive\r\nX: y\r\n\r\n",
        )
        .unwrap();
        assert_eq!((request.host.as_str(), request.port), ("example.org", 81));
        assert_eq!(
            request.forwarded.as_deref(),
            Some("GET /a?b HTTP/1.1\r\nHost: example.org:81\r\nX: y\r\nConnection: close\r\n\r\n")
        );
    }

    #[test]
    fn a_tunnel_has_a_host_and_a_port() {
        for (target, host, port) in [
            ("example.org:443", "example.org", 443),
            ("[::1]:8443", "::1", 8443),
            ("2130706433:80", "127.0.0.1", 80),
            ("0x7f.1:80", "127.0.0.1", 80),
        ] {
            let request = parse(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).unwrap();
            assert_eq!((request.host.as_str(), request.port), (host, port));
            assert!(request.forwarded.is_none());
        }
    }

    #[test]
    fn malformed_requests_are_refused() {
        for head in [
            "",
            "GET / HTTP/1.1\r\n\r\n",
            "GET ftp://a/ HTTP/1.1\r\n\r\n",
            "GET file:///etc/passwd HTTP/1.1\r\n\r\n",
            "GET http://a/ HTTP/2\r\n\r\n",
            "GET http://a/ b HTTP/1.1\r\n\r\n",
            "CONNECT / HTTP/1.1\r\n\r\n",
        ] {
            assert!(parse(head).is_err(), "{head}");
        }
    }
}
