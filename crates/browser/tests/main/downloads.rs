//! Files that pages offer.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use lango_domain::Safety;
use serde_json::json;

use crate::setup::{Fixture, TestServer, reference};

fn file(name: &str, media_type: &str, content: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Disposition: attachment; filename=\"{name}\"\r\nContent-Length: {}\r\n\r\n{content}",
        content.len()
    )
}

fn saved(fixture: &Fixture) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixture.folder.path().join("downloads"));
    let entries = entries.into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[tokio::test]
async fn an_offered_file_is_saved_after_a_question_that_describes_it() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server.page(
        "/file",
        &file("../../.evil name.sh", "text/x-sh", "echo hi"),
    );
    let error = fixture
        .intent("browser_action", json!({ "action": "download" }))
        .await
        .unwrap_err();
    assert!(error.contains("no file was offered"), "{error}");
    let outline = fixture
        .open(&server, "<h1>Shop</h1><a href=/file>Get</a>")
        .await;
    let get = json!({ "action": "click", "ref": reference(&outline, "\"Get\"") });
    let offered = fixture.act(get).await.unwrap();
    let origin = server.url("");
    assert!(
        offered.contains("(text/x-sh, 7 bytes, from ") && offered.contains("it was not saved"),
        "{offered}"
    );
    assert_eq!(saved(&fixture), Vec::<PathBuf>::new());
    let download = json!({ "action": "download" });
    let intent = fixture
        .intent("browser_action", download.clone())
        .await
        .unwrap();
    assert_eq!((intent.level, intent.pattern), (Safety::Dangerous, None));
    for part in ["evil name.sh", "text/x-sh", "7 bytes", &origin, "downloads"] {
        assert!(intent.shows.contains(part), "{part} in {}", intent.shows);
    }
    let output = fixture.output("browser_action", download).await.unwrap();
    assert!(output.label.unwrap().is_untrusted());
    let text = output.content.text;
    assert!(
        text.contains("evil name.sh (7 bytes) from http://"),
        "{text}"
    );
    let files = saved(&fixture);
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), "echo hi");
    assert!(
        !files[0]
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with('.')
    );
    // The permission ended with the call.
    let again = json!({ "action": "click", "ref": "Get" });
    let offered = fixture.act(again).await.unwrap();
    assert!(offered.contains("it was not saved"), "{offered}");
    assert_eq!(saved(&fixture).len(), 1);
}

#[tokio::test]
async fn forms_scripts_and_new_tabs_offer_files_too() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server.page("/file", &file("report.csv", "text/csv", "a,b"));
    let html = r#"<form method=post action=/file><input name=q value=1><button>Export</button></form>
        <a href=/file target=_blank>Tab</a><a id=blob>Blob</a>
        <script>blob.href = URL.createObjectURL(new Blob(['made here'])); blob.download = 'made.txt'</script>"#;
    let outline = fixture.open(&server, html).await;
    let click = |name: &str| json!({ "action": "click", "ref": reference(&outline, name) });
    let offered = fixture.act(click("\"Blob\"")).await.unwrap();
    assert!(
        offered.contains("made.txt (type unknown, 9 bytes"),
        "{offered}"
    );
    let saved_blob = fixture.act(json!({ "action": "download" })).await.unwrap();
    assert!(saved_blob.contains("made.txt (9 bytes)"), "{saved_blob}");
    let offered = fixture.act(click("\"Export\"")).await.unwrap();
    assert!(
        offered.contains("report.csv (text/csv, 3 bytes"),
        "{offered}"
    );
    let error = fixture
        .act(json!({ "action": "download" }))
        .await
        .unwrap_err();
    assert!(error.contains("response to a form"), "{error}");
    let again = json!({ "action": "download", "ref": reference(&outline, "\"Export\"") });
    let text = fixture.act(again).await.unwrap();
    assert!(text.contains("report.csv (3 bytes)"), "{text}");
    let offered = fixture.act(click("\"Tab\"")).await.unwrap();
    assert!(offered.contains("report.csv"), "{offered}");
}

#[tokio::test]
async fn a_file_is_saved_from_its_address() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server
        .page("/a.zip", &file("a.zip", "application/zip", "zip"))
        .page(
            "/moved",
            "HTTP/1.1 302 Found\r\nLocation: http://localhost/a\r\nContent-Length: 0\r\n\r\n",
        )
        .page(
            "/plain.txt",
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nplain",
        );
    for (path, name) in [("/a.zip", "a.zip"), ("/plain.txt", "plain.txt")] {
        let args = json!({ "action": "download", "text": server.url(path) });
        let intent = fixture
            .intent("browser_action", args.clone())
            .await
            .unwrap();
        assert!(intent.shows.contains(&server.url(path)), "{}", intent.shows);
        let text = fixture.act(args).await.unwrap();
        assert!(text.contains(name), "{text}");
    }
    assert_eq!(saved(&fixture).len(), 2);
    for (text, part) in [
        ("file:///etc/passwd", "file"),
        ("notes.txt", "no file named notes.txt"),
        (&server.url("/missing"), ""),
        (&server.url("/moved"), ""),
    ] {
        let error = fixture
            .act(json!({ "action": "download", "text": text }))
            .await;
        let error = error.unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert_eq!(saved(&fixture).len(), 2);
}

#[tokio::test]
async fn another_file_than_the_approved_one_is_refused() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server.page("/file", &file("good.txt", "text/plain", "good"));
    let outline = fixture.open(&server, "<a href=/file>Get</a>").await;
    let get = json!({ "action": "click", "ref": reference(&outline, "\"Get\"") });
    fixture.act(get).await.unwrap();
    server.page(
        "/file",
        &file("evil.exe", "application/x-msdownload", "evil"),
    );
    let error = fixture
        .act(json!({ "action": "download" }))
        .await
        .unwrap_err();
    assert!(
        error.contains("another file came") && error.contains("evil.exe"),
        "{error}"
    );
    assert_eq!(saved(&fixture), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn large_and_broken_files_leave_nothing() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Disposition: attachment; filename=";
    // The server promises more than it sends, and more than is accepted.
    server
        .page(
            "/half",
            &format!("{head}half.zip\r\nContent-Length: 1000\r\n\r\nhalf"),
        )
        .page(
            "/large",
            &format!("{head}large.zip\r\nContent-Length: 99000000\r\n\r\nlarge"),
        )
        .bytes(
            "/endless",
            &[
                format!("{head}endless.zip\r\n\r\n").as_bytes(),
                &vec![b'x'; 60 << 20],
            ]
            .concat(),
        );
    let outline = fixture
        .open(
            &server,
            "<a href=/half>Half</a> <a href=/large>Large</a> <a href=/endless>Endless</a>",
        )
        .await;
    for (name, part) in [
        ("Half", "broke off"),
        ("Large", "larger than 50 MiB"),
        ("Endless", "larger than 50 MiB"),
    ] {
        let click =
            json!({ "action": "click", "ref": reference(&outline, &format!("\"{name}\"")) });
        fixture.act(click).await.unwrap();
        let start = Instant::now();
        let error = fixture
            .act(json!({ "action": "download" }))
            .await
            .unwrap_err();
        assert!(error.contains(part), "{name}: {error}");
        assert!(start.elapsed() < Duration::from_secs(30), "{name}");
    }
    let intent = json!({ "action": "download", "text": "large.zip" });
    let error = fixture.intent("browser_action", intent).await.unwrap_err();
    assert!(error.contains("larger than 50 MiB"), "{error}");
    assert_eq!(saved(&fixture), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_page_that_offers_many_files_is_survived() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server.page("/file", &file("many.txt", "text/plain", "x"));
    let html = "<button onclick=\"for (let i = 0; i < 50; i++) { const a = document.createElement('a'); a.href = '/file?' + i; a.download = ''; a.click() }\">Many</button>";
    let outline = fixture.open(&server, html).await;
    let click = json!({ "action": "click", "ref": reference(&outline, "\"Many\"") });
    let text = fixture.act(click).await.unwrap();
    assert!(text.matches("offers the file").count() <= 10, "{text}");
    assert_eq!(saved(&fixture), Vec::<PathBuf>::new());
}
