//! Approval questions.

use serde_json::{Value, json};

use crate::harness::{Approve, Chat, Read, TestGateway};

pub const APPROVAL_SCRIPT: &str = "tool exec_shell is dangerous\nroot transfers operator\noperator calls exec_shell {\"command\":\"rm\"}\noperator says so be it";

pub async fn wait_for_question(gateway: &TestGateway, token: &str) -> Value {
    loop {
        let pending = gateway.get("/api/approvals", token).await.json();
        if let Some(question) = pending["items"].get(0) {
            return question.clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn only_tokens_with_the_approve_scope_can_answer() {
    let gateway = TestGateway::start(APPROVAL_SCRIPT).await;
    let chat = gateway.token_for("ann-chat", "ann", &[Chat, Read]).await;
    let approve = gateway.token_for("ann-phone", "ann", &[Approve]).await;
    let eve = gateway.token("eve", &[Approve]).await;
    let mut stream = gateway
        .stream(
            "/api/turns",
            &chat,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let event = stream.next_of_type("approval").await;
    let question = wait_for_question(&gateway, &approve).await;
    assert_eq!(
        (&question["call"], &question["tool"]),
        (&event["id"], &json!("exec_shell"))
    );
    assert_eq!(
        (&question["session"], &question["level"]),
        (&json!("s"), &json!("dangerous"))
    );
    assert_eq!(question["args"], json!({ "command": "rm" }));
    let yes = json!({ "session": "s", "call": question["call"], "decision": "approve" });
    assert_eq!(
        gateway.post("/api/approvals", &chat, &yes).await.status,
        403
    );
    assert_eq!(gateway.post("/api/approvals", &eve, &yes).await.status, 404);
    assert_eq!(
        gateway.get("/api/approvals", &eve).await.json(),
        json!({ "items": [] })
    );
    assert_eq!(
        gateway.post("/api/approvals", &approve, &yes).await.status,
        204
    );
    assert_eq!(
        gateway.post("/api/approvals", &approve, &yes).await.status,
        404,
        "answered once"
    );
    assert_eq!(stream.next_of_type("approval").await["state"], "approved");
    assert_eq!(stream.next_of_type("tool_result").await["ok"], true);
    stream.collect_rest().await;
}

/// B102
#[tokio::test]
async fn nothing_hides_in_a_question() {
    let hidden = APPROVAL_SCRIPT.replace("\"rm\"", "\"rm\\u200b x\\u202e\"");
    let gateway = TestGateway::start(&hidden).await;
    let token = gateway.token("ann", &[Chat, Approve]).await;
    let mut stream = gateway
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let shown = r"would do rm\u{200b} x\u{202e}";
    assert_eq!(stream.next_of_type("approval").await["shows"], shown);
    assert_eq!(wait_for_question(&gateway, &token).await["shows"], shown);
}

#[tokio::test]
async fn denied_and_invalid_answers_run_nothing() {
    let gateway = TestGateway::start(APPROVAL_SCRIPT).await;
    let token = gateway.token("ann", &[Chat, Approve]).await;
    let mut stream = gateway
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let question = wait_for_question(&gateway, &token).await;
    let answer = |decision: &str, reach: &str| json!({ "session": "s", "call": question["call"], "decision": decision, "reach": reach });
    assert_eq!(
        gateway
            .post("/api/approvals", &token, &answer("approve", "for ever"))
            .await
            .status,
        400
    );
    assert_eq!(
        gateway
            .post("/api/approvals", &token, &answer("perhaps", "once"))
            .await
            .status,
        400
    );
    assert_eq!(
        gateway
            .post("/api/approvals", &token, &answer("deny", "once"))
            .await
            .status,
        204
    );
    let result = stream.next_of_type("tool_result").await;
    assert_eq!(
        (&result["ok"], &result["code"]),
        (&json!(false), &json!("tool.denied"))
    );
}

#[tokio::test]
async fn does_not_wait_if_no_token_can_approve() {
    let gateway = TestGateway::start(APPROVAL_SCRIPT).await;
    let token = gateway.token("ann", &[Chat]).await;
    gateway.token("eve", &[Approve]).await;
    let mut stream = gateway
        .stream("/api/turns", &token, &json!({ "text": "rm" }))
        .await;
    assert_eq!(stream.next_of_type("approval").await["state"], "asked");
    assert_eq!(
        stream.next_of_type("approval").await["state"],
        "nobody_there"
    );
}

#[tokio::test]
async fn unanswered_questions_time_out_and_are_removed() {
    let gateway = TestGateway::start(&format!("limit wait 1\n{APPROVAL_SCRIPT}")).await;
    let token = gateway.token("ann", &[Chat, Approve]).await;
    let mut stream = gateway
        .stream("/api/turns", &token, &json!({ "text": "rm" }))
        .await;
    assert_eq!(stream.next_of_type("approval").await["state"], "asked");
    assert_eq!(stream.next_of_type("approval").await["state"], "timed_out");
    assert_eq!(
        gateway.get("/api/approvals", &token).await.json(),
        json!({ "items": [] })
    );
}

#[tokio::test]
async fn cancelled_turns_remove_their_questions() {
    let gateway = TestGateway::start(APPROVAL_SCRIPT).await;
    let token = gateway.token("ann", &[Chat, Approve]).await;
    let stream = gateway
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    wait_for_question(&gateway, &token).await;
    drop(stream);
    while !gateway.get("/api/approvals", &token).await.json()["items"]
        .as_array()
        .unwrap()
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
}
