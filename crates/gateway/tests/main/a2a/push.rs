//! Push notifications.

use super::harness::{A2aTestServer, message, message_v03, start_server, start_server_in};
use lango_gateway::{A2aSettings, ServerSettings};
use lango_net::AddressPolicy;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Receives push notifications. Answers each with the next status, or not at all if it is 0.
pub async fn push_receiver(
    statuses: &'static [u16],
) -> (String, UnboundedReceiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/notifications", listener.local_addr().unwrap());
    let (sender, notifications) = unbounded_channel();
    tokio::spawn(async move {
        let mut unanswered = Vec::new();
        for status in statuses.iter().chain(std::iter::repeat(&200)) {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let (head, body) = loop {
                let mut chunk = [0; 4096];
                let read = stream.read(&mut chunk).await.unwrap();
                bytes.extend_from_slice(&chunk[..read]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                if let Ok(body) = serde_json::from_str::<Value>(body) {
                    break (head.to_lowercase(), body);
                }
            };
            let location = "location: http://127.0.0.1:1/\r\n";
            let response = format!(
                "HTTP/1.1 {status} X\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n"
            );
            if *status == 0 {
                unanswered.push(stream);
            } else {
                stream.write_all(response.as_bytes()).await.unwrap();
            }
            let _ = sender.send((head, body));
        }
    });
    (address, notifications)
}

async fn wait_until_completed(
    notifications: &mut UnboundedReceiver<(String, Value)>,
    state: fn(&Value) -> &Value,
) -> (String, Value) {
    loop {
        let (head, body) = tokio::time::timeout(super::harness::TEST_TIMEOUT, notifications.recv())
            .await
            .unwrap()
            .unwrap();
        if ["TASK_STATE_COMPLETED", "completed"]
            .iter()
            .any(|end| state(&body) == end)
        {
            return (head, body);
        }
    }
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn notifications_use_the_version_of_the_client() {
    let server = start_server("root always says done").await;
    let ann = server.client("ann");
    let (url, mut notifications) = push_receiver(&[500]).await;
    let push = json!({ "url": url, "token": "mine", "authentication": { "scheme": "Bearer", "credentials": "key" } });
    let params = json!({ "message": message("m1", "hi"), "configuration": { "taskPushNotificationConfig": push } });
    let task = ann.rpc("SendMessage", params).await["result"]["task"].clone();
    let (head, body) =
        wait_until_completed(&mut notifications, |body| &body["task"]["status"]["state"]).await;
    assert!(
        head.contains("x-a2a-notification-token: mine")
            && head.contains("authorization: bearer key"),
        "{head}"
    );
    assert_eq!(
        (&body["task"]["id"], body["task"].get("history")),
        (&task["id"], None)
    );

    let push = json!({ "url": url, "token": "older" });
    let params = json!({ "message": message_v03("m2", "hi"), "configuration": { "pushNotificationConfig": push } });
    ann.rpc("message/send", params).await;
    let (head, body) =
        wait_until_completed(&mut notifications, |body| &body["status"]["state"]).await;
    assert!(head.contains("x-a2a-notification-token: older"), "{head}");
    assert_eq!(body["kind"], "task");
}

async fn set_push_config(server: &A2aTestServer, task: &Value, url: &str, id: &str) -> Value {
    let params = json!({ "taskId": task["id"], "id": id, "url": url });
    server
        .client("ann")
        .rpc("CreateTaskPushNotificationConfig", params)
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn configs_can_be_set_read_listed_and_deleted() {
    let server = start_server("root always says done").await;
    let ann = server.client("ann");
    let task = ann.ask("m1", "hi").await;
    let created =
        set_push_config(&server, &task, "https://example.org/a", "a").await["result"].clone();
    assert_eq!(
        (&created["taskId"], &created["id"]),
        (&task["id"], &json!("a"))
    );
    let older = json!({ "taskId": task["id"], "pushNotificationConfig": { "url": "https://example.org/b" } });
    let older = ann.rpc("tasks/pushNotificationConfig/set", older).await["result"].clone();
    assert_eq!(
        older["pushNotificationConfig"]["url"],
        "https://example.org/b"
    );
    let id = task["id"].as_str().unwrap();
    let config = ann
        .rest(
            "GET",
            &format!("/tasks/{id}/pushNotificationConfigs/a"),
            json!(null),
        )
        .await
        .body;
    assert_eq!(config["url"], "https://example.org/a");
    let listed = ann
        .rpc("ListTaskPushNotificationConfigs", json!({ "taskId": id }))
        .await;
    assert_eq!(listed["result"]["configs"].as_array().unwrap().len(), 2);
    let older = ann
        .rpc("tasks/pushNotificationConfig/list", json!({ "id": id }))
        .await;
    assert_eq!(older["result"].as_array().unwrap().len(), 2);
    for _twice in 0..2 {
        let deleted = ann
            .rest(
                "DELETE",
                &format!("/tasks/{id}/pushNotificationConfigs/a"),
                json!(null),
            )
            .await;
        assert_eq!(deleted.status, 200);
    }
    let missing = ann
        .rpc(
            "GetTaskPushNotificationConfig",
            json!({ "taskId": id, "id": "a" }),
        )
        .await;
    assert_eq!(missing["error"]["code"], -32001);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_private_and_invalid_urls_and_too_many_configs() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_server_in(
        folder,
        "root always says done",
        ServerSettings::default(),
        AddressPolicy::Public,
    )
    .await;
    let ann = server.client("ann");
    let task = ann.ask("m1", "hi").await;
    for url in [
        "http://127.0.0.1:9/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "http://2130706433/",
        "file:///etc/passwd",
        "https://user:secret@example.org/",
        "nonsense",
        "",
    ] {
        assert_eq!(
            set_push_config(&server, &task, url, "x").await["error"]["code"],
            -32602,
            "{url}"
        );
    }
    let invalid =
        json!({ "taskId": task["id"], "url": "https://example.org/", "token": "a\r\nhost: evil" });
    assert_eq!(
        ann.rpc("CreateTaskPushNotificationConfig", invalid).await["error"]["code"],
        -32602
    );
    for id in ["a", "b", "c", "d", "d"] {
        assert!(
            set_push_config(&server, &task, "https://example.org/", id).await["result"].is_object()
        );
    }
    assert_eq!(
        set_push_config(&server, &task, "https://example.org/", "e").await["error"]["code"],
        -32042
    );
}

/// Private addresses behind host names are detected only when connecting.
#[tokio::test(flavor = "multi_thread")]
async fn resolved_addresses_are_checked_and_redirects_not_followed() {
    let (url, mut notifications) = push_receiver(&[302]).await;
    let folder = tempfile::tempdir().unwrap();
    let public = start_server_in(
        folder,
        "root always says done",
        ServerSettings::default(),
        AddressPolicy::Public,
    )
    .await;
    let host_url = url.replace("127.0.0.1", "localhost");
    let params = json!({ "message": message("m1", "hi"), "configuration": { "taskPushNotificationConfig": { "url": host_url } } });
    let task = public
        .client("ann")
        .rpc("SendMessage", params.clone())
        .await;
    assert_eq!(
        task["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    // The shutdown waits for pending notifications.
    public.shut_down().await;
    assert!(notifications.try_recv().is_err());

    let anywhere = start_server("root always says done").await;
    anywhere.client("ann").rpc("SendMessage", params).await;
    anywhere.shut_down().await;
    assert!(notifications.try_recv().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_push_is_shown_in_the_card_and_rejected() {
    let a2a = A2aSettings {
        push_addresses: 0,
        ..A2aSettings::default()
    };
    let server = super::harness::start_server_with(
        "root always says done",
        ServerSettings {
            a2a,
            ..ServerSettings::default()
        },
    )
    .await;
    let ann = server.client("ann");
    let card = ann
        .send(ann.request("GET", "/.well-known/agent-card.json"))
        .await
        .body;
    assert_eq!(card["capabilities"]["pushNotifications"], false);
    let task = ann.ask("m1", "hi").await;
    assert_eq!(
        set_push_config(&server, &task, "https://example.org/", "a").await["error"]["code"],
        -32003
    );
}

/// B93
#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_receivers_do_not_block_shutdown() {
    let settings = ServerSettings {
        grace_seconds: 1,
        ..ServerSettings::default()
    };
    let server = super::harness::start_server_with("root always says done", settings).await;
    let (url, mut notifications) = push_receiver(&[0]).await;
    let push = json!({ "taskPushNotificationConfig": { "url": url } });
    let params = json!({ "message": message("m1", "hi"), "configuration": push });
    let task = server.client("ann").rpc("SendMessage", params).await;
    assert_eq!(
        task["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    let started = std::time::Instant::now();
    server.shut_down().await;
    assert!(started.elapsed().as_secs() < 8, "{:?}", started.elapsed());
    let (_, first) = notifications.recv().await.unwrap();
    assert_eq!(first["task"]["status"]["state"], "TASK_STATE_WORKING");
    wait_until_completed(&mut notifications, |body| &body["task"]["status"]["state"]).await;
}
