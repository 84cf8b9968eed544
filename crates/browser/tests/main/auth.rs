//! Sites that ask for a user name and a password.

use lango_browser::BrowserSettings;
use lango_domain::secret::Secret;
use lango_net::AddressPolicy;
use serde_json::json;

use crate::setup::{Fixture, TestServer};

/// `ann:secret password` as a header.
const HEADER: &str = "authorization: basic yw5uonnly3jldcbwyxnzd29yza==";

fn fixture(site: &str, value: &str) -> Fixture {
    let settings = BrowserSettings {
        credentials: [(site.to_owned(), Secret::new(value))].into(),
        ..BrowserSettings::default()
    };
    Fixture::with(AddressPolicy::Anywhere, settings)
}

#[tokio::test]
async fn a_locked_page_says_what_it_needs() {
    let (server, fixture) = (TestServer::start().await, Fixture::new());
    server.locked_page("/in", HEADER, "<h1>Inside</h1>");
    let text = fixture.navigate(&server.url("/in")).await.unwrap();
    for part in [
        "127.0.0.1 asks for a user name",
        "\"Staff\"",
        "lango secret set",
        "browser.credentials",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = fixture.navigate(&server.url("/missing")).await.unwrap();
    assert!(text.contains("error 404"), "{text}");
}

#[tokio::test]
async fn stored_credentials_open_it_and_make_it_private() {
    let server = TestServer::start().await;
    let fixture = fixture("127.0.0.1", "ann:secret password");
    server
        .locked_page("/in", HEADER, "<h1>Inside</h1><iframe src=/frame></iframe>")
        .locked_page("/frame", HEADER, "<p>also inside</p>");
    let args = json!({ "url": server.url("/in") });
    let output = fixture.output("browser_navigate", args).await.unwrap();
    let (text, label) = (output.content.text, output.label.unwrap());
    assert!(
        text.contains("# Inside") && text.contains("also inside"),
        "{text}"
    );
    assert!(label.is_private() && label.is_untrusted());
    assert!(!text.contains("secret password"), "{text}");
}

#[tokio::test]
async fn wrong_credentials_end_and_other_hosts_get_none() {
    let server = TestServer::start().await;
    server.locked_page("/in", HEADER, "<h1>Inside</h1>");
    let wrong = fixture(&server.address.to_string(), "ann:wrong");
    let text = wrong.navigate(&server.url("/in")).await.unwrap();
    assert!(text.contains("it refused those of the setting"), "{text}");
    let tries = server.requests().len();
    assert!(tries <= 4, "{tries} requests");
    let other = fixture("other.example", "ann:secret password");
    let text = other.navigate(&server.url("/in")).await.unwrap();
    assert!(text.contains("lango secret set"), "{text}");
}
