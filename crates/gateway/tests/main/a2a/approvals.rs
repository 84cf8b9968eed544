//! Approvals over A2A.

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

async fn wait_for_question(client: &A2aTestClient) -> Value {
    let task = client.ask("m1", "clean up").await;
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

async fn send_answer(client: &A2aTestClient, task: &Value, id: &str, text: &str) -> Value {
    let mut reply = message(id, text);
    reply["taskId"] = task["id"].clone();
    client.rpc("SendMessage", json!({ "message": reply })).await["result"]["task"].clone()
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn tasks_wait_for_approval_and_continue_after_yes() {
    let server = start_server(APPROVAL_SCRIPT).await;
    let ann = server.client("ann-approves");
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
    let roles: Vec<&str> = done["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert!(
        roles.contains(&"ROLE_AGENT")
            && roles.iter().filter(|role| **role == "ROLE_USER").count() == 3,
        "{roles:?}"
    );
    let audit = server
        .stores
        .catalog
        .audit(&Principal::new("ann"), None, 10)
        .await;
    assert!(format!("{audit:?}").contains("Approved"), "{audit:?}");
}

/// B102
#[tokio::test(flavor = "multi_thread")]
async fn nothing_hides_in_a_question() {
    let server = start_server(&APPROVAL_SCRIPT.replace("rm -r build", "rm\\u2066 -r build")).await;
    let task = server.client("ann-approves").ask("m1", "clean up").await;
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
async fn only_tokens_with_the_approve_scope_can_answer() {
    let server = start_server(APPROVAL_SCRIPT).await;
    let ann = server.client("ann");
    let task = wait_for_question(&ann).await;
    let still = send_answer(&ann, &task, "m2", "yes").await;
    assert_eq!(still["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert!(
        still["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("/api/approvals")
    );

    let approver = server.client("ann-approves");
    let pending = approver
        .send(approver.request("GET", "/api/approvals"))
        .await
        .body;
    let question = &pending["items"][0];
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
async fn does_not_wait_if_no_token_can_approve() {
    let server = start_server(APPROVAL_SCRIPT).await;
    let task = server.client("bob").ask("m1", "clean up").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_tasks_can_be_cancelled() {
    let server = start_server(APPROVAL_SCRIPT).await;
    let ann = server.client("ann-approves");
    let task = wait_for_question(&ann).await;
    let cancelled = ann.rpc("tasks/cancel", json!({ "id": task["id"] })).await;
    assert_eq!(cancelled["result"]["status"]["state"], "canceled");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_tasks_accept_no_messages() {
    let server = start_server("root hangs").await;
    let ann = server.client("ann-approves");
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
async fn repeated_answers_answer_no_other_question() {
    let server = start_server(TWO_APPROVALS_SCRIPT).await;
    let ann = server.client("ann-approves");
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
    let audit = server
        .stores
        .catalog
        .audit(&Principal::new("ann"), None, 10)
        .await;
    assert_eq!(
        format!("{audit:?}").matches("Approved").count(),
        1,
        "{audit:?}"
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_identical_answers_answer_one_question() {
    let server = start_server(TWO_APPROVALS_SCRIPT).await;
    let ann = server.client("ann-approves");
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
async fn answers_apply_only_to_the_question_in_the_status() {
    let server = start_server(TWO_APPROVALS_SCRIPT).await;
    let ann = server.client("ann-approves");
    let task = wait_for_question(&ann).await;
    let pending = ann.send(ann.request("GET", "/api/approvals")).await.body["items"].clone();
    let reply = message("m2", "yes");
    let assignment = |call: &str| TaskAssignment {
        principal: Principal::new("ann"),
        session: SessionId::new(pending[0]["session"].as_str().unwrap()),
        turn: None,
        answer_right: AnswerRight::Allowed,
        pending_call: Some(CallId::new(call)),
        task: Task::from_json(&task, WireFormat::V1).unwrap(),
        message: Message::from_json(&reply, WireFormat::V1).unwrap(),
        cancel: CancellationToken::new(),
    };
    let working = Ok(TaskStep::from_state(TaskState::Working));
    assert_eq!(
        TeamWorker.on_message(&server.gateway, &assignment("answered before")),
        working
    );
    assert_eq!(
        ann.send(ann.request("GET", "/api/approvals")).await.body["items"],
        pending
    );
    let call = pending[0]["call"].as_str().unwrap();
    assert_eq!(
        TeamWorker.on_message(&server.gateway, &assignment(call)),
        working
    );
    let without_question = TaskAssignment {
        pending_call: None,
        ..assignment(call)
    };
    assert!(
        TeamWorker
            .on_message(&server.gateway, &without_question)
            .is_err()
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn questions_do_not_depend_on_the_token_that_started_the_task() {
    let server = start_server(TWO_APPROVALS_SCRIPT).await;
    let task = wait_for_question(&server.client("ann")).await;
    assert!(
        question_text(&task).contains("a token that has the scope `approve`"),
        "{task}"
    );
    let second = send_answer(&server.client("ann-approves"), &task, "m2", "yes").await;
    assert!(question_text(&second).contains("rm -r docs"), "{second}");
    assert!(!question_text(&second).contains("lacks"), "{second}");
    let rejected = send_answer(&server.client("ann"), &task, "m3", "yes").await;
    assert!(
        question_text(&rejected).contains("rm -r docs")
            && question_text(&rejected).contains("This token lacks the scope")
    );
}
