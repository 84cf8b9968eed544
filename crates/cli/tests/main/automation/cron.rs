//! `lango cron`.

use jiff::{SignedDuration, Timestamp};
use lango_domain::automation::{JobEdit, NewJob, RunState};
use lango_domain::event::Principal;
use serde_json::{Value, json};

use super::{AutomationFixture, DISK_JOB, keys};

/// B121
#[test]
fn jobs_are_added_and_listed_with_their_permissions() {
    let fixture = AutomationFixture::new();
    assert!(fixture.ok("cron list").stdout.contains("no jobs"));
    assert!(fixture.ok("cron history").stdout.contains("no runs"));
    let added = fixture.ok(DISK_JOB);
    assert!(added.stderr.contains("no scheduler is running"));
    let list = fixture.items("cron list");
    assert_eq!(list.len(), 1);
    let job = &list[0];
    let next: Vec<Timestamp> = serde_json::from_value(job["next"].clone()).unwrap();
    assert!(next.len() == 3 && next.is_sorted() && next[0] > Timestamp::now());
    let expected = json!({
        "name": "disk-check", "schedule": "0 7 * * MON-FRI", "timezone": "Europe/Berlin", "next": job["next"],
        "enabled": true, "last": null, "allow": ["exec_shell df*"], "deliver_to": ["file:disk.log"],
    });
    assert_eq!(job, &expected);
    assert_eq!(added.json(), expected);
    let plain = fixture.ok("cron list").stdout;
    for part in [
        "disk-check",
        "0 7 * * MON-FRI (Europe/Berlin)",
        ", in ",
        "has not run yet",
        "exec_shell df*",
        "file:disk.log",
    ] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    let shown = fixture.ok("cron show disk-check").stdout;
    assert!(shown.contains("check the disk"), "{shown}");
    let again = fixture.lango(DISK_JOB);
    assert!(again.exit == 2 && again.stderr.contains("exists already"));
}

#[test]
fn jobs_are_paused_resumed_and_removed() {
    let fixture = AutomationFixture::new();
    fixture.ok(DISK_JOB);
    let paused = fixture.ok("cron pause disk-check --json").json();
    assert_eq!(paused["enabled"], false);
    let list = fixture.items("cron list");
    assert_eq!(list[0]["enabled"], false);
    assert_eq!(list[0]["next"], json!([]));
    assert!(fixture.ok("cron list").stdout.contains("paused"));
    let resumed = fixture.ok("cron resume disk-check --json").json();
    assert_eq!(resumed["next"].as_array().unwrap().len(), 3);
    let twice = fixture.lango("cron resume disk-check");
    assert!(twice.exit == 2 && twice.stderr.contains("is not paused"));
    let removed = fixture.ok("cron remove disk-check --json").json();
    assert_eq!(removed["removed"], "disk-check");
    assert!(fixture.items("cron list").is_empty());
}

#[test]
fn all_kinds_of_schedules_and_work_are_accepted() {
    let fixture = AutomationFixture::new();
    let add = |line: &str| fixture.ok(&format!("cron add {line} --json")).json();
    let every = add("often --every 2h --remind drink");
    assert_eq!(every["schedule"], "2h");
    let next: Vec<Timestamp> = serde_json::from_value(every["next"].clone()).unwrap();
    let distance = next[1].duration_since(next[0]);
    assert_eq!(distance, SignedDuration::from_hours(2));
    let at = add("once --at '2999-11-20 09:00' --timezone Europe/Berlin --remind dentist");
    assert_eq!(at["next"], json!(["2999-11-20T08:00:00Z"]));
    assert_eq!(at["deliver_to"], json!(["inbox"]));
    let when = add("soon --when 'tomorrow at 9' --timezone UTC --prompt look --agent operator");
    let first = when["next"][0].as_str().unwrap();
    assert!(first.ends_with("T09:00:00Z"), "{when}");
    add("flow --cron @daily --workflow review.flow.yaml --param branch=dev");
    assert_eq!(fixture.items("cron list").len(), 4);
}

#[test]
fn limits_and_rules_of_a_job_are_stored_and_shown() {
    let fixture = AutomationFixture::new();
    fixture.ok(
        "cron add limits --every 1h --prompt x --budget-tokens 5000 --budget-usd 0.5 --timeout 10m \
                --catch-up all --overlap queue --session-mode main --failure-deliver-to session:ops",
    );
    let shown = fixture.ok("cron show limits --json").json();
    assert_eq!(shown["budget"], json!({ "tokens": 5000, "usd": 0.5 }));
    let rules = ["catch_up", "overlap", "session_mode"].map(|key| shown[key].as_str().unwrap());
    assert_eq!(rules, ["all", "queue", "main"]);
    assert_eq!(shown["failure_deliver_to"], json!(["session:ops"]));
    let plain = fixture.ok("cron show limits").stdout;
    assert!(
        plain.contains("5000 tokens") && plain.contains("10 min"),
        "{plain}"
    );
}

/// The arguments of `cron add`, and what the error says.
const BAD_JOBS: [(&str, &str); 31] = [
    ("j --prompt x", "--cron"),
    ("j --cron '0 7 * * *'", "--prompt"),
    (
        "j --cron @daily --every 2h --prompt x",
        "cannot be used with",
    ),
    (
        "j --cron '0 7 * *' --prompt x",
        "--cron: a cron schedule has five fields",
    ),
    (
        "j --cron '0 0 30 2 *' --prompt x",
        "--cron: `0 0 30 2 *` never happens",
    ),
    ("j --cron '* * * * * *' --prompt x", "--cron: "),
    ("j --every 5s --prompt x", "--every: it would run every"),
    (
        "j --every soon --prompt x",
        "--every: `soon` is not an interval",
    ),
    ("j --at '2001-01-01 09:00' --prompt x", "--at: "),
    ("j --when blue --prompt x", "--when: "),
    (
        "j --cron @daily --prompt x --timezone Europe/Berln",
        "--timezone: ",
    ),
    ("j --cron @daily --prompt ' '", "--prompt: "),
    ("'' --cron @daily --prompt x", "NAME: "),
    ("'a\u{1b}[2J' --cron @daily --prompt x", "NAME: "),
    (
        "j --cron @daily --prompt x --agent operater",
        "did you mean `operator`?",
    ),
    (
        "j --cron @daily --prompt x --allow 'exec_shel df'",
        "did you mean `exec_shell`?",
    ),
    ("j --cron @daily --prompt x --allow '(x)'", "--allow: "),
    (
        "j --cron @daily --prompt x --deliver-to mail:a@b",
        "--deliver-to: ",
    ),
    (
        "j --cron @daily --prompt x --deliver-to email:a@example.com",
        "--deliver-to: ",
    ),
    ("j --cron @daily --prompt x --timeout ten", "--timeout: "),
    ("j --cron @daily --prompt x --budget-tokens 0", "--budget"),
    ("j --cron @daily --prompt x --budget-usd NaN", "--budget"),
    (
        "j --cron @daily --prompt x --catch-up twice",
        "invalid value 'twice'",
    ),
    ("j --cron @daily --prompt x --param a=b", "--param: "),
    ("j --cron @daily --remind x --agent operator", "--agent: "),
    (
        "j --workflow review.flow.yaml",
        "has no schedule of its own",
    ),
    (
        "j --cron @daily --workflow bad.flow.yaml",
        "bad.flow.yaml:3:",
    ),
    (
        "j --cron @daily --workflow missing.flow.yaml",
        "cannot read missing.flow.yaml",
    ),
    (
        "j --cron @daily --workflow reveiw",
        "there is no workflow `reveiw`",
    ),
    (
        "j --cron @daily --workflow review.flow.yaml --param x",
        "--param: `x` has no value",
    ),
    (
        "j --cron @daily --workflow review.flow.yaml --param brnch=x",
        "did you mean `branch`?",
    ),
];

/// Bad input is a usage error that names the argument, and nothing is added.
#[test]
fn bad_jobs_are_refused() {
    let fixture = AutomationFixture::new();
    let bad = "name: bad\nsteps:\n  - id: a\n    tol: exec_shell\n";
    fixture.dir.write("bad.flow.yaml", bad);
    for (args, expected) in BAD_JOBS {
        let run = fixture.lango(&format!("cron add --json {args}"));
        assert_eq!(run.exit, 2, "{args}: {}", run.stderr);
        let error = run.error();
        let text = format!("{} {}", error["message"], error["hint"]);
        assert!(text.contains(expected), "{args}: {text}");
        assert!(!run.stderr.contains('\u{1b}'), "{args}");
    }
    assert!(fixture.items("cron list").is_empty());
}

/// B120
#[test]
fn history_says_how_runs_ended_and_why() {
    let fixture = AutomationFixture::new();
    fixture.ok(DISK_JOB);
    let queued = fixture.ok("cron run disk-check --json");
    assert_eq!(queued.json()["state"], "queued");
    assert!(queued.stderr.contains("no scheduler"));
    let lease = fixture.acquire_lease();
    let run = fixture.claim(lease)[0].id;
    fixture.end(lease, run, RunState::Failed, "the model\u{1b}[2J is gone");
    let second = fixture.ok("cron run disk-check --json");
    assert_eq!(
        second.stderr, "",
        "a scheduler runs, so there is nothing to say"
    );
    let history = fixture.items("cron history disk-check");
    let states: Vec<&Value> = history.iter().map(|run| &run["state"]).collect();
    assert_eq!(states, ["queued", "failed"]);
    assert_eq!(
        keys(&history[0]),
        "job due started ended state reason delivery"
    );
    assert_eq!(history[1]["reason"], "the model\u{1b}[2J is gone");
    assert_eq!(fixture.items("cron history --state failed").len(), 1);
    assert_eq!(fixture.items("cron history --limit 1").len(), 1);
    let plain = fixture.ok("cron history").stdout;
    assert!(plain.contains("the model[2J is gone"), "{plain}");
    let last = &fixture.items("cron list")[0]["last"];
    assert_eq!(keys(last), "due state error");
    assert_eq!(fixture.lango("cron history --state gone").exit, 2);
}

/// Jobs that will not run again are listed on request.
#[test]
fn finished_jobs_are_listed_on_request() {
    let fixture = AutomationFixture::new();
    fixture.ok("cron add stretching --when 'in two hours' --remind 'get up'");
    fixture.ok(DISK_JOB);
    let (store, me) = (&fixture.stores.automation, Principal::local());
    let over = JobEdit {
        next_due: None,
        ..JobEdit::default()
    };
    fixture.runtime.block_on(async {
        let job = store.job(&me, "stretching").await.unwrap().unwrap();
        store.edit_job(&me, job.id, over).await.unwrap();
    });
    let plain = fixture.ok("cron list").stdout;
    assert!(
        plain.contains("Not shown: 1") && !plain.contains("stretching"),
        "{plain}"
    );
    assert_eq!(fixture.items("cron list").len(), 1);
    assert_eq!(fixture.items("cron list --all").len(), 2);
}

/// Work of a principal whose last token is gone stops, and the answer says so.
#[test]
fn a_revoked_token_stops_the_work_of_its_principal() {
    let fixture = AutomationFixture::new();
    let created = fixture.ok("token create phone --json").json();
    let phone = Principal::new(created["name"].as_str().unwrap());
    fixture.ok(DISK_JOB);
    let store = &fixture.stores.automation;
    let own = fixture.runtime.block_on(async {
        let mine = store.jobs(&Principal::local()).await.unwrap().remove(0);
        let job = NewJob {
            name: "theirs".to_owned(),
            principal: phone.clone(),
            schedule: mine.schedule,
            spec: mine.spec,
            catch_up: mine.catch_up,
            grace: mine.grace,
            overlap: mine.overlap,
            created: mine.created,
            next_due: mine.next_due,
        };
        store.add_job(job, 9).await.unwrap();
        store.jobs(&phone).await.unwrap().remove(0)
    });
    assert!(own.enabled);
    let revoked = fixture.ok("token revoke phone --json").json();
    assert_eq!(revoked["paused_jobs"], 1);
    let jobs = fixture.runtime.block_on(store.jobs(&phone)).unwrap();
    assert!(!jobs[0].enabled);
    assert_eq!(fixture.items("cron list")[0]["enabled"], true);
}
