//! `lango bg`.

use lango_domain::automation::RunState;
use serde_json::json;

use super::{AutomationFixture, keys};

#[test]
fn tasks_are_submitted_and_shown() {
    let fixture = AutomationFixture::new();
    assert!(fixture.ok("bg list").stdout.contains("no background tasks"));
    let submitted = fixture.ok("bg submit count 'the files' --agent operator --json");
    assert!(submitted.stderr.contains("no scheduler"));
    let list = fixture.items("bg list");
    assert_eq!(
        keys(&list[0]),
        "id prompt agent state started ended session"
    );
    let task = fixture.ok("bg status 1 --json").json();
    assert_eq!(
        task,
        json!({
            "id": task["id"], "prompt": "count the files", "agent": "operator", "state": "queued",
            "started": null, "ended": null, "session": null,
        })
    );
    let plain = fixture.ok("bg status 1").stdout;
    assert!(
        plain.contains("queued") && plain.contains("count the files"),
        "{plain}"
    );
    let early = fixture.lango("bg result 1");
    assert!(early.exit == 1 && early.stderr.contains("no result yet"));
    for (line, expected) in [
        ("bg submit ' '", "TEXT: "),
        ("bg submit x --agent nobody", "--agent: "),
        ("bg submit x --timeout 5", "--timeout: "),
        ("bg submit x --deliver-to inbx", "--deliver-to: "),
    ] {
        let run = fixture.lango(line);
        assert!(
            run.exit == 2 && run.stderr.contains(expected),
            "{line}: {}",
            run.stderr
        );
    }
    assert_eq!(fixture.items("bg list").len(), 1);
}

#[test]
fn results_are_printed_and_the_exit_code_says_how_a_task_ended() {
    let fixture = AutomationFixture::new();
    for _ in 0..3 {
        fixture.ok("bg submit x");
    }
    assert!(
        fixture
            .ok("bg cancel 3")
            .stdout
            .contains("Cancelled task 3")
    );
    let lease = fixture.acquire_lease();
    let runs = fixture.claim(lease);
    assert!(
        fixture
            .ok("bg cancel 1")
            .stdout
            .contains("Asked task 1 to stop")
    );
    fixture.end(lease, runs[0].id, RunState::Done, "42 files\u{1b}[31m\n");
    fixture.end(lease, runs[1].id, RunState::Failed, "no model");
    assert_eq!(fixture.ok("bg result 1").stdout, "42 files[31m\n");
    let result = fixture.ok("bg result 1 --json").json();
    assert_eq!(result["result"], "42 files\u{1b}[31m\n");
    assert_eq!(fixture.lango("bg cancel 1").exit, 2, "it is over");
    let failed = fixture.lango("bg result 2");
    assert!(failed.exit == 1 && failed.stderr.contains("no model"));
    assert_eq!(fixture.lango("bg result 3").exit, 130);
}
