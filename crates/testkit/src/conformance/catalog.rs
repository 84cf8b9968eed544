//! The conformance suite for listing, searching, copying and deleting sessions.

mod copies;
mod deletion;
mod records;

use lango_domain::event::{EventBody, Principal, SessionId};
use lango_domain::session_catalog::{SessionCatalog, SessionInfo};
use lango_domain::{StoreError, Stores};

use super::{append_at, append_turn, key, new_event, ok, seconds, user_request, whole_turn};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`SessionCatalog`].
pub async fn check(stores: &Stores) {
    principals_are_those_with_sessions(stores).await;
    sessions_are_listed_by_use(stores).await;
    sessions_belong_to_their_principal(stores).await;
    events_are_paged(stores).await;
    prefixes_find_the_newest_names(stores).await;
    search_finds_requests_and_answers(stores).await;
    titles_can_be_changed(stores).await;
    copies::check(stores).await;
    deletion::check(stores).await;
    records::check(stores).await;
}

fn ids(sessions: Vec<SessionInfo>) -> Vec<String> {
    let name = |info: SessionInfo| info.id.to_string();
    sessions.into_iter().map(name).collect()
}

async fn names(catalog: &dyn SessionCatalog, principal: &str) -> Vec<String> {
    ids(ok(catalog.sessions(&Principal::new(principal)).await))
}

async fn principals_are_those_with_sessions(stores: &Stores) {
    assert_eq!(ok(stores.catalog.principals().await), []);
    for name in ["owner-2", "owner-1 🙂", "owner-2"] {
        append_turn(&*stores.sessions, &key(name, "s"), "t", "hello").await;
    }
    let mut principals = ok(stores.catalog.principals().await);
    principals.sort_unstable();
    assert_eq!(
        principals,
        ["owner-1 🙂", "owner-2"].map(Principal::new),
        "each once"
    );
}

async fn sessions_are_listed_by_use(stores: &Stores) {
    let (sessions, catalog) = (&*stores.sessions, &*stores.catalog);
    assert_eq!(names(catalog, "list").await, Vec::<String>::new());
    for (session, turn, second) in [
        ("a", "1", 10),
        ("b", "2", 20),
        ("c", "3", 30),
        ("a", "4", 40),
    ] {
        let turn = whole_turn(turn, "tea");
        append_at(sessions, &key("list", session), seconds(second), turn).await;
    }
    assert_eq!(names(catalog, "list").await, ["a", "c", "b"]);
    let owner = Principal::new("list");
    let info = ok(catalog.session(&owner, &SessionId::new("a")).await);
    assert_eq!(
        info,
        SessionInfo {
            id: SessionId::new("a"),
            title: "tea".to_owned(),
            events: 6,
            created: seconds(10),
            updated: seconds(40),
            is_settled: true,
        }
    );
    assert_eq!(ok(catalog.sessions(&owner).await).first(), Some(&info));
    let request = vec![new_event("5", user_request("more"))];
    append_at(sessions, &key("list", "b"), seconds(50), request).await;
    let info = ok(catalog.session(&owner, &SessionId::new("b")).await);
    assert_eq!((info.events, info.is_settled), (4, false));
    assert_eq!(names(catalog, "list").await, ["b", "a", "c"]);
}

/// B74
async fn sessions_belong_to_their_principal(stores: &Stores) {
    let (sessions, catalog) = (&*stores.sessions, &*stores.catalog);
    append_turn(sessions, &key("alice", "hers"), "t", "secret garden").await;
    let hers = SessionId::new("hers");
    let bob = Principal::new("bob");
    let missing = || StoreError::SessionNotFound("hers".to_owned());
    assert_eq!(catalog.session(&bob, &hers).await, Err(missing()));
    assert_eq!(ok(catalog.sessions(&bob).await), []);
    assert_eq!(ok(catalog.events_after(&bob, &hers, 0, 9).await), []);
    assert_eq!(ok(catalog.sessions_with_prefix(&bob, "", 9).await), []);
    assert_eq!(ok(catalog.search(&bob, "secret", 9).await), []);
    assert_eq!(ok(catalog.usage(&bob, None).await), []);
    assert_eq!(ok(catalog.audit(&bob, None, 9).await), []);
    assert_eq!(ok(catalog.prune(&bob, seconds(1_000)).await), []);
    assert_eq!(catalog.delete(&bob, &hers).await, Err(missing()));
    let copy = SessionId::new("copy");
    assert_eq!(catalog.fork(&bob, &hers, 9, &copy).await, Err(missing()));
    assert_eq!(names(catalog, "alice").await, ["hers"]);
}

async fn events_are_paged(stores: &Stores) {
    let (key, mut all) = (key("pages", "s"), Vec::new());
    for turn in ["1", "2", "3"] {
        all.extend(append_turn(&*stores.sessions, &key, turn, "hello").await);
    }
    for (after, limit, expected) in [
        (0, 100, &all[..]),
        (0, 2, &all[..2]),
        (2, 3, &all[2..5]),
        (8, 5, &all[8..]),
        (9, 5, &[]),
        (u64::MAX, 5, &[]),
        (0, 0, &[]),
    ] {
        let page = stores
            .catalog
            .events_after(&key.principal, &key.session, after, limit)
            .await;
        assert_eq!(ok(page), expected, "after {after}, at most {limit}");
    }
    let missing = SessionId::new("missing");
    let page = stores
        .catalog
        .events_after(&key.principal, &missing, 0, 9)
        .await;
    assert_eq!(ok(page), []);
}

async fn prefixes_find_the_newest_names(stores: &Stores) {
    for session in ["web-1", "cli-1", "web-2", "wet", "web", "WEB-3", "web-🙂"] {
        append_turn(&*stores.sessions, &key("prefix", session), "t", "hello").await;
    }
    let owner = Principal::new("prefix");
    for (prefix, limit, expected) in [
        ("web-", 9, &["web-🙂", "web-2", "web-1"][..]),
        ("web", 2, &["web-🙂", "web"]),
        ("cli-1", 9, &["cli-1"]),
        ("%", 9, &[]),
        ("web_", 9, &[]),
    ] {
        let found = ok(stores
            .catalog
            .sessions_with_prefix(&owner, prefix, limit)
            .await);
        let found: Vec<&str> = found.iter().map(SessionId::as_str).collect();
        assert_eq!(found, expected, "{prefix}");
    }
}

async fn search_finds_requests_and_answers(stores: &Stores) {
    let sessions = &*stores.sessions;
    let answered = |request: &str, answer: &str| {
        vec![
            new_event("t", user_request(request)),
            new_event(
                "t",
                EventBody::Note {
                    text: "a hidden note".to_owned(),
                },
            ),
            new_event("t", super::answer(answer)),
            new_event("t", EventBody::turn_done()),
        ]
    };
    let old = answered("Green TEA in ÄPFELN", "hot 100%");
    append_at(sessions, &key("search", "old"), seconds(10), old).await;
    let new = answered("black tea", "tea is green at first");
    append_at(sessions, &key("search", "new"), seconds(20), new).await;
    let owner = Principal::new("search");
    for (text, limit, expected) in [
        ("tea", 9, &[("new", 3), ("new", 1), ("old", 1)][..]),
        ("tea", 2, &[("new", 3), ("new", 1)]),
        ("GREEN  tea", 9, &[("new", 3), ("old", 1)]),
        ("äpfeln", 9, &[("old", 1)]),
        ("100%", 9, &[("old", 3)]),
        ("%", 9, &[("old", 3)]),
        ("hidden", 9, &[]),
        ("tea coffee", 9, &[]),
    ] {
        let hits = ok(stores.catalog.search(&owner, text, limit).await);
        let found: Vec<(&str, u64)> = hits
            .iter()
            .map(|hit| (hit.session.as_str(), hit.event.seq))
            .collect();
        assert_eq!(found, expected, "{text}");
        assert!(hits.iter().all(|hit| hit.event.session == hit.session));
    }
}

async fn titles_can_be_changed(stores: &Stores) {
    let catalog = &*stores.catalog;
    let (ann, session) = (Principal::new("titles"), SessionId::new("s"));
    append_turn(
        &*stores.sessions,
        &key("titles", "s"),
        "t1",
        "first request",
    )
    .await;
    let title = async || ok(catalog.session(&ann, &session).await).title;
    assert_eq!(title().await, "first request");
    ok(catalog.rename(&ann, &session, "my\nplans").await);
    assert_eq!(title().await, "my plans", "on one line");
    append_turn(
        &*stores.sessions,
        &key("titles", "s"),
        "t2",
        "second request",
    )
    .await;
    assert_eq!(title().await, "my plans", "it stays");
    let missing = SessionId::new("missing");
    for (principal, session) in [(&ann, &missing), (&Principal::new("other"), &session)] {
        assert_eq!(
            catalog.rename(principal, session, "x").await,
            Err(StoreError::SessionNotFound(session.to_string()))
        );
    }
}
