//! Jobs, background tasks, workflows and the inbox, as far as no scheduler is needed.

mod cron;
mod inbox;
mod permission;
mod scheduler;
mod suggestions;
mod tasks;
mod workflows;

use jiff::{SignedDuration, Timestamp};
use lango_domain::Stores;
use lango_domain::automation::{
    DeliveryMessage, LeaseClaim, LeaseNumber, LeaseOutcome, NewInboxEntry, Run, RunClaim, RunEnd,
    RunId, RunState,
};
use lango_domain::event::Principal;
use serde_json::Value;

use crate::setup::{CommandRun, TestDir};

const FLOW: &str = "name: review
description: Reviews a change.
params: {branch: main, depth: 3}
steps:
  - id: diff
    tool: exec_shell
    with: {command: git diff}
  - id: check
    agent: librarian
    prompt: Review the change.
    input: ['{{diff.result}}']
    depends_on: [diff]
    approval: true
";

const DISK_JOB: &str = "cron add disk-check --cron '0 7 * * MON-FRI' --prompt 'check the disk' \
    --timezone Europe/Berlin --allow 'exec_shell df*' --deliver-to file:disk.log --yes --json";

/// A test folder with its store.
struct AutomationFixture {
    dir: TestDir,
    stores: Stores,
    runtime: tokio::runtime::Runtime,
}

impl AutomationFixture {
    fn new() -> Self {
        let dir = TestDir::new();
        dir.write("review.flow.yaml", FLOW);
        dir.lango(&["cron", "list"]);
        let file = dir.path().join("home/lango.sqlite");
        Self {
            stores: lango_app::open_stores_in(&file).unwrap(),
            runtime: tokio::runtime::Runtime::new().unwrap(),
            dir,
        }
    }

    /// Runs a command line. Words with spaces are in single quotes.
    fn lango(&self, line: &str) -> CommandRun {
        let words = split_words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.dir.lango(&words)
    }

    /// Runs a command line at a terminal where the user gives this answer.
    fn at_terminal(&self, line: &str, answer: &str) -> CommandRun {
        let words = split_words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.dir.lango_at_terminal(&words, answer)
    }

    /// Runs a command line that must succeed.
    fn ok(&self, line: &str) -> CommandRun {
        let run = self.lango(line);
        assert_eq!(run.exit, 0, "{line}: {}{}", run.stdout, run.stderr);
        run
    }

    fn items(&self, line: &str) -> Vec<Value> {
        let json = self.ok(&format!("{line} --json")).json();
        json["items"].as_array().unwrap().clone()
    }

    fn acquire_lease(&self) -> LeaseNumber {
        let now = Timestamp::now();
        let claim = LeaseClaim {
            owner: "lango serve (process 1)".to_owned(),
            at: now,
            until: now + SignedDuration::from_mins(10),
            abandoned: None,
        };
        let outcome = self.stores.automation.acquire_lease(claim);
        match self.runtime.block_on(outcome).unwrap() {
            LeaseOutcome::Acquired(lease) => lease.number,
            LeaseOutcome::HeldBy(lease) => panic!("{lease:?}"),
        }
    }

    /// Starts all runs that are queued.
    fn claim(&self, lease: LeaseNumber) -> Vec<Run> {
        let claim = RunClaim {
            at: Timestamp::now() + SignedDuration::from_mins(1),
            limit: 10,
        };
        let runs = self.stores.automation.claim_runs(lease, claim);
        self.runtime.block_on(runs).unwrap()
    }

    fn end(&self, lease: LeaseNumber, run: RunId, state: RunState, text: &str) {
        let is_done = state == RunState::Done;
        let end = RunEnd {
            run,
            state,
            reason: None,
            at: Timestamp::now(),
            result: is_done.then(|| text.to_owned()),
            error: (!is_done).then(|| text.to_owned()),
            label: lango_domain::Label::default(),
            deliveries: Vec::new(),
        };
        let ended = self.stores.automation.end_run(lease, end);
        assert!(self.runtime.block_on(ended).unwrap());
    }

    fn deliver(&self, title: &str, text: &str) {
        let entry = NewInboxEntry {
            at: Timestamp::now(),
            principal: Principal::local(),
            message: DeliveryMessage {
                from: "disk".to_owned(),
                title: title.to_owned(),
                text: text.to_owned(),
                session: None,
                label: lango_domain::Label::default(),
                workspace: None,
            },
        };
        let added = self.stores.automation.add_inbox_entry(entry);
        self.runtime.block_on(added).unwrap();
    }
}

fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

fn keys(value: &Value) -> String {
    let keys = value.as_object().unwrap().keys();
    keys.map(String::as_str).collect::<Vec<_>>().join(" ")
}
