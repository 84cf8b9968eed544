//! Sending messages; getting, listing, cancelling and following tasks.

use super::harness::{EventStream, artifact_text, message, message_v03, start_server};
use serde_json::{Value, json};

const STREAMING_SCRIPT: &str = "root always streams Hello|, |Welt 안녕";

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn messages_start_tasks_on_every_binding_and_version() {
    let server = start_server(STREAMING_SCRIPT).await;
    let ann = server.client("ann");

    let task = ann.ask("m1", "hi").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(artifact_text(&task), "Hello, Welt 안녕");
    assert_eq!(task["history"][0]["messageId"], "m1");

    let older = ann
        .rpc(
            "message/send",
            json!({ "message": message_v03("m2", "hi") }),
        )
        .await;
    let task = &older["result"];
    assert_eq!(
        (&task["kind"], &task["status"]["state"]),
        (&json!("task"), &json!("completed"))
    );
    assert_eq!(artifact_text(task), "Hello, Welt 안녕");

    let rest = ann
        .rest(
            "POST",
            "/message:send",
            json!({ "message": message("m3", "hi") }),
        )
        .await;
    assert_eq!(
        (rest.status, rest.media_type.as_str()),
        (200, "application/a2a+json")
    );
    assert_eq!(artifact_text(&rest.body["task"]), "Hello, Welt 안녕");

    let body = json!({ "message": { "messageId": "m4", "role": "ROLE_USER", "content": [{ "text": "hi" }] } });
    let rest = ann.rest("POST", "/v1/message:send", body).await;
    assert_eq!(
        (rest.status, rest.media_type.as_str()),
        (200, "application/json")
    );
    assert_eq!(rest.body["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(artifact_text(&rest.body["task"]), "Hello, Welt 안녕");
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn streams_start_with_the_task_and_contain_the_answer() {
    let server = start_server(STREAMING_SCRIPT).await;
    let ann = server.client("ann");
    let newer = ann.events(ann.rpc_request(
        "SendStreamingMessage",
        json!({ "message": message("m1", "hi") }),
    ));
    let newer: Vec<Value> = newer
        .await
        .into_iter()
        .map(|event| event["result"].clone())
        .collect();
    assert_eq!(newer[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(
        newer.last().unwrap()["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    let chunks: Vec<&Value> = newer
        .iter()
        .map(|event| &event["artifactUpdate"])
        .filter(|update| !update.is_null())
        .collect();
    let text: String = chunks
        .iter()
        .map(|chunk| chunk["artifact"]["parts"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "Hello, Welt 안녕");
    assert_eq!(
        (&chunks[0]["append"], &chunks[0]["lastChunk"]),
        (&json!(false), &json!(false))
    );
    let last = chunks.last().unwrap();
    assert_eq!(
        (&last["append"], &last["lastChunk"]),
        (&json!(true), &json!(true))
    );

    let older = ann.events(ann.rpc_request(
        "message/stream",
        json!({ "message": message_v03("m2", "hi") }),
    ));
    let older = older.await;
    assert_eq!(older[0]["result"]["kind"], "task");
    let end = &older.last().unwrap()["result"];
    assert_eq!(
        (&end["kind"], &end["final"]),
        (&json!("status-update"), &json!(true))
    );
    assert!(older.iter().all(|event| event["id"] == 7));

    let rest = ann.events(ann.rest_request(
        "POST",
        "/message:stream",
        json!({ "message": message("m3", "hi") }),
    ));
    let rest = rest.await;
    assert!(rest[0]["task"]["id"].is_string());
    assert_eq!(
        rest.last().unwrap()["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_messages_start_no_new_task() {
    let server = start_server("root says once").await;
    let ann = server.client("ann");
    let first = ann.ask("m1", "hi").await;
    let again = ann.ask("m1", "hi").await;
    assert_eq!(
        (&first["id"], artifact_text(&again)),
        (&again["id"], "once".to_owned())
    );
    let other = server.client("bob").ask("m1", "hi").await;
    assert_ne!(first["id"], other["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_are_sessions() {
    let server = start_server("root says one\nroot says two").await;
    let ann = server.client("ann");
    let first = ann.ask("m1", "hi").await;
    let mut second = message("m2", "and?");
    second["contextId"] = first["contextId"].clone();
    let second =
        ann.rpc("SendMessage", json!({ "message": second })).await["result"]["task"].clone();
    assert_eq!(first["contextId"], second["contextId"]);
    assert_ne!(first["id"], second["id"]);
    let sessions = server
        .stores
        .catalog
        .sessions(&lango_domain::event::Principal::new("ann"))
        .await
        .unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!(json!(sessions[0].id.as_str()), first["contextId"]);

    let listed = ann
        .rpc(
            "ListTasks",
            json!({ "contextId": first["contextId"], "pageSize": 1 }),
        )
        .await;
    let page = &listed["result"];
    assert_eq!(
        (&page["tasks"][0]["id"], &page["totalSize"]),
        (&second["id"], &json!(2))
    );
    assert!(page["tasks"][0].get("artifacts").is_none());
    let next =
        json!({ "pageSize": 1, "pageToken": page["nextPageToken"], "includeArtifacts": true });
    let listed = ann.rpc("ListTasks", next).await;
    assert_eq!(
        (
            &listed["result"]["tasks"][0]["id"],
            &listed["result"]["nextPageToken"]
        ),
        (&first["id"], &json!(""))
    );
    assert_eq!(artifact_text(&listed["result"]["tasks"][0]), "one");
}

/// B60
#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_task_leaves_the_session_usable() {
    let server = start_server("root says thinking + hangs\nroot says fine").await;
    let ann = server.client("ann");
    let mut stream = EventStream::open(ann.rpc_request(
        "SendStreamingMessage",
        json!({ "message": message("m1", "hi") }),
    ))
    .await;
    let task = stream.next().await.unwrap()["result"]["task"].clone();
    let working = stream.next().await.unwrap();
    assert_eq!(
        working["result"]["statusUpdate"]["status"]["state"],
        "TASK_STATE_WORKING"
    );
    // A second task of the session waits for the first.
    let mut waiting = message("m2", "and?");
    waiting["contextId"] = task["contextId"].clone();
    let params = json!({ "message": waiting, "configuration": { "returnImmediately": true } });
    let second = ann.rpc("SendMessage", params).await["result"]["task"].clone();

    let cancelled = ann.rpc("CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(
        cancelled["result"]["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    let last = stream.collect_rest().await.pop().unwrap();
    assert_eq!(
        last["result"]["statusUpdate"]["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    let again = ann.rpc("CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(again["error"]["code"], -32002);

    assert_eq!(
        artifact_text(&ann.wait_until_completed(&second["id"]).await),
        "fine"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn late_subscribers_start_with_the_current_task() {
    let server =
        start_server("tool fs_read takes 1 s\nroot transfers operator\noperator calls fs_read\noperator says read")
            .await;
    let ann = server.client("ann");
    let task = ann.start_task("m1", "read it").await;
    let streams =
        [("SubscribeToTask", "task"), ("tasks/resubscribe", "")].map(|(method, wrapped)| {
            let (ann, id) = (ann.clone(), task["id"].clone());
            async move {
                let events = ann
                    .events(ann.rpc_request(method, json!({ "id": id })))
                    .await;
                let first = &events[0]["result"];
                let first = if wrapped.is_empty() {
                    first
                } else {
                    &first[wrapped]
                };
                assert_eq!(first["id"], id);
                events.last().unwrap()["result"].clone()
            }
        });
    let [newer, older] = streams;
    let (newer, older) = tokio::join!(newer, older);
    assert_eq!(
        newer["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    assert_eq!(
        (&older["status"]["state"], &older["final"]),
        (&json!("completed"), &json!(true))
    );
    assert_eq!(artifact_text(&ann.task(&task["id"]).await), "read");
    let late = ann
        .rpc("SubscribeToTask", json!({ "id": task["id"] }))
        .await;
    assert_eq!(late["error"]["code"], -32004);
}

/// B74
#[tokio::test(flavor = "multi_thread")]
async fn foreign_tasks_look_like_missing_ones() {
    let server = start_server("root always says mine").await;
    let (ann, bob) = (server.client("ann"), server.client("bob"));
    let task = ann.ask("m1", "hi").await;
    for (method, params) in [
        ("GetTask", json!({ "id": task["id"] })),
        ("CancelTask", json!({ "id": task["id"] })),
        ("SubscribeToTask", json!({ "id": task["id"] })),
        (
            "ListTaskPushNotificationConfigs",
            json!({ "taskId": task["id"] }),
        ),
        (
            "CreateTaskPushNotificationConfig",
            json!({ "taskId": task["id"], "url": "https://example.org/" }),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            json!({ "taskId": task["id"], "id": "x" }),
        ),
    ] {
        let theirs = bob.rpc(method, params.clone()).await;
        let mut unknown = params;
        let name = if unknown.get("taskId").is_some() {
            "taskId"
        } else {
            "id"
        };
        unknown[name] = json!("task-none");
        let none = bob.rpc(method, unknown).await;
        assert_eq!(theirs["error"]["code"], -32001, "{method}");
        assert_eq!(
            theirs["error"]["message"], none["error"]["message"],
            "{method}"
        );
    }
    let mut follow_up = message("m2", "and?");
    follow_up["taskId"] = task["id"].clone();
    let theirs = bob
        .rpc("SendMessage", json!({ "message": follow_up }))
        .await;
    assert_eq!(theirs["error"]["code"], -32001);
    assert_eq!(
        bob.rpc("ListTasks", json!({})).await["result"]["totalSize"],
        0
    );
    // The same context id of another principal is another session.
    let mut same = message("m3", "hi");
    same["contextId"] = task["contextId"].clone();
    let own = bob.rpc("SendMessage", json!({ "message": same })).await;
    assert_eq!(
        own["result"]["task"]["history"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_turns_become_failed_tasks_with_a_message() {
    let server = start_server("root always fails auth").await;
    let task = server.client("ann").ask("m1", "hi").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    assert!(
        task["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .len()
            > 10,
        "{task}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn status_messages_name_the_agent_but_no_tools_or_arguments() {
    let server = start_server(
        "root transfers operator\noperator calls fs_read {\"path\":\"secret.txt\"}\noperator says done",
    )
    .await;
    let ann = server.client("ann");
    let events = ann
        .events(ann.rpc_request(
            "SendStreamingMessage",
            json!({ "message": message("m1", "go") }),
        ))
        .await;
    let events_text = json!(events).to_string();
    assert!(
        events_text.contains("operator is working on it"),
        "{events_text}"
    );
    assert!(
        !events_text.contains("secret.txt") && !events_text.contains("fs_read"),
        "{events_text}"
    );
}
