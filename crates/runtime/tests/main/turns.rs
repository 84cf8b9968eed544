//! Starting, following, stopping and observing turns.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use lango_domain::event::ApprovalState::{Approved, Asked};
use lango_domain::event::{Event, EventBody, Update};
use lango_domain::{Label, LabeledText};
use lango_engine::{InMemorySessionStore, TurnPermission, TurnRequest};
use lango_runtime::{
    OnDisconnect, Runtime, RuntimeParts, StartTurnError, TooManyTurns, TurnLimiter, TurnSpec,
    TurnTarget,
};

use crate::harness::{
    approvals, approver, end, request, run, runner, runtime, runtime_on, session_key,
};

const ANSWERS: &str = "mode single\nroot always says done";

/// B101
#[tokio::test]
async fn a_request_keeps_its_labels_and_attachments() {
    let runtime = runtime(ANSWERS, &[]);
    let label = Label::untrusted("standard input");
    let attached = LabeledText {
        text: "piped".to_owned(),
        label: label.clone(),
    };
    let spec = TurnSpec::request(TurnRequest {
        label: label.clone(),
        context: vec![("stdin".to_owned(), attached)],
        ..request("summarize")
    });
    let events = run(&runtime, spec).await;
    let is_user = |body: &EventBody| matches!(body, EventBody::User { .. });
    let is_piped =
        |body: &EventBody| matches!(body, EventBody::Context { text, .. } if text == "piped");
    for is_wanted in [&is_user as &dyn Fn(&EventBody) -> bool, &is_piped] {
        let event = events.iter().find(|event| is_wanted(&event.body)).unwrap();
        assert_eq!(event.label, label);
    }
}

/// B122: a call without a language model is approved, limited and logged like any other.
#[tokio::test]
async fn a_single_call_needs_no_model() {
    let runtime = runtime(
        "mode single\ntools fs_read fs_list\ntool fs_read returns 42\ntool fs_read is untrusted\ntool fs_list fails no such folder",
        &[],
    );
    for (tool, ok, answer) in [
        ("fs_read", true, "42"),
        ("fs_list", false, "no such folder"),
    ] {
        let target = TurnTarget::Call {
            tool: tool.to_owned(),
            arguments: serde_json::json!({ "path": "a" }),
        };
        let spec = TurnSpec {
            target,
            ..TurnSpec::request(request("read it"))
        };
        let events = run(&runtime, spec).await;
        let result = events.iter().find_map(|event| match &event.body {
            EventBody::ToolResult { ok, .. } => Some(*ok),
            _ => None,
        });
        assert_eq!(result, Some(ok));
        let said =
            |body: &EventBody| matches!(body, EventBody::Answer(content) if content.text == answer);
        assert!(events.iter().any(|event| said(&event.body)), "{events:?}");
    }
    let unknown = TurnSpec {
        target: TurnTarget::Call {
            tool: "fs_none".to_owned(),
            arguments: serde_json::json!({}),
        },
        ..TurnSpec::request(request("read it"))
    };
    let refused = runtime.start_turn(unknown).err();
    assert_eq!(
        refused,
        Some(StartTurnError::UnknownTool("fs_none".to_owned()))
    );
    assert!(!runtime.is_read_only("fs_none", &serde_json::json!({})));
}

/// Returns a runtime for one turn at a time.
fn narrow_runtime(script: &str) -> Runtime {
    Runtime::new(RuntimeParts {
        runner: runner(script, Arc::new(InMemorySessionStore::default())),
        approver: None,
        limiter: TurnLimiter::new(1, 1),
    })
}

#[tokio::test]
async fn a_turn_over_the_limit_is_not_started() {
    let runtime = narrow_runtime("mode single\nroot hangs");
    let _running = runtime.start_turn(TurnSpec::request(request("go")));
    let refused = runtime.start_turn(TurnSpec::request(request("go"))).err();
    let too_many = StartTurnError::TooMany(TooManyTurns::InTotal(1));
    assert_eq!(refused, Some(too_many));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permit_is_free_when_the_end_was_seen() {
    let runtime = narrow_runtime(ANSWERS);
    for number in 0..50 {
        let events = run(&runtime, TurnSpec::request(request(&number.to_string()))).await;
        assert_eq!(end(&events).0, "done");
    }
}

#[tokio::test]
async fn every_observer_sees_the_end_of_a_turn() {
    let runtime = runtime("mode single\nroot says done + uses 7 tokens", &[]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let seen = Arc::clone(&seen);
        runtime.observe_turns(Box::new(move |meter| {
            let end = meter.end.clone();
            seen.lock().unwrap().push((name, meter.tokens_in, end));
        }));
    }
    run(&runtime, TurnSpec::request(request("go"))).await;
    let done = Some("done".to_owned());
    let expected = [("first", 7, done.clone()), ("second", 7, done)];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_replaced_team_answers_later_turns_and_keeps_the_approver() {
    let store = Arc::new(InMemorySessionStore::default());
    let runtime = runtime_on(ANSWERS, &["yes"], Arc::clone(&store) as _);
    assert_eq!(
        end(&run(&runtime, TurnSpec::request(request("go"))).await).0,
        "done"
    );
    let script = "
mode single
tools exec_shell
tool exec_shell is dangerous
root calls exec_shell {\"command\": \"make\"}
root says new
";
    runtime.replace_runner(runner(script, store));
    let events = run(&runtime, TurnSpec::request(request("go"))).await;
    let is_new =
        |body: &EventBody| matches!(body, EventBody::Answer(content) if content.text == "new");
    assert!(events.iter().any(|event| is_new(&event.body)));
    assert_eq!(approvals(&events), [Asked, Approved]);
}

#[tokio::test]
async fn cancelling_a_handle_ends_its_turn() {
    let runtime = runtime("mode single\nroot hangs", &[]);
    let mut turn = runtime
        .start_turn(TurnSpec::request(request("go")))
        .unwrap();
    assert!(turn.next().await.is_some());
    turn.cancel();
    let updates: Vec<Update> = turn.collect().await;
    let Some(Update::Event(last)) = updates.last() else {
        panic!("no end: {updates:?}");
    };
    assert!(
        matches!(&last.body, EventBody::TurnFailed { code, .. } if code.to_string() == "cancelled")
    );
}

/// B73
#[tokio::test]
async fn a_suspended_turn_is_resumed_with_its_own_approver() {
    let store = Arc::new(InMemorySessionStore::default());
    let script = "
mode single
tools exec_shell
tool exec_shell is dangerous
root always calls exec_shell {\"command\": \"make\"}
";
    let first = runtime_on(script, &["hangs"], Arc::clone(&store) as _);
    let mut turn = first.start_turn(TurnSpec::request(request("go"))).unwrap();
    let is_question = |update: &Update| matches!(update, Update::Event(event) if matches!(event.body, EventBody::Approval { .. }));
    while !turn.next().await.is_some_and(|update| is_question(&update)) {}
    first.suspend_turns().cancel();
    turn.count().await;

    let script = script.replace("root always calls", "root calls") + "root says done";
    let second = runtime_on(&script, &["no"], store);
    let unfinished = second.find_unfinished_turn(&session_key()).await.unwrap();
    assert!(unfinished.is_some());
    let spec = TurnSpec {
        permission: TurnPermission {
            approver: Some(approver(&["yes"])),
            ..TurnPermission::default()
        },
        ..TurnSpec::resume(session_key())
    };
    let events = run(&second, spec).await;
    assert_eq!(approvals(&events).last(), Some(&Approved));
    assert_eq!(end(&events).0, "done");
}

/// B73, B121: a call that waited for an answer has not run, so it is asked about again.
#[tokio::test]
async fn a_single_call_is_asked_about_again_after_a_restart() {
    let store = Arc::new(InMemorySessionStore::default());
    let script = "mode single\ntools exec_shell\ntool exec_shell is dangerous\n";
    let target = TurnTarget::Call {
        tool: "exec_shell".to_owned(),
        arguments: serde_json::json!({ "command": "make" }),
    };
    let first = runtime_on(script, &["hangs"], Arc::clone(&store) as _);
    let spec = TurnSpec {
        target: target.clone(),
        on_disconnect: OnDisconnect::Suspend,
        ..TurnSpec::request(request("go"))
    };
    let mut turn = first.start_turn(spec).unwrap();
    let is_question = |update: &Update| matches!(update, Update::Event(event) if matches!(event.body, EventBody::Approval { .. }));
    while !turn.next().await.is_some_and(|update| is_question(&update)) {}
    drop(turn);
    first.tasks().close();
    first.tasks().wait().await;

    let second = runtime_on(script, &["yes"], store);
    let spec = TurnSpec {
        target,
        ..TurnSpec::resume(session_key())
    };
    let events = run(&second, spec).await;
    assert_eq!(approvals(&events).last(), Some(&Approved));
    let ran = |event: &&Arc<Event>| matches!(event.body, EventBody::ToolResult { ok: true, .. });
    assert_eq!(events.iter().filter(ran).count(), 1);
    assert_eq!(end(&events).0, "done");
}
