//! Several processes on one file: this test runs itself again, eight times over.

use std::process::{Command, Stdio};

use lango_domain::event::{EventBody, Principal};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_testkit::conformance::{new_event, user_request};

use crate::setup::{id, open};

const FOLDER: &str = "LANGO_TEST_STORE_FOLDER";
const NUMBER: &str = "LANGO_TEST_STORE_NUMBER";
const PROCESSES: usize = 8;
const TURNS: usize = 20;

/// What each of the processes does: turns of one session that all share, and of one of its own.
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
            // Two appends: a turn of somebody else's between them would be seen.
            store
                .append(key, vec![new_event(&name, user_request("x"))])
                .await
                .unwrap();
            store
                .append(key, vec![new_event(&name, EventBody::TurnDone)])
                .await
                .unwrap();
        }
    }
}

/// B60, B73: turns of one session never mix, whichever process runs them, and nobody is told to come back later.
#[tokio::test]
async fn eight_processes_share_one_file() {
    if let (Ok(folder), Ok(number)) = (std::env::var(FOLDER), std::env::var(NUMBER)) {
        return run_turns(folder.as_ref(), &number).await;
    }
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
            matches!(pair[0].body, EventBody::User { .. }) && pair[1].body == EventBody::TurnDone
        );
        assert_eq!(pair[0].turn, pair[1].turn, "a turn stays together");
    }
}
