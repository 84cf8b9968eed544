//! The outbox and the inbox.

use lango_domain::automation::{
    AutomationStore, ClaimDeliveries, Delivery, DeliveryEnd, DeliveryMessage, DeliveryOccasion,
    DeliveryQuery, DeliveryState, InboxSelection, LeaseNumber, NewDelivery, NewInboxEntry, RunEnd,
    RunId, RunState,
};
use lango_domain::event::SessionId;
use lango_domain::{Label, Stores};

use super::super::{append_turn, key};
use super::{acquire, background, claim_own, end, ok, principal, seconds};

pub(super) async fn check(stores: &Stores) {
    let store = &*stores.automation;
    deliveries_have_their_own_state(store).await;
    deliveries_are_retried(store).await;
    an_inbox_entry_comes_with_its_delivery(store).await;
    the_inbox_is_read_and_cleared(store).await;
    both_belong_to_their_principal(store).await;
    a_deleted_session_is_not_named(stores).await;
}

pub(super) fn delivery(owner: &str, run: Option<RunId>) -> NewDelivery {
    NewDelivery {
        run,
        principal: principal(owner),
        occasion: DeliveryOccasion::Failure,
        target: "file:/tmp/report.md".to_owned(),
        message: DeliveryMessage {
            from: "stretch".to_owned(),
            title: "Stretch".to_owned(),
            text: "up\nand down 안녕".to_owned(),
            session: Some(SessionId::new("s")),
            label: Label::untrusted("a page"),
            workspace: None,
        },
        created: seconds(10),
    }
}

pub(super) fn query(owner: &str) -> DeliveryQuery {
    DeliveryQuery {
        principal: principal(owner),
        run: None,
        state: None,
        limit: 99,
    }
}

/// Claims deliveries and returns those of one principal.
async fn claim(
    store: &dyn AutomationStore,
    lease: LeaseNumber,
    at: i64,
    owner: &str,
) -> Vec<Delivery> {
    let claim = ClaimDeliveries {
        at: seconds(at),
        retry_at: seconds(at + 60),
        limit: 1_000,
    };
    let mut claimed = ok(store.claim_deliveries(lease, claim).await);
    claimed.retain(|delivery| delivery.principal.as_str() == owner);
    claimed
}

/// B120: the end of a run and its deliveries are stored together, and then have states of their own.
async fn deliveries_have_their_own_state(store: &dyn AutomationStore) {
    let lease = acquire(store, "sends").await;
    let owner = principal("sent");
    let run = ok(store.submit_run(background("sent", 1)).await).id;
    claim_own(store, lease, 1, "sent").await;
    let report = RunEnd {
        deliveries: vec![delivery("sent", Some(run)), delivery("sent", Some(run))],
        ..end(run, RunState::Failed, 9)
    };
    ok(store.end_run(lease, report.clone()).await);
    assert!(!ok(store.end_run(lease, report).await));
    let sent = ok(store.deliveries(query("sent")).await);
    assert_eq!(sent.len(), 2, "an end that is not stored delivers nothing");
    assert_eq!(sent[0].message, delivery("sent", None).message);
    assert_eq!(
        (sent[0].state, sent[0].attempts),
        (DeliveryState::Pending, 0)
    );
    let states = async || {
        let run = ok(store.run(&owner, run).await);
        run.map(|run| (run.state, run.delivery))
    };
    let failed = RunState::Failed;
    assert_eq!(states().await, Some((failed, Some(DeliveryState::Pending))));
    for (at, (delivery, expected)) in [
        (&sent[0], DeliveryState::Pending),
        (&sent[1], DeliveryState::Delivered),
    ]
    .into_iter()
    .enumerate()
    {
        let delivered = DeliveryEnd::Delivered { inbox: None };
        let is_pending = store.finish_attempt(lease, delivery.id, delivered.clone());
        assert!(ok(is_pending.await));
        let again = store.finish_attempt(lease, delivery.id, delivered);
        assert!(!ok(again.await), "delivery {at} is over");
        assert_eq!(states().await, Some((failed, Some(expected))));
    }
}

async fn deliveries_are_retried(store: &dyn AutomationStore) {
    let lease = acquire(store, "retries").await;
    let id = ok(store.enqueue(lease, vec![delivery("retried", None)]).await)[0];
    assert_eq!(claim(store, lease, 9, "retried").await, []);
    let first = claim(store, lease, 10, "retried").await.remove(0);
    assert_eq!((first.id, first.attempts), (id, 1));
    assert_eq!(claim(store, lease, 69, "retried").await, [], "it is taken");
    let again = claim(store, lease, 70, "retried").await.remove(0);
    assert_eq!(again.attempts, 2, "its process ended before it reported");
    let retry = DeliveryEnd::Retry {
        at: seconds(200),
        error: "connection refused".to_owned(),
    };
    assert!(ok(store.finish_attempt(lease, id, retry).await));
    let next = ok(store.agenda().await).next_delivery;
    assert!(next.is_some_and(|next| next <= seconds(200)));
    assert_eq!(claim(store, lease, 199, "retried").await, []);
    let last = claim(store, lease, 200, "retried").await.remove(0);
    assert_eq!(last.last_error.as_deref(), Some("connection refused"));
    let failed = DeliveryEnd::Failed {
        error: "given up".to_owned(),
        inbox: None,
    };
    assert!(ok(store.finish_attempt(lease, id, failed).await));
    assert_eq!(claim(store, lease, 9_999, "retried").await, []);
    let found = ok(store.deliveries(query("retried")).await).remove(0);
    assert_eq!(found.state, DeliveryState::Failed);
    assert_eq!(found.last_error.as_deref(), Some("given up"));
    let pending = DeliveryQuery {
        state: Some(DeliveryState::Pending),
        ..query("retried")
    };
    assert_eq!(ok(store.deliveries(pending).await), []);
}

fn entry(owner: &str, title: &str) -> NewInboxEntry {
    let mut message = delivery(owner, None).message;
    message.title = title.to_owned();
    NewInboxEntry {
        at: seconds(10),
        principal: principal(owner),
        message,
    }
}

/// B120
async fn an_inbox_entry_comes_with_its_delivery(store: &dyn AutomationStore) {
    let lease = acquire(store, "fills").await;
    let id = ok(store.enqueue(lease, vec![delivery("filled", None)]).await)[0];
    for expected in [true, false] {
        let end = DeliveryEnd::Delivered {
            inbox: Some(entry("filled", "once")),
        };
        assert_eq!(ok(store.finish_attempt(lease, id, end).await), expected);
    }
    let owner = principal("filled");
    let entries = ok(store.inbox(&owner, InboxSelection::All, 9).await);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].title, "once");
    let id = ok(store.enqueue(lease, vec![delivery("filled", None)]).await)[0];
    for expected in [true, false] {
        let end = DeliveryEnd::Failed {
            error: "given up".to_owned(),
            inbox: Some(entry("filled", "not delivered")),
        };
        assert_eq!(ok(store.finish_attempt(lease, id, end).await), expected);
    }
    let entries = ok(store.inbox(&owner, InboxSelection::All, 9).await);
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].title, "not delivered");
    assert_eq!(entries[0].session, Some(SessionId::new("s")));
    assert!(entries[0].label.is_untrusted() && !entries[0].is_read);
}

async fn the_inbox_is_read_and_cleared(store: &dyn AutomationStore) {
    let owner = principal("reader");
    let mut ids = Vec::new();
    for title in ["1", "2", "3", "4"] {
        ids.push(ok(store.add_inbox_entry(entry("reader", title)).await).id);
    }
    let titles = async |selection| -> Vec<String> {
        let entries = ok(store.inbox(&owner, selection, 3).await);
        entries.into_iter().map(|entry| entry.title).collect()
    };
    assert_eq!(titles(InboxSelection::All).await, ["4", "3", "2"]);
    let some = InboxSelection::Entries(vec![ids[0], ids[1]]);
    assert_eq!(ok(store.mark_read(&owner, some.clone()).await), 2);
    assert_eq!(ok(store.mark_read(&owner, some.clone()).await), 0);
    assert_eq!(titles(some).await, ["2", "1"]);
    assert_eq!(titles(InboxSelection::Read).await, ["2", "1"]);
    assert_eq!(titles(InboxSelection::Unread).await, ["4", "3"]);
    assert_eq!(ok(store.clear_inbox(&owner, InboxSelection::Read).await), 2);
    let one = InboxSelection::Entries(vec![ids[3]]);
    assert_eq!(ok(store.clear_inbox(&owner, one).await), 1);
    assert_eq!(titles(InboxSelection::All).await, ["3"]);
    assert_eq!(ok(store.clear_inbox(&owner, InboxSelection::All).await), 1);
}

/// B74
async fn both_belong_to_their_principal(store: &dyn AutomationStore) {
    let lease = acquire(store, "separate").await;
    ok(store.enqueue(lease, vec![delivery("erin", None)]).await);
    let hers = ok(store.add_inbox_entry(entry("erin", "private")).await);
    let frank = principal("frank");
    assert_eq!(ok(store.deliveries(query("frank")).await), []);
    for selection in [InboxSelection::All, InboxSelection::Entries(vec![hers.id])] {
        assert_eq!(ok(store.inbox(&frank, selection.clone(), 9).await), []);
        assert_eq!(ok(store.mark_read(&frank, selection.clone()).await), 0);
        assert_eq!(ok(store.clear_inbox(&frank, selection).await), 0);
    }
    let left = ok(store
        .inbox(&principal("erin"), InboxSelection::Unread, 9)
        .await);
    assert_eq!(left, [hers]);
}

async fn a_deleted_session_is_not_named(stores: &Stores) {
    let key = key("nameless", "s");
    append_turn(&*stores.sessions, &key, "t", "hello").await;
    let store = &*stores.automation;
    ok(store.add_inbox_entry(entry("nameless", "a")).await);
    ok(stores.catalog.delete(&key.principal, &key.session).await);
    let left = ok(store.inbox(&key.principal, InboxSelection::All, 9).await);
    assert_eq!(left[0].session, None);
    assert_eq!(left[0].title, "a");
}
