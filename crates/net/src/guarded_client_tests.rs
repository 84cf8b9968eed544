use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Serves `reply` to one connection and returns the port.
fn serve_once(reply: impl FnOnce(u16) -> String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reply = reply(port);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        _ = stream.read(&mut [0; 4096]);
        _ = stream.write_all(reply.as_bytes());
    });
    port
}

async fn fetch(policy: AddressPolicy, url: &str) -> Result<FetchedPage, FetchError> {
    GuardedClient::new(policy, FetchLimits::default())
        .get(url)
        .await
}

#[test]
fn check_url_accepts_only_public_http_urls() {
    for (url, expected) in [
        (
            "ftp://example.com/",
            Err(FetchError::Scheme("ftp".to_owned())),
        ),
        (
            "file:///etc/passwd",
            Err(FetchError::Scheme("file".to_owned())),
        ),
        (
            "gopher://127.0.0.1:6379/_x",
            Err(FetchError::Scheme("gopher".to_owned())),
        ),
        (
            "javascript:alert(1)",
            Err(FetchError::Scheme("javascript".to_owned())),
        ),
        ("http://ann@example.com/", Err(FetchError::Credentials)),
        ("http://:secret@example.com/", Err(FetchError::Credentials)),
        (
            "http://public.example@10.0.0.1/",
            Err(FetchError::Credentials),
        ),
        (
            "http://10.0.0.1/",
            Err(FetchError::PrivateAddress("10.0.0.1".to_owned())),
        ),
        (
            "http://0x7f.1/",
            Err(FetchError::PrivateAddress("127.0.0.1".to_owned())),
        ),
        (
            "http://[::ffff:10.0.0.1]/",
            Err(FetchError::PrivateAddress("::ffff:10.0.0.1".to_owned())),
        ),
        ("https://example.com:8443/a?b#c", Ok(())),
        ("http://8.8.8.8/", Ok(())),
    ] {
        assert_eq!(
            check_url(&parse_url(url).unwrap(), AddressPolicy::Public),
            expected,
            "{url}"
        );
    }
    for url in [
        "",
        "example.com",
        "http://",
        "http://[::1",
        "http://a b/",
        "http://256.1.1.1/",
    ] {
        assert!(
            matches!(parse_url(url), Err(FetchError::NotAUrl(_))),
            "{url}"
        );
    }
}

#[test]
fn resolver_keeps_only_allowed_addresses() {
    let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
        texts
            .iter()
            .map(|text| SocketAddr::new(text.parse().unwrap(), 0))
            .collect()
    };
    let filter =
        |texts: &[&str]| filter_allowed(addresses(texts), AddressPolicy::Public, "h".to_owned());
    assert_eq!(
        filter(&["10.0.0.1", "8.8.8.8", "::1"]),
        Ok(addresses(&["8.8.8.8"]))
    );
    assert_eq!(
        filter(&["10.0.0.1", "::ffff:127.0.0.1"]),
        Err(FetchError::PrivateAddress("h".to_owned()))
    );
    assert_eq!(filter(&[]), Err(FetchError::UnknownHost("h".to_owned())));
}

#[test]
fn redirects_never_leave_https() {
    let from = parse_url("https://example.com/a/b#part").unwrap();
    let to = |location| resolve_redirect(&from, location).map(String::from);
    assert_eq!(to("../c"), Ok("https://example.com/c".to_owned()));
    assert_eq!(
        to("//other.example/#x"),
        Ok("https://other.example/".to_owned())
    );
    assert_eq!(to("http://example.com/"), Err(FetchError::Downgrade));
    assert_eq!(to("https://["), Err(FetchError::BadRedirect));
    let plain = parse_url("http://example.com/").unwrap();
    assert!(resolve_redirect(&plain, "https://example.com/").is_ok());
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    let one = AddressPolicy::PublicAnd("127.0.0.1".parse().unwrap());
    for (target, expected) in [
        (
            "127.0.0.2",
            FetchError::PrivateAddress("127.0.0.2".to_owned()),
        ),
        ("[::1]", FetchError::PrivateAddress("::1".to_owned())),
        (
            "169.254.169.254",
            FetchError::PrivateAddress("169.254.169.254".to_owned()),
        ),
        ("ann:secret@127.0.0.1", FetchError::Credentials),
    ] {
        let port = serve_once(|port| {
            format!(
                "HTTP/1.1 302 Found\r\nLocation: http://{target}:{port}/\r\nContent-Length: 0\r\n\r\n"
            )
        });
        let error = fetch(one, &format!("http://127.0.0.1:{port}/"))
            .await
            .unwrap_err();
        assert_eq!(error, expected, "{target}");
    }
    let port = serve_once(|_| {
        "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n".to_owned()
    });
    let error = fetch(one, &format!("http://127.0.0.1:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(error, FetchError::Scheme("file".to_owned()));
}

#[tokio::test]
async fn names_are_checked_when_connecting() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in [
        "localhost",
        "LOCALHOST",
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "2130706433",
    ] {
        let error = fetch(AddressPolicy::Public, &format!("http://{host}:{port}/"))
            .await
            .unwrap_err();
        assert!(
            matches!(error, FetchError::PrivateAddress(_)),
            "{host}: {error}"
        );
    }
    assert!(listener.accept().is_err(), "unexpected connection");
}

/// The name resolves to an allowed address first, and to a private one from then on.
#[tokio::test]
async fn dns_rebinding_is_refused() {
    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    fn rebinding_lookup(_: String) -> LookupFuture {
        let address = if LOOKUPS.fetch_add(1, Ordering::SeqCst) == 0 {
            "127.0.0.1:0"
        } else {
            "127.0.0.2:0"
        };
        Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
    }
    let private = TcpListener::bind("127.0.0.2:0").unwrap();
    private.set_nonblocking(true).unwrap();
    let policy = AddressPolicy::PublicAnd("127.0.0.1".parse().unwrap());
    let resolver = Arc::new(GuardedResolver {
        policy,
        lookup: rebinding_lookup,
    });
    let client = client_builder(Duration::from_secs(5))
        .dns_resolver(resolver)
        .pool_max_idle_per_host(0);
    let guarded = GuardedClient::new(policy, FetchLimits::default());
    guarded.client.set(client.build().unwrap()).unwrap();
    let port = serve_once(|_| {
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
            .to_owned()
    });
    let page = guarded
        .get(&format!("http://changing.example:{port}/"))
        .await
        .unwrap();
    assert_eq!(
        (page.text().as_str(), LOOKUPS.load(Ordering::SeqCst)),
        ("hello", 1),
        "looked up once"
    );
    let port = private.local_addr().unwrap().port();
    let error = guarded
        .get(&format!("http://changing.example:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        FetchError::PrivateAddress("changing.example".to_owned())
    );
    assert!(private.accept().is_err(), "unexpected connection");
}

#[tokio::test]
async fn user_urls_get_the_policy_of_their_own_address() {
    for (url, policy) in [
        ("http://127.0.0.1:8080/", AddressPolicy::Anywhere),
        ("http://localhost/", AddressPolicy::Anywhere),
        ("http://[::1]/", AddressPolicy::Anywhere),
        ("http://8.8.8.8/", AddressPolicy::Public),
        ("nothing", AddressPolicy::Public),
    ] {
        assert_eq!(policy_for_user_url(url).await, policy, "{url}");
    }
}
