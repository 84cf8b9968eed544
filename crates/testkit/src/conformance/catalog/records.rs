//! Usage and the audit log.

use lango_domain::audit::AuditEntry;
use lango_domain::event::{
    ApprovalState, CallId, Decider, EventBody, Principal, SessionId, ToolCode, Usage,
};
use lango_domain::session_catalog::UsageRow;
use lango_domain::{Safety, Stores};
use serde_json::json;

use super::super::{append_at, key, new_event, ok, seconds};

pub async fn check(stores: &Stores) {
    usage_outlives_its_session(stores).await;
    the_audit_log_has_the_newest_calls(stores).await;
}

fn usage(input: u64) -> Usage {
    Usage {
        model: "fake/model".to_owned(),
        input,
        cost_usd: Some(0.5),
        ..Usage::default()
    }
}

fn usage_row(session: Option<&str>, turn: &str, input: u64) -> UsageRow {
    UsageRow {
        session: session.map(SessionId::new),
        turn: turn.to_owned(),
        agent: "lango-orchestrator".to_owned(),
        branch: "lango-orchestrator".to_owned(),
        usage: usage(input),
    }
}

async fn usage_outlives_its_session(stores: &Stores) {
    for (session, turn, input) in [("a", "t1", 1), ("b", "t2", 2), ("a", "t3", 3)] {
        let event = new_event(turn, EventBody::Usage(usage(input)));
        let key = key("usage", session);
        append_at(&*stores.sessions, &key, seconds(1), vec![event]).await;
    }
    let (owner, a, b) = (
        Principal::new("usage"),
        SessionId::new("a"),
        SessionId::new("b"),
    );
    let of_a = [usage_row(Some("a"), "t1", 1), usage_row(Some("a"), "t3", 3)];
    let of_b = usage_row(Some("b"), "t2", 2);
    assert_eq!(ok(stores.catalog.usage(&owner, Some(&a)).await), of_a);
    let all = ok(stores.catalog.usage(&owner, None).await);
    assert_eq!(all.len(), 3);
    assert!(of_a.iter().all(|row| all.contains(row)) && all.contains(&of_b));
    ok(stores.catalog.delete(&owner, &a).await);
    assert_eq!(ok(stores.catalog.usage(&owner, Some(&a)).await), []);
    assert_eq!(
        ok(stores.catalog.usage(&owner, Some(&b)).await),
        std::slice::from_ref(&of_b)
    );
    let deleted = [usage_row(None, "t1", 1), usage_row(None, "t3", 3)];
    let [first, second] = deleted;
    assert_eq!(
        ok(stores.catalog.usage(&owner, None).await),
        [first, second, of_b]
    );
}

/// Appends a call, its approval and its result.
async fn append_call(stores: &Stores, session: &str, second: i64, result: Option<bool>) {
    let id = || CallId::new("c1");
    let turn = format!("turn {second}");
    let mut bodies = vec![
        EventBody::ToolCall {
            id: id(),
            tool: format!("tool_{second}"),
            args: json!({ "number": second }),
        },
        EventBody::Approval {
            id: id(),
            tool: format!("tool_{second}"),
            level: Safety::Dangerous,
            state: ApprovalState::Approved,
            shows: String::new(),
            tainted_by: Vec::new(),
            by: Some(Decider::User),
            grant: None,
        },
    ];
    bodies.extend(result.map(|ok| EventBody::ToolResult {
        id: id(),
        ok,
        content: String::new(),
        attachments: Vec::new(),
        error: None,
        code: (!ok).then_some(ToolCode::Timeout),
        untrusted: false,
        advice: None,
    }));
    let events = bodies.into_iter().map(|body| new_event(&turn, body));
    let key = key("audit", session);
    append_at(&*stores.sessions, &key, seconds(second), events.collect()).await;
}

async fn the_audit_log_has_the_newest_calls(stores: &Stores) {
    append_call(stores, "a", 1, Some(true)).await;
    append_call(stores, "b", 2, Some(false)).await;
    append_call(stores, "a", 3, None).await;
    let (owner, a) = (Principal::new("audit"), SessionId::new("a"));
    let tools = |entries: &[AuditEntry]| -> Vec<String> {
        entries.iter().map(|entry| entry.tool.clone()).collect()
    };
    let all = ok(stores.catalog.audit(&owner, None, 9).await);
    assert_eq!(tools(&all), ["tool_3", "tool_2", "tool_1"]);
    let outcomes: Vec<_> = all.iter().map(|entry| entry.outcome).collect();
    assert_eq!(
        outcomes,
        [None, Some(Err(Some(ToolCode::Timeout))), Some(Ok(()))]
    );
    for (entry, second) in all.iter().zip([3, 2, 1]) {
        assert_eq!(entry.args, json!({ "number": second }));
        assert_eq!(
            (entry.at, entry.level),
            (seconds(second), Safety::Dangerous)
        );
        assert_eq!(
            entry.decision,
            Some((ApprovalState::Approved, Some(Decider::User)))
        );
    }
    let newest = ok(stores.catalog.audit(&owner, None, 2).await);
    assert_eq!(newest, all[..2]);
    let in_a = ok(stores.catalog.audit(&owner, Some(&a), 9).await);
    assert_eq!(tools(&in_a), ["tool_3", "tool_1"]);
    let missing = SessionId::new("missing");
    assert_eq!(
        ok(stores.catalog.audit(&owner, Some(&missing), 9).await),
        []
    );
}
