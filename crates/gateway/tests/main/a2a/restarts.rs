//! Tasks after shutdowns and crashes.

use super::harness::{A2aTestServer, artifact_text, message, start_server, start_server_in};
use lango_gateway::ServerSettings;
use lango_net::AddressPolicy;
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Value, json};

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn tasks_survive_a_restart() {
    let first = start_server("root says kept").await;
    let task = first.client("ann").ask("m1", "hi").await;
    let folder = first.shut_down().await;
    let second =
        start_server_in(folder, "", ServerSettings::default(), AddressPolicy::Public).await;
    let ann = second.client("ann");
    assert_eq!(ann.task(&task["id"]).await, task);
    assert_eq!(ann.ask("m1", "hi").await, task);
    assert_eq!(
        second
            .client("bob")
            .rpc("GetTask", json!({ "id": task["id"] }))
            .await["error"]["code"],
        -32001
    );
}

async fn start_task(server: &A2aTestServer) -> Value {
    let ann = server.client("ann");
    let request = ann.rpc_request(
        "SendStreamingMessage",
        json!({ "message": message("m1", "hi") }),
    );
    let mut stream = super::harness::EventStream::open(request).await;
    let task = stream.next().await.unwrap()["result"]["task"].clone();
    while stream.next().await.unwrap()["result"]["statusUpdate"]["status"]["state"]
        != "TASK_STATE_WORKING"
    {}
    task
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn tasks_stopped_by_shutdown_fail_with_a_message() {
    let settings = ServerSettings {
        grace_seconds: 0,
        ..ServerSettings::default()
    };
    let first = super::harness::start_server_with("root hangs", settings).await;
    let task = start_task(&first).await;
    let folder = first.shut_down().await;
    let second = start_server_in(
        folder,
        "root says again",
        ServerSettings::default(),
        AddressPolicy::Public,
    )
    .await;
    let ann = second.client("ann");
    let found = ann.task(&task["id"]).await;
    assert_eq!(found["status"]["state"], "TASK_STATE_FAILED");
    assert!(
        found["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("stopped")
    );
    let mut again = message("m2", "hi");
    again["contextId"] = task["contextId"].clone();
    let again = ann.rpc("SendMessage", json!({ "message": again })).await;
    assert_eq!(artifact_text(&again["result"]["task"]), "again");
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn crashed_tasks_are_recovered_from_the_log() {
    let first = start_server("root says kept").await;
    let task = first.client("ann").ask("m1", "hi").await;
    let folder = first.shut_down().await;
    // Simulates a crash between the last event of the turn and the update of the task.
    let stores = SqliteStore::open(StoreLocation::File(A2aTestServer::file(folder.path())))
        .unwrap()
        .stores();
    let principal = lango_domain::event::Principal::new("ann");
    let mut row = stores
        .tasks
        .task(&principal, task["id"].as_str().unwrap())
        .await
        .unwrap()
        .unwrap();
    let mut working = task.clone();
    working["status"] = json!({ "state": "TASK_STATE_WORKING" });
    working["artifacts"] = json!([]);
    (row.state, row.is_terminal, row.body) =
        ("TASK_STATE_WORKING".to_owned(), false, working.to_string());
    stores.tasks.update_task(row.clone()).await.unwrap();
    let second =
        start_server_in(folder, "", ServerSettings::default(), AddressPolicy::Public).await;
    let ann = second.client("ann");
    let listed = ann
        .rpc("ListTasks", json!({ "includeArtifacts": true }))
        .await["result"]["tasks"][0]
        .clone();
    assert_eq!(
        (listed["status"]["state"].as_str(), artifact_text(&listed)),
        (Some("TASK_STATE_COMPLETED"), "kept".to_owned())
    );

    // Simulates a crash before the turn stored any event.
    (row.turn, row.state) = (None, "TASK_STATE_SUBMITTED".to_owned());
    stores.tasks.update_task(row).await.unwrap();
    assert_eq!(
        ann.task(&task["id"]).await["status"]["state"],
        "TASK_STATE_FAILED"
    );
    assert_eq!(
        ann.rpc("SubscribeToTask", json!({ "id": task["id"] }))
            .await["error"]["code"],
        -32004
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_deleted_with_their_session() {
    let server = start_server("root says gone").await;
    let ann = server.client("ann");
    let task = ann.ask("m1", "hi").await;
    let session = lango_domain::event::SessionId::new(task["contextId"].as_str().unwrap());
    server
        .stores
        .catalog
        .delete(&lango_domain::event::Principal::new("ann"), &session)
        .await
        .unwrap();
    assert_eq!(
        ann.rpc("GetTask", json!({ "id": task["id"] })).await["error"]["code"],
        -32001
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn crashed_tasks_are_pushed_and_listed_as_failed() {
    let first = start_server("root says kept").await;
    let ann = first.client("ann");
    let (task, other) = (ann.ask("m1", "hi").await, ann.ask("m2", "hi").await);
    let (url, mut notifications) = super::push::push_receiver(&[]).await;
    let push = json!({ "taskId": task["id"], "url": url });
    ann.rpc("CreateTaskPushNotificationConfig", push).await;
    let folder = first.shut_down().await;
    // Simulates a crash while tasks are running.
    let stores = SqliteStore::open(StoreLocation::File(A2aTestServer::file(folder.path())))
        .unwrap()
        .stores();
    let simulate_crash = async |task: &Value| {
        let principal = lango_domain::event::Principal::new("ann");
        let mut row = stores
            .tasks
            .task(&principal, task["id"].as_str().unwrap())
            .await
            .unwrap()
            .unwrap();
        let mut working = task.clone();
        working["status"] = json!({ "state": "TASK_STATE_WORKING" });
        (row.turn, row.state, row.is_terminal) = (None, "TASK_STATE_WORKING".to_owned(), false);
        row.body = working.to_string();
        stores.tasks.update_task(row).await.unwrap();
    };
    simulate_crash(&task).await;
    let second = start_server_in(
        folder,
        "",
        ServerSettings::default(),
        AddressPolicy::Anywhere,
    )
    .await;
    let pushed = tokio::time::timeout(super::harness::TEST_TIMEOUT, notifications.recv());
    let pushed = pushed.await.unwrap().unwrap().1["task"].clone();
    assert_eq!(pushed["id"], task["id"]);
    assert_eq!(pushed["status"]["state"], "TASK_STATE_FAILED");
    // A task that another process leaves behind later is recovered when it is listed.
    simulate_crash(&other).await;
    let ann = second.client("ann");
    let listed = async |state: &str| {
        ann.rpc("ListTasks", json!({ "status": state })).await["result"].clone()
    };
    assert_eq!(listed("TASK_STATE_WORKING").await["totalSize"], 0);
    let failed = listed("TASK_STATE_FAILED").await;
    assert_eq!(
        (
            &failed["totalSize"],
            failed["tasks"].as_array().unwrap().len()
        ),
        (&json!(2), 2),
        "{failed}"
    );
    second.shut_down().await;
    assert!(notifications.try_recv().is_err(), "sent once");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_new_tasks_during_shutdown() {
    let settings = ServerSettings {
        grace_seconds: 2,
        ..ServerSettings::default()
    };
    let server = super::harness::start_server_with("root hangs", settings).await;
    start_task(&server).await;
    let ann = server.client("ann");
    let stopping = tokio::spawn(server.shut_down());
    while ann.send(ann.request("GET", "/ready")).await.status != 503 {}
    let rejected = ann
        .rest(
            "POST",
            "/message:send",
            json!({ "message": message("m2", "hi") }),
        )
        .await;
    assert_eq!(
        (rejected.status, &rejected.body["error"]["status"]),
        (503, &json!("UNAVAILABLE"))
    );
    stopping.await.unwrap();
}
