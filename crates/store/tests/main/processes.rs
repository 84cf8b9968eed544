//! Several processes on one file. The test starts its own binary eight times.

use std::process::{Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use lango_domain::StoreError;
use lango_domain::automation::{LeaseClaim, LeaseOutcome, LeaseStore};
use lango_domain::event::{EventBody, Principal};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_testkit::conformance::{new_event, user_request};

use crate::setup::{id, open};

/// Keeps tests about locks of files apart from tests that start processes: a process that is being started has
/// copies of all open files, and of their locks, until it has its program.
pub static STARTING_PROCESSES: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Returns a claim of the lease that would have to wait for an hour.
fn lease_claim(owner: &str) -> LeaseClaim {
    LeaseClaim {
        owner: owner.to_owned(),
        at: Timestamp::UNIX_EPOCH,
        until: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1),
        abandoned: None,
    }
}

/// B120: the lease of a process that has ended is free, although its time is not over.
#[tokio::test]
async fn a_dead_process_loses_the_lease() {
    let _alone = STARTING_PROCESSES.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (open(folder.path()), open(folder.path()));
    let acquired = first.acquire_lease(lease_claim("first")).await.unwrap();
    let LeaseOutcome::Acquired(lease) = acquired else {
        panic!("nobody held it");
    };
    let held = second.acquire_lease(lease_claim("second")).await.unwrap();
    assert_eq!(held, LeaseOutcome::HeldBy(lease.clone()));
    let again = first.acquire_lease(lease_claim("again")).await.unwrap();
    assert_eq!(again, LeaseOutcome::HeldBy(lease.clone()));
    assert_eq!(second.lease().await.unwrap(), Some(lease));
    // Closes the lock file, as the end of the process would.
    drop(first);
    let ended = second.lease().await.unwrap().unwrap();
    assert_eq!(ended.until, Timestamp::UNIX_EPOCH);
    let taken = second.acquire_lease(lease_claim("second")).await.unwrap();
    assert!(matches!(taken, LeaseOutcome::Acquired(_)));
}

/// B120: a process that was stopped for long, and lost the lease, does not take it from the next owner with
/// its lock.
#[tokio::test]
async fn a_lock_of_an_older_lease_says_nothing_about_the_owner() {
    let _alone = STARTING_PROCESSES.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let (frozen, healthy) = (open(folder.path()), open(folder.path()));
    let acquired = frozen.acquire_lease(lease_claim("frozen")).await.unwrap();
    let LeaseOutcome::Acquired(old) = acquired else {
        panic!("nobody held it");
    };
    let over = LeaseClaim {
        abandoned: Some(old.clone()),
        ..lease_claim("healthy")
    };
    let acquired = healthy.acquire_lease(over).await.unwrap();
    let LeaseOutcome::Acquired(new) = acquired else {
        panic!("the lease was abandoned");
    };
    let lost = frozen.renew_lease(old.number, old.until).await;
    assert_eq!(lost, Err(StoreError::LeaseLost));
    let held = frozen.acquire_lease(lease_claim("frozen")).await.unwrap();
    assert_eq!(held, LeaseOutcome::HeldBy(new.clone()));
    // With the lock of the new lease, its end is noticed at once.
    healthy.renew_lease(new.number, new.until).await.unwrap();
    drop(healthy);
    let taken = frozen.acquire_lease(lease_claim("frozen")).await.unwrap();
    assert!(matches!(taken, LeaseOutcome::Acquired(_)));
}

const FOLDER: &str = "LANGO_TEST_STORE_FOLDER";
const NUMBER: &str = "LANGO_TEST_STORE_NUMBER";
const PROCESSES: usize = 8;
const TURNS: usize = 20;

/// Runs turns in the shared session and in a session of this process.
async fn run_turns(folder: &std::path::Path, number: &str) {
    let store = open(folder);
    let (shared, own) = (id("shared"), id(number));
    for turn in 0..TURNS {
        for session in [&shared, &own] {
            let key = SessionKeyRef {
                session,
                principal: &Principal::local(),
            };
            let _lock = store.lock(key).await.unwrap();
            let name = format!("{number}-{turn}");
            // Two appends, so that a turn of another process between them would be detected.
            store
                .append(key, vec![new_event(&name, user_request("x"))])
                .await
                .unwrap();
            store
                .append(key, vec![new_event(&name, EventBody::turn_done())])
                .await
                .unwrap();
        }
    }
}

/// B60, B73: turns of one session never interleave across processes, and no process fails as busy.
#[tokio::test]
async fn eight_processes_share_one_file() {
    if let (Ok(folder), Ok(number)) = (std::env::var(FOLDER), std::env::var(NUMBER)) {
        return run_turns(folder.as_ref(), &number).await;
    }
    let _alone = STARTING_PROCESSES.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let start = |number: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "processes::eight_processes_share_one_file",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .env(NUMBER, number.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for child in (0..PROCESSES).map(start).collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let store = open(folder.path());
    let key = SessionKeyRef {
        session: &id("shared"),
        principal: &Principal::local(),
    };
    let events = store.load(key, HistoryWindow::Everything).await.unwrap();
    assert_eq!(events.len(), PROCESSES * TURNS * 2);
    for (at, pair) in events.chunks(2).enumerate() {
        assert_eq!(pair[0].seq as usize, at * 2 + 1);
        assert!(
            matches!(pair[0].body, EventBody::User(_)) && pair[1].body == EventBody::turn_done()
        );
        assert_eq!(pair[0].turn, pair[1].turn, "a turn stays together");
    }
}
