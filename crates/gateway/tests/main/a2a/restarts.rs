//! What is left of tasks when the server ends.

use super::house::{House, answer, house, message, open};
use lango_gateway::ServerSettings;
use lango_net::AddressPolicy;
use lango_store::{StoreLocation, SqliteStore};
use serde_json::{Value, json};

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_there_after_a_restart() {
    let first = house("root says kept").await;
    let task = first.peer("ann").ask("m1", "hi").await;
    let folder = first.close().await;
    let second = open(folder, "", ServerSettings::default(), AddressPolicy::Public).await;
    let ann = second.peer("ann");
    assert_eq!(ann.task(&task["id"]).await, task);
    assert_eq!(ann.ask("m1", "hi").await, task);
    assert_eq!(second.peer("bob").rpc("GetTask", json!({ "id": task["id"] })).await["error"]["code"], -32001);
}

async fn begun(house: &House) -> Value {
    let ann = house.peer("ann");
    let request = ann.rpc_request("SendStreamingMessage", json!({ "message": message("m1", "hi") }));
    let mut stream = super::house::Stream::open(request).await;
    let task = stream.next().await.unwrap()["result"]["task"].clone();
    while stream.next().await.unwrap()["result"]["statusUpdate"]["status"]["state"] != "TASK_STATE_WORKING" {}
    task
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_stopped_with_the_server_says_so() {
    let settings = ServerSettings { grace_seconds: 0, ..ServerSettings::default() };
    let first = super::house::house_with("root hangs", settings).await;
    let task = begun(&first).await;
    let folder = first.close().await;
    let second = open(folder, "root says again", ServerSettings::default(), AddressPolicy::Public).await;
    let ann = second.peer("ann");
    let found = ann.task(&task["id"]).await;
    assert_eq!(found["status"]["state"], "TASK_STATE_FAILED");
    assert!(found["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("stopped"));
    let mut again = message("m2", "hi");
    again["contextId"] = task["contextId"].clone();
    let again = ann.rpc("SendMessage", json!({ "message": again })).await;
    assert_eq!(answer(&again["result"]["task"]), "again");
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_process_died_is_told_as_its_log_tells_it() {
    let first = house("root says kept").await;
    let task = first.peer("ann").ask("m1", "hi").await;
    let folder = first.close().await;
    // As if the process had died between the turn's last event and the task's.
    let store = SqliteStore::open(StoreLocation::File(House::file(folder.path()))).unwrap();
    let principal = lango_domain::event::Principal::new("ann");
    let mut row = store.task(&principal, task["id"].as_str().unwrap()).await.unwrap().unwrap();
    let mut working = task.clone();
    working["status"] = json!({ "state": "TASK_STATE_WORKING" });
    working["artifacts"] = json!([]);
    (row.state, row.is_over, row.body) = ("TASK_STATE_WORKING".to_owned(), false, working.to_string());
    store.update_task(row.clone()).await.unwrap();
    let second = open(folder, "", ServerSettings::default(), AddressPolicy::Public).await;
    let ann = second.peer("ann");
    let listed =
        ann.rpc("ListTasks", json!({ "includeArtifacts": true })).await["result"]["tasks"][0].clone();
    assert_eq!(
        (listed["status"]["state"].as_str(), answer(&listed)),
        (Some("TASK_STATE_COMPLETED"), "kept".to_owned())
    );

    // And as if it had died before the turn had written anything.
    (row.turn, row.state) = (None, "TASK_STATE_SUBMITTED".to_owned());
    store.update_task(row).await.unwrap();
    assert_eq!(ann.task(&task["id"]).await["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(ann.rpc("SubscribeToTask", json!({ "id": task["id"] })).await["error"]["code"], -32004);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_go_with_their_session() {
    let house = house("root says gone").await;
    let ann = house.peer("ann");
    let task = ann.ask("m1", "hi").await;
    let session = lango_domain::event::SessionId::new(task["contextId"].as_str().unwrap());
    house.store.delete(&lango_domain::event::Principal::new("ann"), &session).await.unwrap();
    assert_eq!(ann.rpc("GetTask", json!({ "id": task["id"] })).await["error"]["code"], -32001);
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_news_hears_that_a_task_was_interrupted_and_lists_say_so() {
    let first = house("root says kept").await;
    let ann = first.peer("ann");
    let (task, other) = (ann.ask("m1", "hi").await, ann.ask("m2", "hi").await);
    let (url, mut news) = super::listening::receiver(&[]).await;
    let push = json!({ "taskId": task["id"], "url": url });
    ann.rpc("CreateTaskPushNotificationConfig", push).await;
    let folder = first.close().await;
    // As if the process had died in the middle of both.
    let store = SqliteStore::open(StoreLocation::File(House::file(folder.path()))).unwrap();
    let dies = async |task: &Value| {
        let principal = lango_domain::event::Principal::new("ann");
        let mut row = store.task(&principal, task["id"].as_str().unwrap()).await.unwrap().unwrap();
        let mut working = task.clone();
        working["status"] = json!({ "state": "TASK_STATE_WORKING" });
        (row.turn, row.state, row.is_over) = (None, "TASK_STATE_WORKING".to_owned(), false);
        row.body = working.to_string();
        store.update_task(row).await.unwrap();
    };
    dies(&task).await;
    let second = open(folder, "", ServerSettings::default(), AddressPolicy::Anywhere).await;
    let told = tokio::time::timeout(super::house::PATIENCE, news.recv()).await.unwrap().unwrap().1;
    assert_eq!(
        (&told["task"]["id"], &told["task"]["status"]["state"]),
        (&task["id"], &json!("TASK_STATE_FAILED"))
    );
    // One that another process leaves later is found when it is asked for.
    dies(&other).await;
    let ann = second.peer("ann");
    let listed = async |state: &str| ann.rpc("ListTasks", json!({ "status": state })).await["result"].clone();
    assert_eq!(listed("TASK_STATE_WORKING").await["totalSize"], 0);
    let failed = listed("TASK_STATE_FAILED").await;
    assert_eq!((&failed["totalSize"], failed["tasks"].as_array().unwrap().len()), (&json!(2), 2), "{failed}");
    second.close().await;
    assert!(news.try_recv().is_err(), "it is told once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_says_that_nothing_new_begins() {
    let settings = ServerSettings { grace_seconds: 2, ..ServerSettings::default() };
    let house = super::house::house_with("root hangs", settings).await;
    begun(&house).await;
    let ann = house.peer("ann");
    let closing = tokio::spawn(house.close());
    while ann.send(ann.request("GET", "/ready")).await.status != 503 {}
    let refused = ann.rest("POST", "/message:send", json!({ "message": message("m2", "hi") })).await;
    assert_eq!((refused.status, &refused.body["error"]["status"]), (503, &json!("UNAVAILABLE")));
    closing.await.unwrap();
}
