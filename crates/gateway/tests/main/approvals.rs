//! Questions about calls.

use serde_json::{Value, json};

use crate::house::{Approve, Chat, House, Read};

pub const ASKS: &str = "tool exec_shell is dangerous\nroot transfers operator\noperator calls exec_shell {\"command\":\"rm\"}\noperator says so be it";

pub async fn question(house: &House, token: &str) -> Value {
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
    let house = House::open(ASKS).await;
    let chat = house.token_of("ann-chat", "ann", &[Chat, Read]).await;
    let approve = house.token_of("ann-phone", "ann", &[Approve]).await;
    let eve = house.token("eve", &[Approve]).await;
    let mut stream = house.stream("/api/turns", &chat, &json!({ "text": "rm", "session": "s" })).await;
    let asked = stream.until("approval").await;
    let question = question(&house, &approve).await;
    assert_eq!((&question["call"], &question["tool"]), (&asked["id"], &json!("exec_shell")));
    assert_eq!((&question["session"], &question["level"]), (&json!("s"), &json!("dangerous")));
    assert_eq!(question["args"], json!({ "command": "rm" }));
    let yes = json!({ "session": "s", "call": question["call"], "decision": "approve" });
    assert_eq!(house.post("/api/approvals", &chat, &yes).await.status, 403);
    assert_eq!(house.post("/api/approvals", &eve, &yes).await.status, 404);
    assert_eq!(house.get("/api/approvals", &eve).await.json(), json!({ "items": [] }));
    assert_eq!(house.post("/api/approvals", &approve, &yes).await.status, 204);
    assert_eq!(house.post("/api/approvals", &approve, &yes).await.status, 404, "answered once");
    assert_eq!(stream.until("approval").await["state"], "approved");
    assert_eq!(stream.until("tool_result").await["ok"], true);
    stream.rest().await;
}

/// B102
#[tokio::test]
async fn nothing_hides_in_a_question() {
    let hidden = ASKS.replace("\"rm\"", "\"rm\\u200b x\\u202e\"");
    let house = House::open(&hidden).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let mut stream = house.stream("/api/turns", &token, &json!({ "text": "rm", "session": "s" })).await;
    let shown = r"would do rm\u{200b} x\u{202e}";
    assert_eq!(stream.until("approval").await["shows"], shown);
    assert_eq!(question(&house, &token).await["shows"], shown);
}

#[tokio::test]
async fn a_no_and_a_wrong_answer_run_nothing() {
    let house = House::open(ASKS).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let mut stream = house.stream("/api/turns", &token, &json!({ "text": "rm", "session": "s" })).await;
    let question = question(&house, &token).await;
    let answer = |decision: &str, reach: &str| json!({ "session": "s", "call": question["call"], "decision": decision, "reach": reach });
    assert_eq!(house.post("/api/approvals", &token, &answer("approve", "for ever")).await.status, 400);
    assert_eq!(house.post("/api/approvals", &token, &answer("perhaps", "once")).await.status, 400);
    assert_eq!(house.post("/api/approvals", &token, &answer("deny", "once")).await.status, 204);
    let result = stream.until("tool_result").await;
    assert_eq!((&result["ok"], &result["code"]), (&json!(false), &json!("tool.denied")));
}

#[tokio::test]
async fn where_nobody_may_answer_nobody_is_waited_for() {
    let house = House::open(ASKS).await;
    let token = house.token("ann", &[Chat]).await;
    house.token("eve", &[Approve]).await;
    let mut stream = house.stream("/api/turns", &token, &json!({ "text": "rm" })).await;
    assert_eq!(stream.until("approval").await["state"], "asked");
    assert_eq!(stream.until("approval").await["state"], "nobody_there");
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_a_no_and_no_longer_open() {
    let house = House::open(&format!("limit wait 1\n{ASKS}")).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let mut stream = house.stream("/api/turns", &token, &json!({ "text": "rm" })).await;
    assert_eq!(stream.until("approval").await["state"], "asked");
    assert_eq!(stream.until("approval").await["state"], "timed_out");
    assert_eq!(house.get("/api/approvals", &token).await.json(), json!({ "items": [] }));
}

#[tokio::test]
async fn a_turn_that_is_cancelled_leaves_no_question() {
    let house = House::open(ASKS).await;
    let token = house.token("ann", &[Chat, Approve]).await;
    let stream = house.stream("/api/turns", &token, &json!({ "text": "rm", "session": "s" })).await;
    question(&house, &token).await;
    drop(stream);
    while !house.get("/api/approvals", &token).await.json()["items"].as_array().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}
