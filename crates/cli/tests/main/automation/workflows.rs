//! `lango workflow`.

use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{RunProgress, RunState, RunStep, StepDecision, StepState};
use lango_domain::event::Principal;
use serde_json::{Value, json};

use super::{AutomationFixture, keys};

/// B122
#[test]
fn files_are_validated_with_lines_and_hints() {
    let fixture = AutomationFixture::new();
    let bad =
        "name: bad\nsteps:\n  - id: a\n    agent: libarian\n    prompt: x\n    depends_on: [b]\n";
    fixture.dir.write("bad.flow.yaml", bad);
    let good = fixture
        .ok("workflow validate review.flow.yaml --json")
        .json();
    assert_eq!(good, json!({ "ok": true, "errors": [] }));
    let both = fixture.lango("workflow validate review.flow.yaml bad.flow.yaml --json");
    assert_eq!((both.exit, &both.json()["ok"]), (2, &json!(false)));
    let errors = both.json()["errors"].as_array().unwrap().clone();
    assert_eq!(keys(&errors[0]), "file line column message hint");
    assert_eq!(errors[0]["file"], "bad.flow.yaml");
    let text = format!("{errors:?}");
    assert!(errors.len() == 2 && text.contains("librarian"), "{text}");
    let plain = fixture.lango("workflow validate bad.flow.yaml").stdout;
    assert!(plain.contains("bad.flow.yaml:4:"), "{plain}");
    let binary = fixture.dir.path().join("binary.flow.yaml");
    std::fs::write(binary, [0xff, 0xfe]).unwrap();
    for file in ["missing.flow.yaml", ".", "binary.flow.yaml"] {
        let run = fixture.lango(&format!("workflow validate {file}"));
        assert!(
            run.exit == 2 && run.stderr.contains("cannot read"),
            "{file}: {}",
            run.stderr
        );
    }
}

#[test]
fn workflows_are_saved_started_and_shown() {
    let fixture = AutomationFixture::new();
    assert!(
        fixture
            .ok("workflow list")
            .stdout
            .contains("No workflow is saved")
    );
    let saved = fixture.ok("workflow save review.flow.yaml --json").json();
    assert_eq!(
        (&saved["name"], &saved["version"]),
        (&json!("review"), &json!(1))
    );
    let started = fixture
        .ok("workflow run review --param depth=5 --json")
        .json();
    assert_eq!(started["run"], "1");
    let status = fixture.ok("workflow status 1 --json").json();
    assert_eq!(
        (&status["workflow"], &status["state"]),
        (&json!("review"), &json!("queued"))
    );
    let steps = status["steps"].as_array().unwrap();
    let ids: Vec<&Value> = steps.iter().map(|step| &step["id"]).collect();
    assert_eq!(ids, ["diff", "check"]);
    for key in "id state attempt started ended result error repeated".split(' ') {
        assert!(steps[0].get(key).is_some(), "{key}");
    }
    let list = fixture.ok("workflow list --json").json();
    assert_eq!(list["items"][0]["run"], "1");
    assert_eq!(list["saved"][0]["name"], "review");
    for param in ["depth=x", "branch", "=x", "bransh=x"] {
        let run = fixture.lango(&format!("workflow run review --param {param}"));
        assert!(
            run.exit == 2 && run.stderr.contains("--param: "),
            "{param}: {}",
            run.stderr
        );
    }
}

#[test]
fn workflows_are_drawn() {
    let fixture = AutomationFixture::new();
    fixture.ok("workflow run review.flow.yaml");
    let svg = fixture.ok("workflow graph review.flow.yaml").stdout;
    assert!(svg.starts_with("<svg") && svg.contains("diff"), "{svg}");
    fixture.ok("workflow graph 1 -o run.svg");
    let drawn = std::fs::read_to_string(fixture.dir.path().join("run.svg"));
    assert!(drawn.unwrap().contains("pending"));
    let unwritable = fixture.lango("workflow graph review.flow.yaml -o no/such/x.svg");
    assert!(unwritable.exit == 2 && unwritable.stderr.contains("cannot write"));
}

#[test]
fn runs_are_cancelled_and_retried() {
    let fixture = AutomationFixture::new();
    fixture.ok("workflow run review.flow.yaml");
    assert!(
        fixture
            .ok("workflow cancel 1")
            .stdout
            .contains("Cancelled run 1")
    );
    assert_eq!(fixture.lango("workflow cancel 1").exit, 2, "it is over");
    let unknown = fixture.lango("workflow retry 1 --from dif");
    assert!(
        unknown.stderr.contains("did you mean `diff`?"),
        "{}",
        unknown.stderr
    );
    let retried = fixture
        .ok("workflow retry 1 --from diff --skip check --json")
        .json();
    assert_eq!(retried["again"], json!(["diff"]));
    assert_eq!(retried["skipped"], json!(["check"]));
    assert_eq!(
        fixture.ok("workflow status 1 --json").json()["state"],
        "queued"
    );
}

/// B122
#[test]
fn waiting_steps_are_answered_and_unknown_ones_repeated_only_on_request() {
    let fixture = AutomationFixture::new();
    fixture.ok("workflow run review.flow.yaml");
    let lease = fixture.acquire_lease();
    let run = fixture.claim(lease)[0].id;
    let step = |id: &str, state| RunStep {
        state,
        reason: Some("needs\u{7} an answer".to_owned()),
        attempt: 1,
        ..RunStep::pending(run, id)
    };
    let steps = vec![
        step("diff", StepState::Unknown),
        step("check", StepState::Waiting),
    ];
    let progress = RunProgress {
        run,
        state: RunState::Waiting,
        reason: Some("it waits".to_owned()),
        session: None,
        resume_at: Some(Timestamp::now() + SignedDuration::from_hours(1)),
        active: None,
    };
    let (store, principal) = (&fixture.stores.automation, Principal::local());
    fixture.runtime.block_on(async {
        store.record_steps(lease, steps, Vec::new()).await.unwrap();
        store.record_progress(lease, progress).await.unwrap();
    });
    let plain = fixture.ok("workflow status 1").stdout;
    assert!(plain.contains("lango workflow approve 1 check"), "{plain}");
    assert!(!plain.contains('\u{7}'));
    let repeated = fixture.ok("workflow approve 1 diff --json").json();
    assert_eq!(repeated["decision"], "repeat");
    let denied = fixture.ok("workflow deny 1 check --json").json();
    assert_eq!(denied["decision"], "deny");
    let stored = fixture
        .runtime
        .block_on(store.steps(&principal, run))
        .unwrap();
    let decisions: Vec<_> = stored.iter().map(|row| row.decision).collect();
    assert_eq!(
        decisions,
        [Some(StepDecision::Repeat), Some(StepDecision::Deny)]
    );
}

/// Another process runs the scheduler; here it is the test.
#[test]
fn waiting_for_a_run_ends_as_the_run_ends() {
    let fixture = AutomationFixture::new();
    let lease = fixture.acquire_lease();
    for (extra, state, exit) in [
        ("", RunState::Done, 0),
        ("--json", RunState::Done, 0),
        ("", RunState::Failed, 1),
        ("", RunState::Cancelled, 130),
    ] {
        let line = format!("workflow run review.flow.yaml --wait {extra}");
        let waited = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| fixture.lango(&line));
            let run = loop {
                match fixture.claim(lease).first() {
                    Some(run) => break run.id,
                    None => std::thread::yield_now(),
                }
            };
            fixture.end(lease, run, state, "all\u{7} good");
            waiting.join().unwrap()
        });
        assert_eq!(waited.exit, exit, "{line}: {}", waited.stderr);
        match (state, extra) {
            (RunState::Done, "") => assert_eq!(waited.stdout, "all good\n"),
            (RunState::Done, _) => assert_eq!(waited.json()["state"], "done"),
            _ => assert!(waited.stderr.contains("all good"), "{}", waited.stderr),
        }
    }
}

/// B120: a scheduler that was killed does not keep `--wait` from running the workflow.
#[test]
fn waiting_takes_over_from_a_dead_scheduler() {
    let fixture = AutomationFixture::new();
    fixture.dir.write(
        "quick.flow.yaml",
        "name: quick\nsteps:\n  - id: look\n    tool: fs_list\n    with: {path: .}\n",
    );
    let mut scheduler = fixture
        .dir
        .spawn(&["automate", "run", "--provider", "offline"]);
    while fixture.ok("automate status --json").json()["running"] != true {}
    scheduler.kill().unwrap();
    scheduler.wait().unwrap();
    let run = fixture.ok("workflow run quick.flow.yaml --wait --provider offline --json");
    assert_eq!(run.json()["state"], "done");
}
