//! Questions about calls.

use serde_json::{Value, json};

use crate::harness::{Approve, Chat, Read, TestGateway};

pub const APPROVAL_SCRIPT: &str = "tool exec_shell is dangerous\nroot transfers operator\noperator calls exec_shell {\"command\":\"rm\"}\noperator says so be it";

pub async fn wait_for_question(house: &TestGateway, token: &str) -> Value {
    loop {
        let waiting = house.get("/api/approvals", token).await.json();
        if let Some(question) = waiting["items"].get(0) {
            return question.clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_question_waits_for_the_one_who_may_answer_it() {
    let house = TestGateway::start(APPROVAL_SCRIPT).await;
    let chat = house.token_for("ann-chat", "ann", &[Chat, Read]).await;
    let approve = house.token_for("ann-phone", "ann", &[Approve]).await;
    let eve = house.token("eve", &[Approve]).await;
    let mut stream = house
        .stream(
            "/api/turns",
            &chat,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let asked = stream.next_of_type("approval").await;
    let question = wait_for_question(&house, &approve).await;
    assert_eq!(
        (&question["call"], &question["tool"]),
        (&asked["id"], &json!("exec_shell"))
    );
    assert_eq!(
        (&question["session"], &question["level"]),
        (&json!("s"), &json!("dangerous"))
    );
    assert_eq!(question["args"], json!({ "command": "rm" }));
    let yes = json!({ "session": "s", "call": question["call"], "decision": "approve" });
    assert_eq!(house.post("/api/approvals", &chat, &yes).await.status, 403);
    assert_eq!(house.post("/api/approvals", &eve, &yes).await.status, 404);
    assert_eq!(
        house.get("/api/approvals", &eve).await.json(),
        json!({ "items": [] })
    );
    assert_eq!(
        house.post("/api/approvals", &approve, &yes).await.status,
        204
    );
    assert_eq!(
        house.post("/api/approvals", &approve, &yes).await.status,
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
    let house = TestGateway::start(&hidden).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let mut stream = house
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let shown = r"would do rm\u{200b} x\u{202e}";
    assert_eq!(stream.next_of_type("approval").await["shows"], shown);
    assert_eq!(wait_for_question(&house, &token).await["shows"], shown);
}

#[tokio::test]
async fn a_no_and_a_wrong_answer_run_nothing() {
    let house = TestGateway::start(APPROVAL_SCRIPT).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let mut stream = house
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let question = wait_for_question(&house, &token).await;
    let answer = |decision: &str, reach: &str| json!({ "session": "s", "call": question["call"], "decision": decision, "reach": reach });
    assert_eq!(
        house
            .post("/api/approvals", &token, &answer("approve", "for ever"))
            .await
            .status,
        400
    );
    assert_eq!(
        house
            .post("/api/approvals", &token, &answer("perhaps", "once"))
            .await
            .status,
        400
    );
    assert_eq!(
        house
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
async fn where_nobody_may_answer_nobody_is_waited_for() {
    let house = TestGateway::start(APPROVAL_SCRIPT).await;
    let token = house.token("ann", &[Chat]).await;
    house.token("eve", &[Approve]).await;
    let mut stream = house
        .stream("/api/turns", &token, &json!({ "text": "rm" }))
        .await;
    assert_eq!(stream.next_of_type("approval").await["state"], "asked");
    assert_eq!(
        stream.next_of_type("approval").await["state"],
        "nobody_there"
    );
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_a_no_and_no_longer_open() {
    let house = TestGateway::start(&format!("limit wait 1\n{APPROVAL_SCRIPT}")).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let mut stream = house
        .stream("/api/turns", &token, &json!({ "text": "rm" }))
        .await;
    assert_eq!(stream.next_of_type("approval").await["state"], "asked");
    assert_eq!(stream.next_of_type("approval").await["state"], "timed_out");
    assert_eq!(
        house.get("/api/approvals", &token).await.json(),
        json!({ "items": [] })
    );
}

#[tokio::test]
async fn a_turn_that_is_cancelled_leaves_no_question() {
    let house = TestGateway::start(APPROVAL_SCRIPT).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let stream = house
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    wait_for_question(&house, &token).await;
    drop(stream);
    while !house.get("/api/approvals", &token).await.json()["items"]
        .as_array()
        .unwrap()
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
}
