//! Calls that somebody has to allow.

use super::harness::{A2aTestClient, message, start_server};
use lango_domain::event::{CallId, Principal, SessionId};
use lango_gateway::{AnswerRight, TaskAssignment, TaskStep, TeamWorker, Worker};
use lango_remote::a2a::{Message, Task, TaskState, WireFormat};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const APPROVAL_SCRIPT: &str = "tools exec_shell
tool exec_shell is dangerous
root transfers operator
operator calls exec_shell {\"command\":\"rm -r build\"}
operator says over";

async fn wait_for_question(peer: &A2aTestClient) -> Value {
    let task = peer.ask("m1", "clean up").await;
    assert_eq!(
        task["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{task}"
    );
    let question = task["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(question.contains("would do rm -r build"), "{question}");
    task
}

async fn send_answer(peer: &A2aTestClient, task: &Value, id: &str, text: &str) -> Value {
    let mut reply = message(id, text);
    reply["taskId"] = task["id"].clone();
    peer.rpc("SendMessage", json!({ "message": reply })).await["result"]["task"].clone()
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn a_question_makes_the_task_wait_and_yes_lets_it_go_on() {
    let house = start_server(APPROVAL_SCRIPT).await;
    let ann = house.client("ann-approves");
    let task = wait_for_question(&ann).await;
    let unclear = send_answer(&ann, &task, "m2", "what would that delete?").await;
    assert_eq!(unclear["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let mut reply = message("m3", "Yes.");
    reply["taskId"] = task["id"].clone();
    let events = ann
        .events(ann.rpc_request("SendStreamingMessage", json!({ "message": reply })))
        .await;
    assert_eq!(
        events[0]["result"]["task"]["status"]["state"],
        "TASK_STATE_WORKING"
    );
    let done = ann.task(&task["id"]).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let said: Vec<&str> = done["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert!(
        said.contains(&"ROLE_AGENT")
            && said.iter().filter(|role| **role == "ROLE_USER").count() == 3,
        "{said:?}"
    );
    let audit = house.store.audit(&Principal::new("ann"), None, 10).await;
    assert!(format!("{audit:?}").contains("Approved"), "{audit:?}");
}

/// B102
#[tokio::test(flavor = "multi_thread")]
async fn nothing_hides_in_a_question() {
    let house = start_server(&APPROVAL_SCRIPT.replace("rm -r build", "rm\\u2066 -r build")).await;
    let task = house.client("ann-approves").ask("m1", "clean up").await;
    let question = task["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(
        question.contains(r"would do rm\u{2066} -r build"),
        "{question}"
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_give_permission_cannot_and_somebody_else_can() {
    let house = start_server(APPROVAL_SCRIPT).await;
    let ann = house.client("ann");
    let task = wait_for_question(&ann).await;
    let still = send_answer(&ann, &task, "m2", "yes").await;
    assert_eq!(still["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert!(
        still["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("/api/approvals")
    );

    let approver = house.client("ann-approves");
    let waiting = approver
        .send(approver.request("GET", "/api/approvals"))
        .await
        .body;
    let question = &waiting["items"][0];
    let follow = ann.rpc_request("SubscribeToTask", json!({ "id": task["id"] }));
    let mut follow = super::harness::EventStream::open(follow).await;
    assert_eq!(
        follow.next().await.unwrap()["result"]["task"]["status"]["state"],
        "TASK_STATE_INPUT_REQUIRED"
    );
    let body =
        json!({ "session": question["session"], "call": question["call"], "decision": "deny" });
    let request = approver
        .request("POST", "/api/approvals")
        .header("content-type", "application/json");
    assert_eq!(
        approver.send(request.body(body.to_string())).await.status,
        204
    );
    let last = follow.collect_rest().await.pop().unwrap();
    assert_eq!(
        last["result"]["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_answer_the_task_does_not_wait() {
    let house = start_server(APPROVAL_SCRIPT).await;
    let task = house.client("bob").ask("m1", "clean up").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_can_be_cancelled() {
    let house = start_server(APPROVAL_SCRIPT).await;
    let ann = house.client("ann-approves");
    let task = wait_for_question(&ann).await;
    let cancelled = ann.rpc("tasks/cancel", json!({ "id": task["id"] })).await;
    assert_eq!(cancelled["result"]["status"]["state"], "canceled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_at_work_takes_no_messages() {
    let house = start_server("root hangs").await;
    let ann = house.client("ann-approves");
    let task = ann.start_task("m1", "hi").await;
    let mut more = message("m2", "yes");
    more["taskId"] = task["id"].clone();
    assert_eq!(
        ann.rpc("SendMessage", json!({ "message": more })).await["error"]["code"],
        -32004
    );
}

const TWO_APPROVALS_SCRIPT: &str = "tools exec_shell
tool exec_shell is dangerous
root transfers operator
operator calls exec_shell {\"command\":\"rm -r build\"}
operator calls exec_shell {\"command\":\"rm -r docs\"}
operator says over";

fn question_text(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_sent_again_answers_no_other_question() {
    let house = start_server(TWO_APPROVALS_SCRIPT).await;
    let ann = house.client("ann-approves");
    let task = wait_for_question(&ann).await;
    let second = send_answer(&ann, &task, "m2", "Yes.").await;
    assert!(question_text(&second).contains("rm -r docs"), "{second}");
    assert_eq!(send_answer(&ann, &task, "m2", "Yes.").await, second);
    let mut again = message("m2", "Yes.");
    again["taskId"] = task["id"].clone();
    let events = ann
        .events(ann.rpc_request("SendStreamingMessage", json!({ "message": again })))
        .await;
    assert_eq!((events.len(), &events[0]["result"]["task"]), (1, &second));
    assert_eq!(ann.task(&task["id"]).await, second);

    let done = send_answer(&ann, &task, "m3", "no").await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(send_answer(&ann, &task, "m3", "no").await, done);
    let audit = house.store.audit(&Principal::new("ann"), None, 10).await;
    assert_eq!(
        format!("{audit:?}").matches("Approved").count(),
        1,
        "{audit:?}"
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn the_same_answer_at_the_same_time_answers_one_question() {
    let house = start_server(TWO_APPROVALS_SCRIPT).await;
    let ann = house.client("ann-approves");
    let task = wait_for_question(&ann).await;
    let (one, other) = tokio::join!(
        send_answer(&ann, &task, "m2", "yes"),
        send_answer(&ann, &task, "m2", "yes")
    );
    assert!(
        question_text(&one).contains("rm -r docs") && one == other,
        "{one} {other}"
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_what_was_answered_elsewhere_is_no_answer_to_what_is_asked_now() {
    let house = start_server(TWO_APPROVALS_SCRIPT).await;
    let ann = house.client("ann-approves");
    let task = wait_for_question(&ann).await;
    let waiting = ann.send(ann.request("GET", "/api/approvals")).await.body["items"].clone();
    let reply = message("m2", "yes");
    let assignment = |asked: &str| TaskAssignment {
        principal: Principal::new("ann"),
        session: SessionId::new(waiting[0]["session"].as_str().unwrap()),
        turn: None,
        answer_right: AnswerRight::Allowed,
        pending_call: Some(CallId::new(asked)),
        task: Task::from_json(&task, WireFormat::V1).unwrap(),
        message: Message::from_json(&reply, WireFormat::V1).unwrap(),
        cancel: CancellationToken::new(),
    };
    let goes_on = Ok(TaskStep::from_state(TaskState::Working));
    assert_eq!(
        TeamWorker.on_message(&house.gateway, &assignment("answered before")),
        goes_on
    );
    assert_eq!(
        ann.send(ann.request("GET", "/api/approvals")).await.body["items"],
        waiting
    );
    let call = waiting[0]["call"].as_str().unwrap();
    assert_eq!(
        TeamWorker.on_message(&house.gateway, &assignment(call)),
        goes_on
    );
    let nothing_asked = TaskAssignment {
        pending_call: None,
        ..assignment(call)
    };
    assert!(
        TeamWorker
            .on_message(&house.gateway, &nothing_asked)
            .is_err()
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn a_question_says_nothing_about_the_token_that_began_the_task() {
    let house = start_server(TWO_APPROVALS_SCRIPT).await;
    let task = wait_for_question(&house.client("ann")).await;
    assert!(
        question_text(&task).contains("a token that may approve"),
        "{task}"
    );
    let second = send_answer(&house.client("ann-approves"), &task, "m2", "yes").await;
    assert!(question_text(&second).contains("rm -r docs"), "{second}");
    assert!(!question_text(&second).contains("may not"), "{second}");
    let refused = send_answer(&house.client("ann"), &task, "m3", "yes").await;
    assert!(
        question_text(&refused).contains("rm -r docs")
            && question_text(&refused).contains("this token may not")
    );
}
