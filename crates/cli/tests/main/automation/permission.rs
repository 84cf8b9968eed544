//! B121: rules and tool steps are asked about before they are stored.

use lango_domain::automation::RunId;
use lango_domain::event::Principal;
use serde_json::json;

use super::AutomationFixture;

const RULES: [&str; 3] = [
    "cron add disk --cron @daily --prompt 'check the disk' --allow 'exec_shell df*'",
    "bg submit look --allow fs_write",
    "workflow run review.flow.yaml --allow exec_shell",
];

impl AutomationFixture {
    fn allowed_steps(&self, run: u64) -> Vec<String> {
        let user = Principal::local();
        let run = self.stores.automation.run(&user, RunId::new(run));
        let run = self.runtime.block_on(run).unwrap().unwrap();
        run.spec.allowed_steps
    }

    fn is_empty(&self) -> bool {
        let has_none = |line: &str| self.items(line).is_empty();
        has_none("cron list") && has_none("bg list") && has_none("workflow list")
    }
}

/// B121: without a terminal, only `--yes` stores rules.
#[test]
fn rules_without_a_terminal_are_refused() {
    let fixture = AutomationFixture::new();
    for line in RULES {
        let refused = fixture.lango(&format!("{line} --json"));
        assert_eq!(refused.exit, 5, "{line}: {}", refused.stderr);
        let error = refused.error();
        assert_eq!(error["code"], "denied");
        assert!(error["hint"].as_str().unwrap().contains("--yes"), "{error}");
    }
    assert!(fixture.is_empty());
    for line in RULES {
        fixture.ok(&format!("{line} --yes"));
    }
    assert_eq!(
        fixture.items("cron list")[0]["allow"],
        json!(["exec_shell df*"])
    );
}

/// B121
#[test]
fn the_question_lists_the_rules_and_a_no_stores_nothing() {
    let fixture = AutomationFixture::new();
    for line in RULES {
        for answer in ["n", "", "maybe"] {
            let declined = fixture.at_terminal(line, answer);
            assert_eq!(declined.exit, 5, "{line}: {}", declined.stderr);
            assert!(declined.stderr.contains("nothing was stored"));
        }
    }
    assert!(fixture.is_empty());
    let added = fixture.at_terminal(RULES[0], "y");
    assert_eq!(added.exit, 0, "{}", added.stderr);
    for part in [
        "adds the job `disk`",
        "asks the team: check the disk",
        "exec_shell: df*",
    ] {
        assert!(added.stderr.contains(part), "{part}: {}", added.stderr);
    }
    assert!(added.stdout.contains("exec_shell df*"), "{}", added.stdout);
    assert_eq!(fixture.items("cron list").len(), 1);
}

/// B121: the steps of a workflow are asked about once, at the start.
#[test]
fn tool_steps_are_asked_about_when_a_workflow_starts() {
    let fixture = AutomationFixture::new();
    let line = "workflow run review.flow.yaml";
    let allowed = fixture.at_terminal(line, "yes");
    assert_eq!(allowed.exit, 0, "{}", allowed.stderr);
    assert!(
        allowed.stderr.contains("the call of the step diff"),
        "{}",
        allowed.stderr
    );
    assert!(!allowed.stderr.contains("of the step check"));
    assert_eq!(fixture.allowed_steps(1), ["diff"]);
    for declined in [fixture.at_terminal(line, "n"), fixture.lango(line)] {
        assert_eq!(declined.exit, 0, "{}", declined.stderr);
        let notice = "wait for an approval when they run: diff";
        assert!(declined.stderr.contains(notice), "{}", declined.stderr);
    }
    assert!(fixture.allowed_steps(2).is_empty() && fixture.allowed_steps(3).is_empty());
    fixture.ok(&format!("{line} --yes"));
    assert_eq!(fixture.allowed_steps(4), ["diff"]);
    fixture.ok("cron add review --cron @daily --workflow review.flow.yaml --yes");
    let shown = fixture.ok("cron list").stdout;
    assert!(shown.contains("step diff"), "{shown}");
}
