//! The ways out of a page.

use std::net::UdpSocket;
use std::time::Duration;

use lango_browser::BrowserSettings;
use lango_net::AddressPolicy;
use serde_json::json;

use crate::setup::{Fixture, TestServer, reference};

/// A page with every way to reach the network that pages have.
fn hostile_page(port: u16, udp: u16) -> String {
    format!(
        r##"<h1 id=h>start</h1><link rel=preconnect href="http://127.0.0.1:{port}"><link rel=dns-prefetch href="//localhost:{port}">
        <link rel=stylesheet href="http://localhost:{port}/css"><img src="http://127.0.0.1:{port}/img"><iframe src="http://127.0.0.1:{port}/frame"></iframe>
        <video src="http://127.0.0.1:{port}/video"></video><object data="http://127.0.0.1:{port}/object"></object>
        <iframe src="file:///etc/passwd"></iframe><a id=ping ping="http://127.0.0.1:{port}/ping" href="#x">p</a>
        <form id=f action="http://127.0.0.1:{port}/form" method=post target=_blank><input name=a></form>
        <script>
        const hosts = ['127.0.0.1', 'localhost', '[::1]', '0.0.0.0', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '127.1'];
        for (const host of hosts) {{ const at = `http://${{host}}:{port}/`; fetch(at + 'fetch', {{mode:'no-cors'}}).catch(() => 0); navigator.sendBeacon(at + 'beacon', 'x'); new Image().src = at + 'image'; }}
        const tries = [
          () => new WebSocket('ws://127.0.0.1:{port}/ws'), () => new WebSocket('wss://127.0.0.1:{port}/ws'), () => new EventSource('http://127.0.0.1:{port}/events'),
          () => new Worker(URL.createObjectURL(new Blob([`fetch('http://127.0.0.1:{port}/worker',{{mode:'no-cors'}})`]))),
          () => open('http://127.0.0.1:{port}/popup'), () => ping.click(), () => f.submit(),
          () => {{ const s = document.createElement('script'); s.src = 'http://127.0.0.1:{port}/script'; document.head.append(s) }},
          () => new WebTransport('https://127.0.0.1:{port}/wt'),
          () => {{ const pc = new RTCPeerConnection({{iceServers: [{{urls: ['stun:127.0.0.1:{udp}', 'turn:127.0.0.1:{udp}?transport=udp']  , username: 'u', credential: 'c'}}]}}); pc.createDataChannel('x'); pc.createOffer().then(o => pc.setLocalDescription(o)) }},
          () => fetch('http://redirect.invalid/'), () => {{ location.hash = 'y' }},
        ];
        for (const one of tries) try {{ one() }} catch (e) {{}}
        setTimeout(() => h.textContent = 'tried', 1500);
        </script>"##
    )
}

/// B141: a page that the policy allows reaches nothing that it does not allow. The page itself comes from
/// an allowed host; everything else is refused by the list of hosts at the same place as by addresses.
#[tokio::test]
async fn nothing_gets_out() {
    // 127.0.0.2 is loopback too, and another host.
    let server = TestServer::start_on("127.0.0.2:0").await;
    let victim = TestServer::start().await;
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let settings = BrowserSettings {
        allow_hosts: vec!["127.0.0.2".to_owned()],
        ..BrowserSettings::default()
    };
    let fixture = Fixture::with(AddressPolicy::Anywhere, settings);
    let port = victim.address.port();
    let html = hostile_page(port, udp.local_addr().unwrap().port());
    server.page("/attack", &html);
    fixture.navigate(&server.url("/attack")).await.unwrap();
    fixture
        .act(json!({ "action": "wait", "text": "tried" }))
        .await
        .unwrap();
    assert_eq!(victim.requests(), Vec::<String>::new());
    let mut buffer = [0; 100];
    assert!(udp.recv_from(&mut buffer).is_err(), "a UDP packet arrived");
}

/// B141: by default no address of this machine or the local network can be opened.
#[tokio::test]
async fn private_addresses_and_other_schemes_are_refused() {
    let server = TestServer::start().await;
    let fixture = Fixture::with(AddressPolicy::Public, BrowserSettings::default());
    let port = server.address.port();
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://2130706433:{port}/"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "file:///etc/passwd".to_owned(),
        "chrome://version".to_owned(),
        "javascript:alert(1)".to_owned(),
        "data:text/html,hi".to_owned(),
        "view-source:http://example.org".to_owned(),
        "about:blank".to_owned(),
        "http://user:pass@example.org/".to_owned(),
        "not an address".to_owned(),
    ] {
        let error = fixture.navigate(&url).await.unwrap_err();
        assert!(!error.is_empty(), "{url}");
        if url.contains("127.0.0.1") || url.contains("localhost") {
            assert!(
                error.contains("private network") && error.contains("net.allowPrivate"),
                "{error}"
            );
        }
    }
    assert_eq!(server.requests(), Vec::<String>::new());
}

/// B141: an address of this machine that the user typed can be opened, and nothing else of this machine.
#[tokio::test]
async fn a_typed_private_address_is_reached() {
    let (typed, other) = (TestServer::start().await, TestServer::start().await);
    let mut fixture = Fixture::with(AddressPolicy::Public, BrowserSettings::default());
    let port = typed.address.port();
    fixture.context.typed_addresses = vec![
        typed.url("/"),
        format!("http://example.invalid:{port}/"),
        "http://".to_owned(),
    ];
    let image = other.url("/image.png");
    typed.page(
        "/",
        &format!("<h1>Mine</h1><a href=/next>Next</a><img src={image}>"),
    );
    typed.page("/next", "<h1>Second</h1>");
    let outline = fixture.navigate(&typed.url("/")).await.unwrap();
    assert!(outline.contains("Mine"), "{outline}");
    let link = reference(&outline, "Next");
    let changed = fixture.act(json!({ "action": "click", "ref": link })).await;
    assert!(changed.unwrap().contains("Second"));
    let error = fixture.navigate(&other.url("/")).await.unwrap_err();
    assert!(error.contains("private network"), "{error}");
    // The same port by a name that anybody could point to this machine.
    let named = format!("http://localhost:{port}/");
    assert!(fixture.navigate(&named).await.is_err());
    assert_eq!(other.requests(), Vec::<String>::new());
}

/// B141: the permission for a typed address ends when another address is opened.
#[tokio::test]
async fn a_typed_private_address_is_closed_to_other_sites() {
    let (typed, second) = (TestServer::start().await, TestServer::start().await);
    let mut fixture = Fixture::with(AddressPolicy::Public, BrowserSettings::default());
    fixture.context.typed_addresses = vec![typed.url("/"), second.url("/")];
    let html = format!("<h1>Second</h1><img src={}>", typed.url("/image.png"));
    second.page("/", &html);
    typed.page("/", "<h1>First</h1>");
    fixture.navigate(&typed.url("/")).await.unwrap();
    let before = typed.requests().len();
    fixture.navigate(&second.url("/")).await.unwrap();
    assert_eq!(typed.requests().len(), before);
}

/// B141: a redirect is a new connection, with its own check.
#[tokio::test]
async fn redirects_are_checked() {
    let (server, victim) = (TestServer::start().await, TestServer::start().await);
    let settings = BrowserSettings {
        deny_hosts: vec!["localhost".to_owned()],
        ..BrowserSettings::default()
    };
    let fixture = Fixture::with(AddressPolicy::Anywhere, settings);
    let target = format!("http://localhost:{}/secret", victim.address.port());
    server.page(
        "/go",
        &format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"),
    );
    let _ = fixture.navigate(&server.url("/go")).await;
    assert_eq!(victim.requests(), Vec::<String>::new());
    let error = fixture.navigate(&target).await.unwrap_err();
    assert!(error.contains("do not allow this host"), "{error}");
}

/// Nothing of the browser is left when it is closed.
#[tokio::test]
async fn the_browser_ends_when_it_is_closed() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    fixture.open(&server, "<p>hello</p>").await;
    let marker = format!("lango-browser-{}-", std::process::id());
    fixture.navigator.close().await;
    drop(fixture);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    // Other tests of this process may have browsers of their own, so only those of ended folders count.
    while processes_with(&marker)
        .iter()
        .any(|folder| !std::path::Path::new(folder).exists())
    {
        assert!(
            std::time::Instant::now() < deadline,
            "the browser still runs"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the profile folders in the command lines of running processes.
fn processes_with(marker: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    texts
        .filter_map(|text| {
            let at = text.find("--user-data-dir=")? + "--user-data-dir=".len();
            let folder = text[at..].split('\0').next()?.to_owned();
            folder.contains(marker).then_some(folder)
        })
        .collect()
}
