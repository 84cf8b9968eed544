//! Several processes on one file. The test starts its own binary eight times.

use std::process::{Command, Stdio};

use lango_domain::event::{EventBody, Principal};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_testkit::conformance::{new_event, user_request};

use crate::setup::{id, open};

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
                .append(key, vec![new_event(&name, EventBody::TurnDone)])
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
        assert!(matches!(pair[0].body, EventBody::User(_)) && pair[1].body == EventBody::TurnDone);
        assert_eq!(pair[0].turn, pair[1].turn, "a turn stays together");
    }
}
