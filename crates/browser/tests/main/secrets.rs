//! Secrets that are typed into pages (B130).

use lango_domain::SecretField;
use lango_domain::secret_reference::SecretRedactor;
use serde_json::json;

use crate::setup::{Fixture, TestServer, reference};

const FIRST: &str = "canary-first-1";
const SECOND: &str = "canary-other-2";

/// A fixture whose vault has two secrets.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let known = [("A", FIRST), ("B", SECOND), ("PIN", "4711")];
    let known = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
    fixture.context.redactor = SecretRedactor::new(known);
    fixture
}

async fn picture(fixture: &Fixture) -> Result<Vec<u8>, String> {
    let args = json!({ "full_page": true });
    let output = fixture.output("browser_screenshot", args).await?;
    let data = &output.content.attachments[0].data;
    Ok(data.bytes().unwrap().to_vec())
}

/// B130: fields in the page, in a shadow root, in frames and below the fold.
#[tokio::test]
async fn a_typed_secret_is_in_no_outline_and_no_picture() {
    let (server, fixture) = (TestServer::start().await, fixture());
    server.page("/frame", "<input aria-label=Framed>");
    let html = r#"<input aria-label=Plain style="transition:all 9s"><textarea aria-label=Area></textarea><div id=host></div>
        <div contenteditable role=textbox aria-label=Rich><b style="color:red !important">x</b></div><iframe src=/frame></iframe>
        <script>host.attachShadow({mode:'open'}).innerHTML = '<input aria-label=Shadow>'</script>
        <p style="height:1500px"></p><input aria-label=Below>"#;
    fixture.open(&server, html).await;
    let outline = fixture.page_text().await;
    for name in ["Plain", "Area", "Shadow", "Rich", "Framed", "Below"] {
        let field = reference(&outline, &format!("\"{name}\""));
        let mut pictures = Vec::new();
        for value in [FIRST, SECOND] {
            let args = json!({ "action": "type", "ref": field, "text": value });
            let changed = fixture.act(args).await.unwrap();
            assert!(!changed.contains(value), "{name}: {changed}");
            let page = fixture.page_text().await;
            assert!(name == "Rich" || !page.contains(value), "{name}: {page}");
            pictures.push(picture(&fixture).await.unwrap());
        }
        assert!(pictures[0] == pictures[1], "{name} is in the picture");
    }
    // The comparison notices ordinary text.
    let html = "<input aria-label=Plain>";
    let field = reference(&fixture.open(&server, html).await, "\"Plain\"");
    let mut pictures = Vec::new();
    for value in ["ordinary-1", "ordinary-2"] {
        let args = json!({ "action": "type", "ref": field, "text": value });
        fixture.act(args).await.unwrap();
        pictures.push(picture(&fixture).await.unwrap());
    }
    assert!(pictures[0] != pictures[1]);
}

/// B130: a page that repeats a value somewhere else.
#[tokio::test]
async fn a_page_that_shows_a_secret_is_not_pictured() {
    let (server, fixture) = (TestServer::start().await, fixture());
    for shown in [
        "<p>Your key: canary-<b>first</b>-1</p>".to_owned(),
        format!("<input value={SECOND}>"),
        format!("<iframe srcdoc='<p>{FIRST}</p>'></iframe>"),
    ] {
        fixture.open(&server, &shown).await;
        let error = picture(&fixture).await.unwrap_err();
        assert!(error.contains("shows the value of a secret"), "{error}");
    }
    fixture.open(&server, "<p>nothing here</p>").await;
    picture(&fixture).await.unwrap();
}

/// B130: the host is that of the document that is typed into, not of the page around it.
#[tokio::test]
async fn the_host_of_a_secret_is_that_of_the_frame() {
    let (server, fixture) = (TestServer::start().await, fixture());
    server.page("/frame", "<input aria-label=Framed>");
    let port = server.address.port();
    let html = format!(
        "<input aria-label=Outer><iframe src='http://localhost:{port}/frame'></iframe>
        <iframe srcdoc='<input aria-label=Written>'></iframe>"
    );
    fixture.open(&server, &html).await;
    let outline = fixture.page_text().await;
    for (name, host) in [
        ("Outer", "127.0.0.1"),
        ("Framed", "localhost"),
        ("Written", ""),
    ] {
        let field = reference(&outline, &format!("\"{name}\""));
        let args = json!({ "action": "type", "ref": field, "text": "{{secret:A}}" });
        assert_eq!(fixture.hosts(&args), [host], "{name}");
    }
    // The element of an earlier document has no host any more.
    let outer = reference(&outline, "\"Outer\"");
    fixture.open(&server, "<input aria-label=Next>").await;
    let args = json!({ "action": "type", "ref": outer, "text": "{{secret:A}}" });
    assert_eq!(fixture.hosts(&args), [""]);
}

/// B130
#[tokio::test]
async fn a_secret_is_only_typed_into_a_named_field() {
    let (server, fixture) = (TestServer::start().await, fixture());
    let outline = fixture.open(&server, "<input aria-label=Name>").await;
    let field = reference(&outline, "\"Name\"");
    for text in ["{{secret:A}}", FIRST, "x {{decrypt:1}}", "4711"] {
        for args in [
            json!({ "action": "type", "ref": "Name", "text": text }),
            json!({ "action": "type", "selector": "input", "text": text }),
            json!({ "action": "wait", "text": text }),
            json!({ "action": "eval", "text": text }),
            json!({ "action": "dialog", "text": text }),
            json!({ "action": "upload", "ref": field, "text": text }),
        ] {
            for error in [
                fixture
                    .intent("browser_action", args.clone())
                    .await
                    .unwrap_err(),
                fixture.act(args.clone()).await.unwrap_err(),
            ] {
                assert!(error.contains("a secret "), "{args}: {error}");
            }
        }
    }
    let args = json!({ "action": "type", "ref": field, "text": "{{secret:A}}" });
    fixture.intent("browser_action", args).await.unwrap();
    assert_eq!(
        fixture.secret_fields("browser_action"),
        [SecretField::Text("text")]
    );
}
