use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::guarded_client::LookupFuture;

/// Starts a server that answers each connection with the same bytes, and returns the requests it got.
async fn server(
    response: &'static [u8],
) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 4096];
            let count = stream.read(&mut buffer).await.unwrap();
            let _ = sender.send(String::from_utf8_lossy(&buffer[..count]).into_owned());
            let _ = stream.write_all(response).await;
        }
    });
    (address, receiver)
}

async fn ask(proxy: &EgressProxy, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn proxy(policy: AddressPolicy) -> EgressProxy {
    let rules = EgressRules::from_policy(policy);
    EgressProxy::start(rules, EgressLimits::short())
        .await
        .unwrap()
}

#[tokio::test]
async fn forwards_one_request_per_connection() {
    let response =
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nhello";
    let (address, mut requests) = server(response).await;
    let proxy = proxy(AddressPolicy::Anywhere).await;
    let request = format!("GET http://{address}/a HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let answer = ask(&proxy, &request).await;
    assert!(
        answer.ends_with("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"),
        "{answer}"
    );
    assert!(
        requests
            .recv()
            .await
            .unwrap()
            .starts_with("GET /a HTTP/1.1")
    );
}

/// B141
#[tokio::test]
async fn refuses_private_addresses_in_every_form() {
    let (address, mut requests) = server(b"HTTP/1.1 200 OK\r\n\r\nsecret").await;
    let proxy = proxy(AddressPolicy::Public).await;
    let port = address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0.0.0.0",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.",
    ] {
        for request in [
            format!("GET http://{host}:{port}/ HTTP/1.1\r\n\r\n"),
            format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n"),
        ] {
            let answer = ask(&proxy, &request).await;
            assert!(
                answer.starts_with("HTTP/1.1 403") && answer.contains("private network"),
                "{request}: {answer}"
            );
        }
    }
    assert!(requests.try_recv().is_err());
}

fn rebinding_lookup(_: String) -> LookupFuture {
    Box::pin(async { Ok(vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)]) })
}

/// B141: a name that leads to a private address is refused when the connection is made.
#[tokio::test]
async fn refuses_names_that_lead_to_private_addresses() {
    let rules = EgressRules::from_policy(AddressPolicy::Public);
    let outbound = OutboundHosts::with_lookup(rules, EgressLimits::short(), rebinding_lookup);
    let refused = outbound.connect("rebind.example", 80).await.unwrap_err();
    assert_eq!(
        refused,
        FetchError::PrivateAddress("rebind.example".to_owned())
    );
}

#[tokio::test]
async fn refuses_hosts_by_rule_and_tells_why() {
    let (address, _requests) = server(b"HTTP/1.1 200 OK\r\n\r\n").await;
    let rules = EgressRules {
        policy: AddressPolicy::Anywhere,
        allows_host: Arc::new(|host| host != "127.0.0.1"),
    };
    let proxy = EgressProxy::start(rules, EgressLimits::short())
        .await
        .unwrap();
    let before = Instant::now();
    let answer = ask(&proxy, &format!("CONNECT {address} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let error = proxy
        .failure_since("127.0.0.1", address.port(), before)
        .unwrap();
    assert_eq!(error, FetchError::HostNotAllowed("127.0.0.1".to_owned()));
    assert!(
        proxy
            .failure_since(
                "127.0.0.1",
                address.port(),
                Instant::now() + std::time::Duration::from_secs(1)
            )
            .is_none()
    );
}

fn silent_lookup(_: String) -> LookupFuture {
    Box::pin(std::future::pending())
}

#[tokio::test(start_paused = true)]
async fn a_dead_host_costs_its_time_once() {
    let rules = EgressRules::from_policy(AddressPolicy::Public);
    let limits = EgressLimits::default();
    let outbound = OutboundHosts::with_lookup(rules, limits, silent_lookup);
    let mut waited = Vec::new();
    for _ in 0..2 {
        let start = Instant::now();
        let error = outbound.connect("dead.example", 443).await.unwrap_err();
        assert_eq!(error, FetchError::TimedOut(limits.other_host));
        waited.push(start.elapsed());
    }
    assert!(
        waited[0] >= limits.other_host && waited[1].is_zero(),
        "{waited:?}"
    );
    outbound.expect_host("DEAD.example");
    let error = outbound.connect("dead.example", 443).await.unwrap_err();
    assert_eq!(error, FetchError::TimedOut(limits.named_host));
}

#[tokio::test]
async fn ends_a_connection_that_transfers_too_much() {
    static LARGE: [u8; 5_000] = [b'x'; 5_000];
    let (address, _requests) = server(&LARGE).await;
    let proxy = proxy(AddressPolicy::Anywhere).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let request = format!("CONNECT {address} HTTP/1.1\r\n\r\nhello");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.len() < 5_000, "{}", answer.len());
}
