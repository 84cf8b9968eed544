//! Cookies that are kept, and those that are not.

use lango_browser::{BrowserSettings, ProfileStore};
use lango_domain::event::{Principal, SessionId};
use lango_net::AddressPolicy;
use serde_json::json;

use crate::setup::{Fixture, TestServer};

fn fixture(profile: &str) -> Fixture {
    let settings = BrowserSettings {
        profile: Some(profile.to_owned()),
        ..BrowserSettings::default()
    };
    Fixture::with(AddressPolicy::Anywhere, settings)
}

/// A page that shows the cookies that came with the request of its script.
const PAGE: &str = "<h1 id=h></h1><script>h.textContent = 'has ' + document.cookie; if (location.search) \
    document.cookie = location.search.slice(1) + '; max-age=86400'</script>";

#[tokio::test]
async fn cookies_of_a_profile_are_there_in_the_next_session() {
    let (server, mut fixture) = (TestServer::start().await, fixture("work"));
    server.page("/c", PAGE);
    let first = json!({ "url": server.url("/c?login=ann") });
    let output = fixture.output("browser_navigate", first).await.unwrap();
    assert!(output.label.unwrap().is_private());
    fixture.context.session = SessionId::new("second");
    let second = fixture
        .navigate(&server.url("/c?theme=dark"))
        .await
        .unwrap();
    assert!(second.contains("has login=ann"), "{second}");
    // The browser itself forgets everything.
    fixture.navigator.close().await;
    fixture.context.session = SessionId::new("third");
    let third = fixture.navigate(&server.url("/c")).await.unwrap();
    assert!(
        third.contains("login=ann") && third.contains("theme=dark"),
        "{third}"
    );
    fixture.context.principal = Principal::new("someone else");
    let other = fixture.navigate(&server.url("/c")).await.unwrap();
    assert!(!other.contains("login"), "{other}");
    let store = ProfileStore::new(fixture.folder.path().join("data"));
    let listed = store.list(&Principal::local()).unwrap();
    assert_eq!(
        (listed.len(), listed[0].name.as_str(), listed[0].cookies),
        (1, "work", 2)
    );
}

#[tokio::test]
async fn a_bad_profile_is_a_clear_error() {
    let (server, bad) = (TestServer::start().await, fixture("../x"));
    server.page("/", "<h1>Home</h1>");
    let error = bad.navigate(&server.url("/")).await.unwrap_err();
    assert!(
        error.contains("browser.profile") && error.contains("no name of a profile"),
        "{error}"
    );
    let broken = fixture("work");
    let folder = broken.folder.path().join("data/local/work");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("cookies.json"), "not json").unwrap();
    let error = broken.navigate(&server.url("/")).await.unwrap_err();
    assert!(
        error.contains("lango browser profile remove work"),
        "{error}"
    );
}
