//! The outbox on the real store, with a clock that the tests set.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lango_automation::delivery::{
    DeliveryChannels, DeliveryOutbox, MAX_ATTEMPTS, OutboxPass, SessionChannel, retry_delay,
};
use lango_domain::automation::{
    AutomationStore, ClaimDeliveries, Delivery, DeliveryMessage, DeliveryOccasion, DeliveryQuery,
    DeliveryState, DeliveryStore, InboxEntry, InboxSelection, JobAction, LeaseClaim, LeaseNumber,
    LeaseOutcome, LeaseStore, NewDelivery, NewRun, RunClaim, RunEnd, RunId, RunKind, RunSpec,
    RunState, RunStore,
};
use lango_domain::event::Principal;
use lango_domain::session::{HistoryWindow, SessionKey, SessionStore};
use lango_domain::{Label, StoreError};
use lango_store::{SqliteStore, StoreLocation};
use tokio_util::sync::CancellationToken;

use super::webhook::{Receiver, header, serve_statuses};
use super::{DeliveryHarness, send};

struct OutboxHarness {
    delivery: DeliveryHarness,
    store: Arc<SqliteStore>,
    now: Arc<Mutex<Timestamp>>,
    lease: LeaseNumber,
}

impl OutboxHarness {
    async fn new() -> Self {
        let store = Arc::new(SqliteStore::open(StoreLocation::Memory).unwrap());
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let lease = acquire(&store, now).await;
        Self {
            delivery: DeliveryHarness::new(),
            store,
            now: Arc::new(Mutex::new(now)),
            lease,
        }
    }

    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }

    fn advance(&self, by: SignedDuration) {
        *self.now.lock().unwrap() += by;
    }

    fn channels(&self) -> DeliveryChannels {
        DeliveryChannels {
            sessions: SessionChannel::new(self.store.clone(), |_, _| {}),
            ..self.delivery.channels()
        }
    }

    fn outbox(&self) -> DeliveryOutbox {
        let now = Arc::clone(&self.now);
        let clock = Arc::new(move || *now.lock().unwrap());
        let store: Arc<dyn AutomationStore> = self.store.clone();
        DeliveryOutbox::new(store, self.channels(), clock)
    }

    async fn pass(&self) -> OutboxPass {
        self.outbox().deliver_due(self.lease).await.unwrap()
    }

    /// Ends a run with a result for these targets.
    async fn end_run(&self, targets: &[&str]) -> RunId {
        let at = self.now();
        let run = NewRun {
            kind: RunKind::Background,
            job: None,
            principal: Principal::local(),
            name: "disk".to_owned(),
            due: at,
            spec: RunSpec {
                action: JobAction::Reminder {
                    text: "look".to_owned(),
                },
                workspace: None,
                session_mode: Default::default(),
                deliver_to: Vec::new(),
                failure_deliver_to: Vec::new(),
                timeout: None,
                budget: Default::default(),
                allow: Vec::new(),
                allowed_steps: Vec::new(),
                depth: 0,
                label: Label::default(),
            },
        };
        let run = self.store.submit_run(run).await.unwrap().id;
        let claim = RunClaim { at, limit: 10 };
        self.store.claim_runs(self.lease, claim).await.unwrap();
        let deliveries = targets
            .iter()
            .map(|target| new_delivery(run, target, at))
            .collect();
        let end = RunEnd {
            run,
            state: RunState::Done,
            reason: None,
            at,
            result: Some("93 %".to_owned()),
            error: None,
            label: Label::default(),
            deliveries,
        };
        assert!(self.store.end_run(self.lease, end).await.unwrap());
        run
    }

    async fn reported(&self, run: RunId) -> Option<DeliveryState> {
        let run = self.store.run(&Principal::local(), run).await.unwrap();
        run.unwrap().delivery
    }

    async fn deliveries(&self, run: RunId) -> Vec<Delivery> {
        let query = DeliveryQuery {
            principal: Principal::local(),
            run: Some(run),
            state: None,
            limit: 100,
        };
        self.store.deliveries(query).await.unwrap()
    }

    async fn inbox(&self) -> Vec<InboxEntry> {
        let principal = Principal::local();
        let entries = self.store.inbox(&principal, InboxSelection::All, 100);
        entries.await.unwrap()
    }
}

async fn acquire(store: &SqliteStore, at: Timestamp) -> LeaseNumber {
    let claim = LeaseClaim {
        owner: "test".to_owned(),
        at,
        until: at + SignedDuration::from_mins(1),
        abandoned: None,
    };
    match store.acquire_lease(claim).await.unwrap() {
        LeaseOutcome::Acquired(lease) => lease.number,
        LeaseOutcome::HeldBy(lease) => panic!("{lease:?}"),
    }
}

fn new_delivery(run: RunId, target: &str, created: Timestamp) -> NewDelivery {
    NewDelivery {
        run: Some(run),
        principal: Principal::local(),
        occasion: DeliveryOccasion::Result,
        target: target.to_owned(),
        message: DeliveryMessage {
            from: "disk".to_owned(),
            title: "The disk is nearly full".to_owned(),
            text: "93 %".to_owned(),
            session: None,
            label: Label::untrusted("a command"),
            workspace: None,
        },
        created,
    }
}

#[test]
fn delays_grow_and_end() {
    let minutes = |n| Some(SignedDuration::from_mins(n));
    assert_eq!(retry_delay(1), Some(SignedDuration::from_secs(30)));
    assert_eq!(retry_delay(2), minutes(1));
    assert_eq!(retry_delay(3), minutes(5));
    assert_eq!(retry_delay(4), minutes(15));
    assert_eq!(retry_delay(5), minutes(60));
    assert_eq!(retry_delay(MAX_ATTEMPTS), None);
}

/// B120: the delivery has a state of its own, and its retries are visible.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn delivery_is_tried_again_until_it_arrives() {
    let harness = OutboxHarness::new().await;
    let statuses = [503, 429, 408, 500, 502, 200];
    let (port, requests) = serve_statuses(statuses.to_vec());
    let target = format!("webhook:http://127.0.0.1:{port}/T0/private-path");
    let run = harness.end_run(&["inbox", &target]).await;
    assert_eq!(harness.reported(run).await, Some(DeliveryState::Pending));
    let first = harness.pass().await;
    assert_eq!((first.delivered, first.postponed, first.failed), (1, 1, 0));
    for attempt in 2..=6 {
        let delivery = harness.deliveries(run).await.remove(0);
        assert_eq!(delivery.attempts, attempt - 1);
        assert!(delivery.last_error.unwrap().contains("status"));
        let delay = retry_delay(attempt - 1).unwrap();
        assert_eq!(delivery.next_try, harness.now() + delay);
        harness.advance(delay - SignedDuration::from_secs(1));
        assert_eq!(harness.pass().await, OutboxPass::default(), "not due yet");
        harness.advance(SignedDuration::from_secs(1));
        let pass = harness.pass().await;
        assert_eq!(
            (pass.delivered, pass.failed),
            (usize::from(attempt == 6), 0)
        );
    }
    assert_eq!(harness.reported(run).await, Some(DeliveryState::Delivered));
    let keys = received_keys(&requests, 6);
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    let inbox = harness.inbox().await;
    assert_eq!(inbox.len(), 1, "only the result");
    assert_eq!(inbox[0].title, "The disk is nearly full");
    assert!(inbox[0].label.is_untrusted());
}

fn received_keys(requests: &Receiver<String>, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| {
            let request = requests.recv().unwrap();
            header(&request, "idempotency-key").unwrap().to_owned()
        })
        .collect()
}

/// B120: a failed delivery is visible, and no loop follows from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn last_failure_goes_to_the_inbox_once() {
    let harness = OutboxHarness::new().await;
    let (port, _requests) = serve_statuses(vec![503; 6]);
    let target = format!("webhook:http://127.0.0.1:{port}/T0/private-path");
    let run = harness.end_run(&[&target]).await;
    let mut total = OutboxPass::default();
    for _ in 0..20 {
        let pass = harness.pass().await;
        total.postponed += pass.postponed;
        total.failed += pass.failed;
        harness.advance(SignedDuration::from_hours(2));
    }
    assert_eq!((total.postponed, total.failed), (5, 1));
    assert_eq!(harness.reported(run).await, Some(DeliveryState::Failed));
    let delivery = harness.deliveries(run).await.remove(0);
    assert_eq!(delivery.attempts, MAX_ATTEMPTS);
    let inbox = harness.inbox().await;
    assert_eq!(inbox.len(), 1, "{inbox:?}");
    assert_eq!(
        inbox[0].title,
        "Not delivered to webhook 127.0.0.1: The disk is nearly full"
    );
    assert_eq!(inbox[0].text, "the server returned status 503\n\n93 %");
    assert!(!format!("{inbox:?}{:?}", delivery.last_error).contains("private-path"));
}

#[tokio::test]
async fn targets_that_cannot_work_fail_at_once() {
    let harness = OutboxHarness::new().await;
    let run = harness
        .end_run(&[
            "email:ann@example.com",
            "file:.git/config",
            "pigeon:home",
            "inbox",
        ])
        .await;
    let pass = harness.pass().await;
    assert_eq!((pass.delivered, pass.postponed, pass.failed), (1, 0, 3));
    assert_eq!(harness.reported(run).await, Some(DeliveryState::Failed));
    let titles: Vec<String> = harness
        .inbox()
        .await
        .into_iter()
        .map(|entry| entry.title)
        .collect();
    assert_eq!(titles.len(), 4, "{titles:?}");
    assert!(titles.contains(&"Not delivered to pigeon: The disk is nearly full".to_owned()));
}

/// B120: a process that is killed between sending and recording doubles nothing in the inbox, a session
/// and a file, and repeats a webhook with the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn crash_between_sending_and_recording() {
    let harness = OutboxHarness::new().await;
    let (port, requests) = serve_statuses(vec![200; 2]);
    let webhook = format!("webhook:http://127.0.0.1:{port}/");
    let run = harness
        .end_run(&["inbox", "session:daily", "file:log.txt", &webhook])
        .await;
    let claim = ClaimDeliveries {
        at: harness.now(),
        retry_at: harness.now() + SignedDuration::from_mins(5),
        limit: 10,
    };
    let claimed = harness.store.claim_deliveries(harness.lease, claim);
    for delivery in claimed.await.unwrap() {
        send(&harness.channels(), &delivery).await.unwrap();
    }
    assert_eq!(harness.pass().await, OutboxPass::default(), "still claimed");
    harness.advance(SignedDuration::from_mins(5));
    assert_eq!(harness.pass().await.delivered, 4);
    assert_eq!(harness.reported(run).await, Some(DeliveryState::Delivered));
    assert_eq!(harness.inbox().await.len(), 1);
    let file = std::fs::read_to_string(harness.delivery.at("work/log.txt")).unwrap();
    assert_eq!(file.matches("93 %").count(), 1, "{file}");
    let key = SessionKey {
        session: lango_domain::event::SessionId::new("daily"),
        principal: Principal::local(),
    };
    let log = harness.store.load(key.as_ref(), HistoryWindow::Everything);
    assert_eq!(log.await.unwrap().len(), 2);
    let keys = received_keys(&requests, 2);
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn process_that_dies_in_every_attempt_gives_up() {
    let harness = OutboxHarness::new().await;
    let run = harness.end_run(&["file:log.txt"]).await;
    for _ in 0..MAX_ATTEMPTS {
        let claim = ClaimDeliveries {
            at: harness.now(),
            retry_at: harness.now(),
            limit: 10,
        };
        let claimed = harness.store.claim_deliveries(harness.lease, claim);
        assert_eq!(claimed.await.unwrap().len(), 1);
    }
    assert_eq!(harness.pass().await.failed, 1);
    assert_eq!(harness.reported(run).await, Some(DeliveryState::Failed));
    assert!(harness.inbox().await[0].text.contains("given up after 6"));
    assert!(!harness.delivery.at("work/log.txt").exists());
}

/// B120: a process without the lease changes nothing.
#[tokio::test]
async fn old_lease_writes_nothing() {
    let harness = OutboxHarness::new().await;
    let run = harness.end_run(&["inbox"]).await;
    harness.advance(SignedDuration::from_mins(10));
    let new = acquire(&harness.store, harness.now()).await;
    let old = harness.outbox().deliver_due(harness.lease).await;
    assert_eq!(old, Err(StoreError::LeaseLost));
    assert_eq!(harness.deliveries(run).await[0].attempts, 0);
    assert_eq!(harness.inbox().await, []);
    let pass = harness.outbox().deliver_due(new).await.unwrap();
    assert_eq!(pass.delivered, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_receiver_holds_up_nothing_else() {
    let mut harness = OutboxHarness::new().await;
    harness.delivery.webhook_timeout = Duration::from_secs(2);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("webhook:http://{}/", silent.local_addr().unwrap());
    let run = harness.end_run(&[&target]).await;
    let (outbox, stop) = (harness.outbox(), CancellationToken::new());
    let watch = async {
        // The slow attempt has begun.
        while harness.deliveries(run).await[0].attempts == 0 {
            tokio::task::yield_now().await;
        }
        harness.end_run(&["inbox"]).await;
        outbox.wake();
        while harness.inbox().await.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(harness.reported(run).await, Some(DeliveryState::Pending));
        assert_eq!(harness.deliveries(run).await[0].last_error, None);
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(outbox.run(harness.lease, &stop), watch);
    assert_eq!(ended, Ok(()));
    let error = harness.deliveries(run).await.remove(0).last_error;
    assert!(error.is_some(), "an attempt under way is finished");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_lease_ends_the_loop() {
    let harness = OutboxHarness::new().await;
    harness.advance(SignedDuration::from_mins(10));
    acquire(&harness.store, harness.now()).await;
    let stop = CancellationToken::new();
    let ended = harness.outbox().run(harness.lease, &stop).await;
    assert_eq!(ended, Err(StoreError::LeaseLost));
}
