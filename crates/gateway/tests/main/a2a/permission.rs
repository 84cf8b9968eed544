//! Calls that somebody has to allow.

use super::house::{Peer, house, message};
use serde_json::{Value, json};

const ASKS: &str = "tools exec_shell
tool exec_shell is dangerous
root transfers operator
operator calls exec_shell {\"command\":\"rm -r build\"}
operator says over";

async fn asked(peer: &Peer) -> Value {
    let task = peer.ask("m1", "clean up").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let question = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(question.contains("would do rm -r build"), "{question}");
    task
}

async fn answered(peer: &Peer, task: &Value, id: &str, text: &str) -> Value {
    let mut reply = message(id, text);
    reply["taskId"] = task["id"].clone();
    peer.rpc("SendMessage", json!({ "message": reply })).await["result"]["task"].clone()
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn a_question_makes_the_task_wait_and_yes_lets_it_go_on() {
    let house = house(ASKS).await;
    let ann = house.peer("ann-approves");
    let task = asked(&ann).await;
    let unclear = answered(&ann, &task, "m2", "what would that delete?").await;
    assert_eq!(unclear["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let mut reply = message("m3", "Yes.");
    reply["taskId"] = task["id"].clone();
    let events = ann.events(ann.rpc_request("SendStreamingMessage", json!({ "message": reply }))).await;
    assert_eq!(events[0]["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let done = ann.task(&task["id"]).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let said: Vec<&str> =
        done["history"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert!(
        said.contains(&"ROLE_AGENT") && said.iter().filter(|role| **role == "ROLE_USER").count() == 3,
        "{said:?}"
    );
    let audit = house.store.audit(&lango_domain::event::Principal::new("ann"), None, 10).await;
    assert!(format!("{audit:?}").contains("Approved"), "{audit:?}");
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_give_permission_cannot_and_somebody_else_can() {
    let house = house(ASKS).await;
    let ann = house.peer("ann");
    let task = asked(&ann).await;
    let still = answered(&ann, &task, "m2", "yes").await;
    assert_eq!(still["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert!(still["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("/api/approvals"));

    let approver = house.peer("ann-approves");
    let waiting = approver.send(approver.request("GET", "/api/approvals")).await.body;
    let question = &waiting["items"][0];
    let follow = ann.rpc_request("SubscribeToTask", json!({ "id": task["id"] }));
    let mut follow = super::house::Stream::open(follow).await;
    assert_eq!(
        follow.next().await.unwrap()["result"]["task"]["status"]["state"],
        "TASK_STATE_INPUT_REQUIRED"
    );
    let body = json!({ "session": question["session"], "call": question["call"], "decision": "deny" });
    let request = approver.request("POST", "/api/approvals").header("content-type", "application/json");
    assert_eq!(approver.send(request.body(body.to_string())).await.status, 204);
    let last = follow.rest().await.pop().unwrap();
    assert_eq!(last["result"]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_answer_the_task_does_not_wait() {
    let house = house(ASKS).await;
    let task = house.peer("bob").ask("m1", "clean up").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_can_be_cancelled() {
    let house = house(ASKS).await;
    let ann = house.peer("ann-approves");
    let task = asked(&ann).await;
    let cancelled = ann.rpc("tasks/cancel", json!({ "id": task["id"] })).await;
    assert_eq!(cancelled["result"]["status"]["state"], "canceled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_at_work_takes_no_messages() {
    let house = house("root hangs").await;
    let ann = house.peer("ann-approves");
    let task = ann.begin("m1", "hi").await;
    let mut more = message("m2", "yes");
    more["taskId"] = task["id"].clone();
    assert_eq!(ann.rpc("SendMessage", json!({ "message": more })).await["error"]["code"], -32004);
}
