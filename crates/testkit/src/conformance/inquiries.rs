//! The conformance suite for inquiries.

use lango_domain::Stores;
use lango_domain::event::{Principal, TurnId, Usage};
use lango_domain::inquiries::{
    ExpiryRule, Finder, Inquiry, InquiryPriority, InquiryStatus, InquiryStore, LastOffer,
    NewInquiry, Resolution, ScanPosition, ScanResult,
};
use lango_domain::session::SessionKey;

use super::{append_turn, key, knowledge, ok, seconds};

/// Runs the whole suite on empty stores.
///
/// # Panics
/// If the store violates the contract of [`InquiryStore`].
pub async fn check(stores: &Stores) {
    scans_save_inquiries(stores).await;
    outdated_scans_do_nothing(stores).await;
    pending_inquiries_are_limited(stores).await;
    model_calls_count_for_the_principal(stores).await;
    only_pending_inquiries_are_offered(stores).await;
    only_pending_inquiries_are_dismissed(stores).await;
    answers_resolve_inquiries(stores).await;
    inquiries_lapse_after_some_offers(stores).await;
    scans_have_usage(stores).await;
    inquiries_belong_to_their_principal(stores).await;
}

fn position(through: u64) -> ScanPosition {
    ScanPosition {
        answers: through,
        gaps: through,
    }
}

fn new_inquiry(topic: &str) -> NewInquiry {
    NewInquiry {
        topic: topic.to_owned(),
        question: format!("what about {topic}?"),
        reason: "it matters".to_owned(),
        priority: InquiryPriority::High,
        found_by: Finder::Rule,
        turn: TurnId::new("t"),
    }
}

/// Returns the result of scanning one event.
pub(super) fn scan(after: u64, topics: &[&str]) -> ScanResult {
    ScanResult {
        after: position(after),
        through: position(after + 1),
        by: Finder::Rule,
        at: seconds(100),
        resolutions: Vec::new(),
        new_inquiries: topics.iter().map(|topic| new_inquiry(topic)).collect(),
        max_pending: 100,
        expiry: ExpiryRule {
            offers: 100,
            before: seconds(0),
        },
    }
}

/// Creates a session and its inquiries. Returns the session and the inquiries, oldest first.
async fn session_with(
    stores: &Stores,
    principal: &str,
    topics: &[&str],
) -> (SessionKey, Vec<Inquiry>) {
    let session = key(principal, "s");
    append_turn(&*stores.sessions, &session, "t", "hello").await;
    let saved = stores.inquiries.save_scan(&session, scan(0, topics));
    ok(saved.await);
    let pending = ok(stores.inquiries.pending(&session.principal).await);
    (session, pending)
}

/// Returns the inquiry about a topic.
async fn about(store: &dyn InquiryStore, principal: &Principal, topic: &str) -> Inquiry {
    let found = ok(store.inquiries(principal).await);
    let mut found = found.into_iter().filter(|inquiry| inquiry.topic == topic);
    found
        .next()
        .unwrap_or_else(|| unreachable!("an inquiry about {topic}"))
}

fn topics(inquiries: &[Inquiry]) -> Vec<&str> {
    inquiries
        .iter()
        .map(|inquiry| inquiry.topic.as_str())
        .collect()
}

async fn scans_save_inquiries(stores: &Stores) {
    let owner = Principal::new("scan");
    assert_eq!(ok(stores.inquiries.pending(&owner).await), []);
    let (session, pending) = session_with(stores, "scan", &["sister", "boss"]).await;
    assert_eq!(topics(&pending), ["sister", "boss"], "oldest first");
    let expected = Inquiry {
        id: pending[0].id,
        topic: "sister".to_owned(),
        question: "what about sister?".to_owned(),
        why: "it matters".to_owned(),
        priority: InquiryPriority::High,
        found_by: Finder::Rule,
        status: InquiryStatus::Pending,
        session: session.session.clone(),
        turn: TurnId::new("t"),
        created: seconds(100),
        offers: 0,
        offered: None,
        answer: None,
        knowledge_key: None,
        closed: None,
    };
    assert_eq!(pending[0], expected);
    let all = ok(stores.inquiries.inquiries(&owner).await);
    assert_eq!(topics(&all), ["boss", "sister"], "newest first");
    let progress = ok(stores.inquiries.progress(&session).await);
    assert_eq!(progress.position, position(1));
}

async fn outdated_scans_do_nothing(stores: &Stores) {
    let (session, _) = session_with(stores, "outdated", &["sister"]).await;
    let store = &*stores.inquiries;
    ok(store.save_scan(&session, scan(0, &["brother"])).await);
    let pending = ok(store.pending(&session.principal).await);
    assert_eq!(topics(&pending), ["sister"]);
    assert_eq!(ok(store.progress(&session).await).position, position(1));
    ok(store.save_scan(&session, scan(1, &["brother"])).await);
    let pending = ok(store.pending(&session.principal).await);
    assert_eq!(topics(&pending), ["sister", "brother"]);
    assert_eq!(ok(store.progress(&session).await).position, position(2));
}

async fn pending_inquiries_are_limited(stores: &Stores) {
    let (session, pending) = session_with(stores, "limit", &["a"]).await;
    let store = &*stores.inquiries;
    let limited = |after, topics| ScanResult {
        max_pending: 2,
        ..scan(after, topics)
    };
    ok(store.save_scan(&session, limited(1, &["b", "c"])).await);
    let found = ok(store.pending(&session.principal).await);
    assert_eq!(topics(&found), ["a", "b"]);
    ok(store
        .dismiss(&session.principal, pending[0].id, seconds(200))
        .await);
    ok(store.save_scan(&session, limited(2, &["c"])).await);
    let found = ok(store.pending(&session.principal).await);
    assert_eq!(topics(&found), ["b", "c"], "only pending ones count");
}

async fn model_calls_count_for_the_principal(stores: &Stores) {
    let (session, _) = session_with(stores, "model", &[]).await;
    let store = &*stores.inquiries;
    assert_eq!(ok(store.progress(&session).await).last_model_call, None);
    let by_model = |after, second| ScanResult {
        by: Finder::Model,
        at: seconds(second),
        ..scan(after, &[])
    };
    ok(store.save_scan(&session, by_model(1, 300)).await);
    ok(store.save_scan(&session, scan(2, &[])).await);
    for other in [session, key("model", "another session")] {
        let progress = ok(store.progress(&other).await);
        assert_eq!(progress.last_model_call, Some(seconds(300)));
    }
    let progress = ok(store.progress(&key("others", "s")).await);
    assert_eq!(progress.last_model_call, None, "B74");
}

async fn only_pending_inquiries_are_offered(stores: &Stores) {
    let (session, pending) = session_with(stores, "offer", &["a", "b"]).await;
    let (store, owner) = (&*stores.inquiries, &session.principal);
    let other = key("offer", "other");
    append_turn(&*stores.sessions, &other, "t", "hello").await;
    let id = pending[0].id;
    assert!(ok(store.offer(&session, id, seconds(1)).await));
    assert!(ok(store.offer(&other, id, seconds(2)).await));
    let found = about(store, owner, "a").await;
    let offer = |session| LastOffer {
        session,
        at: seconds(2),
    };
    assert_eq!(found.offers, 2);
    assert_eq!(found.offered, Some(offer(Some(other.session.clone()))));
    ok(stores.catalog.delete(owner, &other.session).await);
    let found = about(store, owner, "a").await;
    assert_eq!(found.offered, Some(offer(None)));
    assert!(ok(store.dismiss(owner, id, seconds(3)).await));
    assert!(!ok(store.offer(&session, id, seconds(4)).await));
    assert!(!ok(store.offer(&session, id + 1_000, seconds(4)).await));
    assert_eq!(about(store, owner, "a").await.offers, 2);
    assert_eq!(about(store, owner, "b").await.offers, 0);
}

async fn only_pending_inquiries_are_dismissed(stores: &Stores) {
    let (session, pending) = session_with(stores, "dismiss", &["a", "b"]).await;
    let (store, owner) = (&*stores.inquiries, &session.principal);
    assert!(ok(store.dismiss(owner, pending[0].id, seconds(3)).await));
    assert!(!ok(store.dismiss(owner, pending[0].id, seconds(4)).await));
    assert!(!ok(store
        .dismiss(owner, pending[1].id + 1_000, seconds(4))
        .await));
    assert_eq!(topics(&ok(store.pending(owner).await)), ["b"]);
    let dismissed = about(store, owner, "a").await;
    assert_eq!(dismissed.status, InquiryStatus::Dismissed);
    assert_eq!(dismissed.closed, Some(seconds(3)));
}

async fn answers_resolve_inquiries(stores: &Stores) {
    let (session, pending) = session_with(stores, "resolve", &["a", "b", "c"]).await;
    let (store, owner) = (&*stores.inquiries, &session.principal);
    assert!(ok(store.dismiss(owner, pending[2].id, seconds(3)).await));
    let resolution = |inquiry: &Inquiry, key: Option<&str>| Resolution {
        inquiry: inquiry.id,
        answer: format!("answer to {}", inquiry.topic),
        entry: key.map(|key| knowledge::entry(key, "the answer")),
    };
    let answered = ScanResult {
        resolutions: vec![
            resolution(&pending[0], Some("key a")),
            resolution(&pending[1], None),
            resolution(&pending[2], Some("key c")),
        ],
        at: seconds(500),
        ..scan(1, &[])
    };
    ok(store.save_scan(&session, answered.clone()).await);
    for (topic, key) in [("a", Some("key a".to_owned())), ("b", None)] {
        let resolved = about(store, owner, topic).await;
        assert_eq!(resolved.status, InquiryStatus::Resolved);
        assert_eq!(resolved.answer, Some(format!("answer to {topic}")));
        assert_eq!(resolved.knowledge_key, key);
        assert_eq!(resolved.closed, Some(seconds(500)));
    }
    let dismissed = about(store, owner, "c").await;
    assert_eq!(
        (dismissed.status, dismissed.answer),
        (InquiryStatus::Dismissed, None)
    );
    let entries = ok(stores.knowledge.entries(owner).await);
    let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["key a"]);
}

async fn inquiries_lapse_after_some_offers(stores: &Stores) {
    let (session, pending) = session_with(stores, "lapse", &["a", "b", "c"]).await;
    let store = &*stores.inquiries;
    for (inquiry, second) in [(0, 1), (0, 2), (1, 1), (1, 9), (2, 1)] {
        let offered = store.offer(&session, pending[inquiry].id, seconds(second));
        assert!(ok(offered.await));
    }
    let rule = ScanResult {
        expiry: ExpiryRule {
            offers: 2,
            before: seconds(5),
        },
        ..scan(1, &[])
    };
    ok(store.save_scan(&session, rule).await);
    let left = ok(store.pending(&session.principal).await);
    assert_eq!(topics(&left), ["b", "c"], "offered lately, or only once");
    let lapsed = about(store, &session.principal, "a").await;
    assert_eq!(lapsed.status, InquiryStatus::Lapsed);
    assert_eq!(lapsed.closed, Some(seconds(100)));
}

async fn scans_have_usage(stores: &Stores) {
    let session = key("usage", "s");
    let usage = Usage {
        input: 7,
        ..Usage::default()
    };
    let recorded = stores
        .inquiries
        .record_usage(&session, TurnId::new("t"), usage.clone());
    ok(recorded.await);
    let rows = ok(stores.catalog.usage(&session.principal, None).await);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].turn.as_str(), &rows[0].usage), ("t", &usage));
}

/// B74
async fn inquiries_belong_to_their_principal(stores: &Stores) {
    let (hers, pending) = session_with(stores, "alice", &["a"]).await;
    let (his, his_pending) = session_with(stores, "bob", &["a"]).await;
    assert_eq!((pending.len(), his_pending.len()), (1, 1));
    let store = &*stores.inquiries;
    let id = pending[0].id;
    assert!(!ok(store.offer(&his, id, seconds(1)).await));
    assert!(!ok(store.dismiss(&his.principal, id, seconds(1)).await));
    let answered = ScanResult {
        resolutions: vec![Resolution {
            inquiry: id,
            answer: "his".to_owned(),
            entry: None,
        }],
        ..scan(1, &[])
    };
    ok(store.save_scan(&his, answered).await);
    assert_eq!(ok(store.inquiries(&hers.principal).await), pending);
    assert_eq!(ok(store.progress(&hers).await).position, position(1));
}
