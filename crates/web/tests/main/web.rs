//! The web tools with local servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::GzEncoder;
use lango_domain::secret::Secret;
use lango_domain::tool::Trust;
use lango_domain::{Safety, Tool, ToolError};
use lango_net::{AddressPolicy, ContentKind, FetchError, FetchLimits, GuardedClient, NetSettings};
use lango_web::{EngineKind, PdfReader, SearchEngineSettings, SearchSettings, WebError, tools};
use serde_json::{Value, json};

use lango_testkit::pdf::pdf;
use lango_testkit::tool_context as context;

const FIRST: &str = "BT /F1 12 Tf 72 720 Td (One.) Tj ET";
const SECOND: &str = "BT /F1 12 Tf 72 720 Td (Two.) Tj ET";
const KEY: &str = "brave-key-0123456789";

/// A server with a response for each path, which records its requests.
struct PageServer {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl PageServer {
    fn new(respond: impl Fn(&str, u16) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let head = head(&stream);
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                recorded.lock().unwrap().push(head);
                _ = stream.write_all(&respond(&path, port));
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn head(stream: &TcpStream) -> String {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn reply(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn page(content_type: &str, body: &[u8]) -> Vec<u8> {
    reply(200, &format!("Content-Type: {content_type}\r\n"), body)
}

fn redirect(to: &str) -> Vec<u8> {
    reply(302, &format!("Location: {to}\r\nSet-Cookie: a=b\r\n"), b"")
}

fn anywhere() -> GuardedClient {
    GuardedClient::new(AddressPolicy::Anywhere, FetchLimits::default())
}

async fn fetch_error(server: &PageServer, path: &str) -> FetchError {
    anywhere().get(&server.url(path)).await.unwrap_err()
}

fn tool(name: &str, engines: Vec<SearchEngineSettings>) -> Tool {
    let net = NetSettings {
        allow_private: true,
    };
    let tools = tools(&SearchSettings { engines }, &net, pdf_reader()).unwrap();
    tools.into_iter().find(|tool| tool.name == name).unwrap()
}

fn pdf_reader() -> PdfReader {
    Arc::new(|bytes| lango_documents::parse::pdf_text(bytes).map_err(|error| error.to_string()))
}

async fn call_tool(tool: &Tool, args: Value) -> Result<String, ToolError> {
    tool.call(context(), args)
        .await
        .map(|output| output.content.text)
}

fn engine(kind: EngineKind, server: &PageServer, base: &str) -> SearchEngineSettings {
    SearchEngineSettings {
        base_url: Some(server.url(base)),
        ..SearchEngineSettings::new(kind)
    }
}

#[tokio::test]
async fn fetches_without_cookies_and_credentials() {
    let server = PageServer::new(|path, port| match path {
        "/start" => redirect(&format!("http://127.0.0.1:{port}/end#part")),
        _ => page("text/html; charset=utf-8", b"<title>T</title>hello"),
    });
    let fetched = anywhere().get(&server.url("/start")).await.unwrap();
    assert_eq!(
        (fetched.url.as_str(), fetched.kind),
        (server.url("/end").as_str(), ContentKind::Html)
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let request = request.to_ascii_lowercase();
        assert!(
            request.contains(concat!("user-agent: lango/", env!("CARGO_PKG_VERSION"))),
            "{request}"
        );
        for header in ["cookie", "authorization", "referer", "proxy"] {
            assert!(!request.contains(header), "{request}");
        }
    }
}

/// B103: the host of a request was approved; a redirect must not bypass that.
#[tokio::test]
async fn does_not_follow_redirects_to_other_hosts() {
    let server = PageServer::new(|path, port| match path {
        "/out" => redirect(&format!("http://localhost:{port}/steal?k=hunter2")),
        "/in" => redirect("/page"),
        _ => page("text/plain", b"hello"),
    });
    let guarded = GuardedClient::new(
        AddressPolicy::Anywhere,
        FetchLimits {
            can_leave_host: false,
            ..FetchLimits::default()
        },
    );
    let failed = guarded.get(&server.url("/out")).await.unwrap_err();
    assert!(
        matches!(&failed, FetchError::OtherHost(url) if url.contains("/steal?k=hunter2")),
        "{failed}"
    );
    assert!(guarded.get(&server.url("/in")).await.is_ok());
    assert!(
        !server
            .requests()
            .iter()
            .any(|request| request.contains("steal"))
    );
}

#[tokio::test]
async fn rejects_private_addresses_unless_allowed() {
    let server = PageServer::new(|_, _| page("text/plain", b"secret"));
    let guarded = GuardedClient::new(
        NetSettings::default().address_policy(),
        FetchLimits::default(),
    );
    for host in [
        "127.0.0.1",
        "localhost",
        "0x7f000001",
        "[::ffff:127.0.0.1]",
        "127.1",
    ] {
        let failed = guarded
            .get(&format!("http://{host}:{}/", server.port))
            .await
            .unwrap_err();
        assert!(
            matches!(failed, FetchError::PrivateAddress(_)),
            "{host}: {failed}"
        );
        assert!(
            failed
                .to_string()
                .ends_with("this address is on a private network, which is not allowed")
        );
    }
    assert!(server.requests().is_empty());
    assert!(anywhere().get(&server.url("/")).await.is_ok());
}

#[tokio::test]
async fn limits_redirects() {
    let server = PageServer::new(|path, _| match path.split_at(2) {
        ("/a", _) => redirect("/b"),
        ("/b", _) => redirect("/a"),
        ("/s", _) => redirect(path),
        ("/n", _) => reply(302, "", b""),
        ("/x", number) => redirect(&format!("/x{}", number.parse::<u32>().unwrap() + 1)),
        ("/y", "5") => page("text/plain", b"arrived"),
        (_, number) => redirect(&format!("/y{}", number.parse::<u32>().unwrap() + 1)),
    });
    assert_eq!(fetch_error(&server, "/a").await, FetchError::RedirectLoop);
    assert_eq!(fetch_error(&server, "/s").await, FetchError::RedirectLoop);
    assert_eq!(fetch_error(&server, "/n").await, FetchError::BadRedirect);
    assert_eq!(
        fetch_error(&server, "/x1").await,
        FetchError::TooManyRedirects(5)
    );
    let before = server.requests().len();
    assert_eq!(
        anywhere().get(&server.url("/y0")).await.unwrap().text(),
        "arrived"
    );
    assert_eq!(server.requests().len() - before, 6);
}

#[tokio::test]
async fn limits_large_pages_and_decompression_bombs() {
    let zeros = vec![b' '; 64 * 1024 * 1024];
    let mut bomb = Vec::new();
    GzEncoder::new(zeros.as_slice(), Compression::best())
        .read_to_end(&mut bomb)
        .unwrap();
    let mut small = Vec::new();
    GzEncoder::new(b"small".as_slice(), Compression::best())
        .read_to_end(&mut small)
        .unwrap();
    let server = PageServer::new(move |path, _| match path {
        "/bomb" => reply(
            200,
            "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n",
            &bomb,
        ),
        "/small" => reply(
            200,
            "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n",
            &small,
        ),
        "/long" => page("text/plain", &zeros[..5 * 1024 * 1024 + 1]),
        "/endless" => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".as_slice();
            [head, &zeros[..8 * 1024 * 1024]].concat()
        }
        _ => page("text/plain", &zeros[..5 * 1024 * 1024]),
    });
    let limit = FetchLimits::default().body;
    for path in ["/bomb", "/long", "/endless"] {
        assert_eq!(
            fetch_error(&server, path).await,
            FetchError::TooLarge { limit },
            "{path}"
        );
    }
    assert_eq!(
        anywhere().get(&server.url("/small")).await.unwrap().text(),
        "small"
    );
    assert_eq!(
        anywhere()
            .get(&server.url("/just"))
            .await
            .unwrap()
            .bytes
            .len(),
        limit
    );
}

#[tokio::test]
async fn times_out_on_a_silent_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let total = Duration::from_millis(200);
    let guarded = GuardedClient::new(
        AddressPolicy::Anywhere,
        FetchLimits {
            total,
            ..FetchLimits::default()
        },
    );
    let started = Instant::now();
    assert_eq!(
        guarded.get(&url).await.unwrap_err(),
        FetchError::TimedOut(total)
    );
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn accepts_only_readable_content() {
    let server = PageServer::new(|path, _| match path {
        "/image" => page("image/png", b"\x89PNG"),
        "/binary" => reply(200, "", b"\0\x01"),
        "/liar" => page("text/html", b"\x89PNG\r\n\0"),
        "/unsaid" => reply(200, "", b"<!doctype html><p>x"),
        "/pdf" => page("application/pdf", b"%PDF-1.7 x"),
        "/damaged" => reply(
            200,
            "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n",
            b"no gzip",
        ),
        "/zstd" => reply(
            200,
            "Content-Type: text/plain\r\nContent-Encoding: zstd\r\n",
            b"x",
        ),
        "/garbage" => b"\x16\x03\x01 this is no HTTP\r\n\r\n".to_vec(),
        "/cut" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nabc"
            .to_vec(),
        _ => reply(404, "Content-Type: text/html\r\n", b"<p>not here"),
    });
    assert_eq!(
        fetch_error(&server, "/image").await,
        FetchError::ContentType("image/png".to_owned())
    );
    assert_eq!(fetch_error(&server, "/binary").await, FetchError::NotText);
    assert_eq!(fetch_error(&server, "/liar").await, FetchError::NotText);
    assert_eq!(
        fetch_error(&server, "/missing").await,
        FetchError::Status(404)
    );
    assert_eq!(fetch_error(&server, "/damaged").await, FetchError::Corrupt);
    assert_eq!(
        fetch_error(&server, "/zstd").await,
        FetchError::ContentEncoding("zstd".to_owned())
    );
    assert!(matches!(
        fetch_error(&server, "/garbage").await,
        FetchError::Connection(_)
    ));
    assert!(matches!(
        fetch_error(&server, "/cut").await,
        FetchError::Connection(_)
    ));
    assert_eq!(
        anywhere().get(&server.url("/unsaid")).await.unwrap().kind,
        ContentKind::Html
    );
    let pdf = anywhere().get(&server.url("/pdf")).await.unwrap();
    assert_eq!(
        (pdf.kind, pdf.bytes.as_slice()),
        (ContentKind::Pdf, b"%PDF-1.7 x".as_slice())
    );
}

#[tokio::test]
async fn a_closed_port_is_a_connection_error() {
    let closed_port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let failed = anywhere()
        .get(&format!("http://{closed_port}/"))
        .await
        .unwrap_err();
    assert!(matches!(failed, FetchError::Connection(_)), "{failed}");
}

/// A server with pages of several content types and encodings.
fn content_server() -> PageServer {
    PageServer::new(|path, _| match path {
        "/moved" => redirect("/page"),
        "/page" => page(
            "text/html; charset=windows-1252",
            b"<title>Caf\xe9</title><nav>menu</nav>\
              <main><h2>Menu</h2><p>See <a href=/x>more</a>.</main>",
        ),
        "/japanese" => page("text/plain; charset=Shift_JIS", b"\x93\xfa\x96\x7b"),
        "/invalid" => page("text/plain", b"a\xff\x1b[2Jb"),
        "/json" => page("application/json", b"{ \"a\": 1 }\n"),
        "/long" => page("text/plain", "ä".repeat(30_000).as_bytes()),
        "/pdf" => page("application/pdf", &pdf(&[FIRST, SECOND])),
        "/attached" => page("application/octet-stream", &pdf(&[FIRST, SECOND])),
        "/broken" => page("application/pdf", b"%PDF-1.7"),
        _ => page("text/html", b"<script>x</script>"),
    })
}

#[tokio::test]
async fn search_fetch_returns_markdown_with_the_source() {
    let server = content_server();
    let tool = tool("search_fetch", Vec::new());
    let fetched = async |path: &str| call_tool(&tool, json!({ "url": server.url(path) })).await;
    let source = |path: &str, text: &str| format!("source: {}\n\n{text}", server.url(path));
    let link = server.url("/x");
    let expected = source(
        "/page",
        &format!("# Café\n\n## Menu\n\nSee [more]({link})."),
    );
    assert_eq!(fetched("/moved").await.unwrap(), expected);
    assert_eq!(
        fetched("/japanese").await.unwrap(),
        source("/japanese", "日本")
    );
    assert_eq!(
        fetched("/invalid").await.unwrap(),
        source("/invalid", "a\u{fffd}[2Jb")
    );
    assert_eq!(
        fetched("/json").await.unwrap(),
        source("/json", "{ \"a\": 1 }")
    );
    assert_eq!(
        fetched("/empty").await.unwrap(),
        source("/empty", "[the page has no text]")
    );
    for path in ["/pdf", "/attached"] {
        let pages = "# A small file\n\n[page 1]\n\nOne.\n\n[page 2]\n\nTwo.";
        assert_eq!(fetched(path).await.unwrap(), source(path, pages));
    }
    assert!(
        fetched("/broken")
            .await
            .unwrap_err()
            .0
            .contains("cannot read the PDF")
    );
}

#[tokio::test]
async fn search_fetch_truncates_long_pages() {
    let server = content_server();
    let tool = tool("search_fetch", Vec::new());
    let long = call_tool(&tool, json!({ "url": server.url("/long") }))
        .await
        .unwrap();
    assert!(
        long.matches('ä').count() == 20_000
            && long.contains("[cut after 20000 of 30000 characters")
    );
    let short = call_tool(&tool, json!({ "url": server.url("/long"), "max_chars": 5 }))
        .await
        .unwrap();
    assert_eq!(short.matches('ä').count(), 5);
}

#[tokio::test]
async fn search_fetch_rejects_invalid_arguments() {
    let server = content_server();
    let tool = tool("search_fetch", Vec::new());
    for (args, word) in [
        (
            json!({ "url": "file:///etc/passwd" }),
            "only http and https",
        ),
        (json!({ "url": "milk" }), "not a URL"),
        (
            json!({ "url": server.url("/long"), "max_chars": 0 }),
            "max_chars",
        ),
        (
            json!({ "url": server.url("/long"), "max_chars": 1_000_000 }),
            "max_chars",
        ),
    ] {
        let failed = call_tool(&tool, args).await.unwrap_err();
        assert!(failed.0.contains(word), "{failed}");
    }
}

#[tokio::test]
async fn intents_show_the_outgoing_data() {
    let tools = tools(
        &SearchSettings::default(),
        &NetSettings::default(),
        pdf_reader(),
    )
    .unwrap();
    assert_eq!(
        tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>(),
        ["search_fetch"]
    );
    let fetch = &tools[0];
    assert_eq!(
        (fetch.safety, fetch.trust),
        (Safety::Moderate, Trust::Untrusted)
    );
    let url = "https://Example.com:8443/a?data=secret";
    let intent = fetch
        .intent(context(), json!({ "url": url }))
        .await
        .unwrap();
    assert_eq!(intent.level, Safety::Moderate);
    assert_eq!(
        intent.shows,
        "fetches https://example.com:8443/a?data=secret"
    );
    assert_eq!(intent.subject, "https://example.com:8443/a?data=secret");
    assert_eq!(
        intent.pattern.as_deref(),
        Some("https://example.com:8443/*")
    );
    let rejected = fetch
        .intent(context(), json!({ "url": "http://169.254.169.254/latest" }))
        .await;
    assert!(rejected.unwrap_err().0.contains("private network"));

    let mut brave = SearchEngineSettings::new(EngineKind::Brave);
    brave.api_key = Some(Secret::new(KEY));
    let search = tool(
        "search_web",
        vec![brave, SearchEngineSettings::new(EngineKind::Duckduckgo)],
    );
    assert_eq!(
        (search.safety, search.trust),
        (Safety::Moderate, Trust::Untrusted)
    );
    let intent = search
        .intent(context(), json!({ "query": " rust\n async " }))
        .await
        .unwrap();
    let engines = "Brave (api.search.brave.com), or if that fails DuckDuckGo (html.duckduckgo.com)";
    assert_eq!(intent.shows, format!("asks {engines} for: rust async"));
    assert_eq!(
        (intent.subject.as_str(), intent.pattern),
        ("rust async", None)
    );
}

#[tokio::test]
async fn uses_the_next_engine_when_one_fails() {
    let server = PageServer::new(|path, _| match path.split('?').next().unwrap_or_default() {
        "/down/search" => reply(500, "", b""),
        "/odd/search" => page("text/html", b"<p>no JSON"),
        "/brave/res/v1/web/search" => reply(429, "", KEY.as_bytes()),
        "/duck/html/" => page(
            "text/html",
            b"<a class=result__a href='//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2F'>A</a>\
              <a class=result__snippet>words\x1b</a>",
        ),
        _ => reply(404, "", b""),
    });
    let mut brave = engine(EngineKind::Brave, &server, "/brave/");
    brave.api_key = Some(Secret::new(KEY));
    let mut engines = vec![
        engine(EngineKind::Searxng, &server, "/down"),
        engine(EngineKind::Searxng, &server, "/odd"),
        brave,
    ];
    let failed = call_tool(
        &tool("search_web", engines.clone()),
        json!({ "query": "x y&z" }),
    )
    .await
    .unwrap_err();
    let expected = "all search engines failed\n\
        SearXNG (127.0.0.1): status 500\n\
            SearXNG (127.0.0.1): the response is not the expected JSON\n\
            Brave (127.0.0.1): status 429; the rate limit is exceeded";
    assert_eq!(failed.0, expected);
    let requests = server.requests();
    assert!(
        requests[0].starts_with("GET /down/search?q=x+y%26z&format=json "),
        "{}",
        requests[0]
    );
    assert!(
        requests[2].starts_with("GET /brave/res/v1/web/search?q=x+y%26z&count=8 "),
        "{}",
        requests[2]
    );
    assert!(
        requests[2]
            .to_ascii_lowercase()
            .contains(&format!("x-subscription-token: {KEY}"))
    );
    assert!(!requests[0].contains(KEY) && !requests[1].contains(KEY));
    engines.push(engine(EngineKind::Duckduckgo, &server, "/duck"));
    let found = call_tool(&tool("search_web", engines), json!({ "query": "x" }))
        .await
        .unwrap();
    assert_eq!(found, "1. A\n   https://a.example/\n   words");
}

#[tokio::test]
async fn numbers_limits_and_redacts_results() {
    let server = PageServer::new(|path, _| {
        let result = |at: u32| {
            json!({ "title": format!("T{at} {KEY}"), "url": format!("https://a.example/{at}?k={KEY}"),
            "description": "d\u{7}" })
        };
        let results: Vec<Value> = if path.contains("q=none") {
            Vec::new()
        } else {
            (0..30).map(result).collect()
        };
        page(
            "application/json",
            json!({ "web": { "results": results } })
                .to_string()
                .as_bytes(),
        )
    });
    let mut brave = engine(EngineKind::Brave, &server, "");
    brave.api_key = Some(Secret::new(KEY));
    let tool = tool("search_web", vec![brave]);
    let found = call_tool(&tool, json!({ "query": "x", "limit": 2 }))
        .await
        .unwrap();
    assert_eq!(
        found,
        "1. T0 ***\n   https://a.example/0?k=***\n   d\n2. T1 ***\n   https://a.example/1?k=***\n   d"
    );
    let found = call_tool(&tool, json!({ "query": "x" })).await.unwrap();
    assert!(found.contains("\n8. ") && !found.contains("\n9. "));
    assert_eq!(
        call_tool(&tool, json!({ "query": "none" })).await.unwrap(),
        "nothing found for: none"
    );
    for args in [
        json!({ "query": " " }),
        json!({ "query": "x", "limit": 0 }),
        json!({ "query": "x".repeat(401) }),
    ] {
        assert!(call_tool(&tool, args.clone()).await.is_err(), "{args}");
    }
}

#[tokio::test]
async fn silent_and_redirecting_engines_fail() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = Some(format!(
        "http://ann:password@{}",
        silent.local_addr().unwrap()
    ));
    let slow = SearchEngineSettings {
        base_url,
        timeout_seconds: Some(1),
        ..SearchEngineSettings::new(EngineKind::Searxng)
    };
    let server = PageServer::new(|_, _| redirect("http://127.0.0.1:1/"));
    let mut brave = engine(EngineKind::Brave, &server, "");
    brave.api_key = Some(Secret::new(KEY));
    let failed = call_tool(
        &tool("search_web", vec![slow, brave]),
        json!({ "query": "x" }),
    )
    .await
    .unwrap_err();
    assert!(
        failed
            .0
            .contains("SearXNG (127.0.0.1): no response within 1 s"),
        "{failed}"
    );
    assert!(failed.0.contains("status 302; it redirects"), "{failed}");
    assert!(
        !failed.0.contains("password") && !failed.0.contains(KEY),
        "{failed}"
    );
}

#[test]
fn rejects_invalid_engine_settings() {
    let settings_error = |engine: SearchEngineSettings| {
        let engines = vec![SearchEngineSettings::new(EngineKind::Duckduckgo), engine];
        tools(
            &SearchSettings { engines },
            &NetSettings::default(),
            pdf_reader(),
        )
        .unwrap_err()
    };
    let with_base_url = |base: &str| SearchEngineSettings {
        base_url: Some(base.to_owned()),
        ..SearchEngineSettings::new(EngineKind::Searxng)
    };
    let reason = |reason| WebError::Engine { at: 1, reason };
    assert_eq!(
        settings_error(SearchEngineSettings::new(EngineKind::Searxng)),
        reason("searxng needs a baseUrl")
    );
    assert_eq!(
        settings_error(SearchEngineSettings::new(EngineKind::Brave)),
        reason("brave needs an apiKey")
    );
    assert_eq!(
        settings_error(with_base_url("search.example")),
        reason("baseUrl is not a URL")
    );
    assert_eq!(
        settings_error(with_base_url("ftp://search.example")),
        reason("baseUrl must start with https:// or http://")
    );
    let no_timeout = SearchEngineSettings {
        timeout_seconds: Some(0),
        ..SearchEngineSettings::new(EngineKind::Duckduckgo)
    };
    assert_eq!(
        settings_error(no_timeout).to_string(),
        "search.engines[1]: timeoutSeconds must be from 1 to 120"
    );
}
