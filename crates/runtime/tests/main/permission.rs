//! Turns with their own approver, rules and budget.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use lango_domain::event::ApprovalState::{Approved, Asked, Denied, NobodyThere, TimedOut};
use lango_engine::{ApprovalRule, TurnBudget, TurnPermission, Verdict};
use lango_runtime::TurnSpec;
use tokio::time::Instant;

use crate::harness::{SlowApprover, approvals, approver, end, request, run, runtime};

/// Every turn makes one dangerous call and answers.
const ONE_CALL_PER_TURN: &str = "
mode single
tools exec_shell
tool exec_shell is dangerous
root calls exec_shell {\"command\": \"make\"}
root says done
root calls exec_shell {\"command\": \"make\"}
root says done
";

fn with_permission(permission: TurnPermission) -> TurnSpec {
    TurnSpec {
        permission,
        ..TurnSpec::request(request("go"))
    }
}

fn allow(tool: &str, subject: &str) -> TurnPermission {
    TurnPermission {
        rules: vec![ApprovalRule {
            tool: tool.to_owned(),
            matches: Some(subject.to_owned()),
            decision: Verdict::Auto,
        }],
        ..TurnPermission::default()
    }
}

#[tokio::test]
async fn an_own_approver_answers_for_its_turn_only() {
    let runtime = runtime(ONE_CALL_PER_TURN, &["no"]);
    let own = TurnPermission {
        approver: Some(approver(&["yes"])),
        ..TurnPermission::default()
    };
    let events = run(&runtime, with_permission(own)).await;
    assert_eq!(approvals(&events), [Asked, Approved]);
    let events = run(&runtime, TurnSpec::request(request("go"))).await;
    assert_eq!(approvals(&events), [Asked, Denied]);
}

/// A stored question may wait longer than a person at the terminal would.
#[tokio::test(start_paused = true)]
async fn an_own_approver_has_its_own_time_to_answer() {
    for (delay, wait, state) in [(1_000, 2_000, Approved), (1_000, 500, TimedOut)] {
        let runtime = runtime(ONE_CALL_PER_TURN, &[]);
        let slow = SlowApprover {
            delay: Duration::from_secs(delay),
            answer: approver(&["yes"]),
        };
        let permission = TurnPermission {
            approver: Some(Arc::new(slow)),
            approval_wait: Some(Duration::from_secs(wait)),
            ..TurnPermission::default()
        };
        let started = Instant::now();
        let events = run(&runtime, with_permission(permission)).await;
        assert_eq!(approvals(&events), [Asked, state]);
        assert_eq!(end(&events).0, "done");
        assert_eq!(started.elapsed().as_secs(), delay.min(wait));
    }
}

#[tokio::test]
async fn own_rules_hold_for_their_turn_only() {
    let runtime = runtime(ONE_CALL_PER_TURN, &[]);
    let events = run(&runtime, with_permission(allow("exec_shell", "make"))).await;
    assert_eq!(approvals(&events), [Approved]);
    let events = run(&runtime, TurnSpec::request(request("go"))).await;
    assert_eq!(approvals(&events), [Asked, NobodyThere]);
}

#[tokio::test]
async fn own_rules_allow_nothing_that_the_settings_deny() {
    let script = format!("rule deny exec_shell ma*\n{ONE_CALL_PER_TURN}");
    let runtime = runtime(&script, &["yes"]);
    let events = run(&runtime, with_permission(allow("exec_*", "*"))).await;
    assert_eq!(approvals(&events), [Denied]);
}

/// B102
#[tokio::test]
async fn own_rules_with_a_wildcard_do_not_cover_tainted_calls() {
    let script = "
mode single
tools exec_shell search_web
tool exec_shell is dangerous
tool search_web is untrusted
root calls search_web {}
root calls exec_shell {\"command\": \"make\"}
root says done
";
    for (subject, expected) in [("m*", vec![Asked, NobodyThere]), ("make", vec![Approved])] {
        let runtime = runtime(script, &[]);
        let events = run(&runtime, with_permission(allow("exec_shell", subject))).await;
        assert_eq!(approvals(&events), expected, "{subject}");
    }
}

/// B103
#[tokio::test]
async fn own_rules_do_not_let_private_content_out() {
    let script = "
mode single
tools fs_read search_web
tool fs_read is private
tool search_web sends to example.org
root calls fs_read {}
root calls search_web {\"query\": \"the secret plan of the user\"}
root says done
";
    let runtime = runtime(script, &[]);
    let permission = allow("search_web", "the secret plan of the user");
    let events = run(&runtime, with_permission(permission)).await;
    assert_eq!(approvals(&events), [Asked, NobodyThere]);
}

/// B56
#[tokio::test(start_paused = true)]
async fn an_own_budget_ends_its_turn_only() {
    let script = "
mode single
tools exec_shell
tool exec_shell takes 30 s
root calls exec_shell {\"command\": \"a\"} + uses 60 tokens
root calls exec_shell {\"command\": \"b\"} + uses 60 tokens
root says done
root says also done
";
    let none = TurnBudget::default;
    let tokens = TurnBudget {
        tokens: NonZeroU64::new(100),
        ..none()
    };
    let usd = TurnBudget {
        usd: Some(1.1),
        ..none()
    };
    let seconds = TurnBudget {
        seconds: NonZeroU64::new(45),
        ..none()
    };
    let budgets = [
        (tokens, "limit.tokens"),
        (usd, "limit.money"),
        (seconds, "limit.time"),
    ];
    for (budget, code) in budgets {
        let runtime = runtime(script, &[]);
        let permission = TurnPermission {
            budget,
            ..TurnPermission::default()
        };
        let hint = "The budget of this turn sets the limit.";
        let events = run(&runtime, with_permission(permission)).await;
        assert_eq!(end(&events), (code.to_owned(), hint.to_owned()));
        let events = run(&runtime, TurnSpec::request(request("again"))).await;
        assert_eq!(end(&events).0, "done", "{code}");
    }
}

/// B56
#[tokio::test]
async fn an_own_budget_never_raises_a_limit() {
    let script = "
mode single
tools exec_shell
limit tokens 50
root calls exec_shell {\"command\": \"a\"} + uses 60 tokens
";
    let runtime = runtime(script, &[]);
    let permission = TurnPermission {
        budget: TurnBudget {
            tokens: NonZeroU64::new(1_000),
            ..TurnBudget::default()
        },
        ..TurnPermission::default()
    };
    let events = run(&runtime, with_permission(permission)).await;
    let hint = "agent.limits.tokens sets the limit.";
    assert_eq!(end(&events), ("limit.tokens".to_owned(), hint.to_owned()));
}
