//! Images and files in requests over HTTP (B110).

use std::sync::Arc;

use lango_domain::event::{Event, EventBody, Principal, SessionId};
use lango_domain::session::SessionKeyRef;
use serde_json::{Value, json};

use crate::a2a::harness::{message, message_v03, start_server};
use crate::harness::{Chat, TestGateway};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const PNG_BASE64: &str = "iVBORw0KGgpyZXN0";

fn image_url(url: &str) -> Value {
    json!({ "type": "image_url", "image_url": { "url": url } })
}

fn data_url() -> String {
    format!("data:image/png;base64,{PNG_BASE64}")
}

fn user(content: Value) -> Value {
    json!({ "role": "user", "content": content })
}

/// Returns the text, the name and the bytes of the last request in a log.
async fn last_request(gateway: &TestGateway, session: &str) -> (String, String, Vec<u8>) {
    let log: Vec<Arc<Event>> = gateway.log("ann", session).await;
    let request = log.iter().rev().find_map(|event| match &event.body {
        EventBody::User(content) => Some(content.clone()),
        _ => None,
    });
    let request = request.unwrap();
    let attachment = &request.attachments[0];
    let (session, principal) = (SessionId::new(session), Principal::new("ann"));
    let key = SessionKeyRef {
        session: &session,
        principal: &principal,
    };
    let bytes = gateway
        .stores
        .blobs
        .blob(key, &attachment.blob)
        .await
        .unwrap();
    (
        request.text.clone(),
        attachment.name.clone(),
        bytes.unwrap().to_vec(),
    )
}

/// B110
#[tokio::test]
async fn openai_clients_send_images_and_files() {
    let gateway = TestGateway::start("root always says Fine.").await;
    let token = gateway.token("ann", &[Chat]).await;
    let text = json!({ "type": "text", "text": "what is this?" });
    let file = json!({ "type": "file", "file": { "filename": "a.png", "file_data": PNG_BASE64 } });
    for (content, expected) in [
        (
            json!([text, image_url(&data_url())]),
            ("what is this?", "image"),
        ),
        (json!([text, file]), ("what is this?", "a.png")),
        (
            json!([image_url(&data_url())]),
            ("Look at what is attached.", "image"),
        ),
    ] {
        let body = json!({ "messages": [user(content)] });
        let reply = gateway.post("/v1/chat/completions", &token, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let session = reply.json()["lango"]["session"]
            .as_str()
            .unwrap()
            .to_owned();
        let (text, name, bytes) = last_request(&gateway, &session).await;
        assert_eq!((text.as_str(), name.as_str()), expected);
        assert_eq!(bytes, PNG);
    }
    let requests = gateway.model.requests();
    let read = format!("{:?}", requests[0].messages);
    assert!(
        read.contains("[image image, image/png, 12 bytes; this model cannot read it]"),
        "{read}"
    );
}

/// A conversation with images continues its session; another image starts another one.
#[tokio::test]
async fn conversations_with_images_continue() {
    let gateway = TestGateway::start("root always says Fine.").await;
    let token = gateway.token("ann", &[Chat]).await;
    let with_image =
        |data: &str| user(json!([{ "type": "text", "text": "look" }, image_url(data)]));
    let ask = async |messages: Value| -> String {
        let body = json!({ "messages": messages });
        let reply = gateway.post("/v1/chat/completions", &token, &body).await;
        let session = &reply.json()["lango"]["session"];
        session
            .as_str()
            .unwrap_or_else(|| panic!("{}", reply.body))
            .to_owned()
    };
    let first = ask(json!([with_image(&data_url())])).await;
    let answer = json!({ "role": "assistant", "content": "Fine." });
    let next = user(json!("and now?"));
    let same = ask(json!([with_image(&data_url()), answer, next])).await;
    assert_eq!(same, first);
    let gif = "data:image/gif;base64,R0lGODlhAQ==";
    let other = ask(json!([with_image(gif), answer, next])).await;
    assert_ne!(other, first);
    let (text, _, bytes) = {
        let log = gateway.log("ann", &other).await;
        let imported = log
            .iter()
            .find_map(|event| event.attachments().first().cloned());
        (String::new(), String::new(), imported.unwrap())
    };
    assert!(text.is_empty() && bytes.media_type == "image/gif");
}

/// B110
#[tokio::test]
async fn own_api_takes_attachments() {
    let gateway = TestGateway::start("root always says Fine.").await;
    let token = gateway.token("ann", &[Chat]).await;
    let attachment = json!({ "name": "cat.png", "data": PNG_BASE64 });
    let body = json!({ "session": "s", "attachments": [attachment] });
    gateway
        .stream("/api/turns", &token, &body)
        .await
        .collect_rest()
        .await;
    let (text, name, bytes) = last_request(&gateway, "s").await;
    assert_eq!(
        (text.as_str(), name.as_str()),
        ("Look at what is attached.", "cat.png")
    );
    assert_eq!(bytes, PNG);
    for bad in [
        json!({ "data": "!" }),
        json!({ "data": "" }),
        json!({ "data": PNG_BASE64, "media_type": "png" }),
        json!({ "data": "aGk=", "media_type": "image/png" }),
        json!({ "data": PNG_BASE64, "extra": 1 }),
        json!({ "name": "x" }),
    ] {
        let body = json!({ "text": "hi", "attachments": [bad] });
        let reply = gateway.post("/api/turns", &token, &body).await;
        assert_eq!(reply.status, 400, "{bad}");
    }
    let many = vec![attachment; 21];
    let reply = gateway
        .post(
            "/api/turns",
            &token,
            &json!({ "text": "hi", "attachments": many }),
        )
        .await;
    assert_eq!(reply.status, 400);
}

#[tokio::test]
async fn bad_images_are_refused() {
    let gateway = TestGateway::start("").await;
    let token = gateway.token("ann", &[Chat]).await;
    for part in [
        image_url("https://example.test/cat.png"),
        image_url("data:image/png,plain"),
        image_url("data:image/png;base64,aGk="),
        image_url("data:image/png;base64,%%%"),
        json!({ "type": "image_url" }),
        json!({ "type": "file", "file": { "filename": "x" } }),
        json!({ "type": "input_audio", "input_audio": { "data": "", "format": "wav" } }),
    ] {
        let body = json!({ "messages": [user(json!([part]))] });
        let reply = gateway.post("/v1/chat/completions", &token, &body).await;
        assert_eq!(reply.status, 400, "{part}");
    }
    assert!(gateway.model.requests().is_empty());
}

/// B93, B110: both versions of A2A carry files.
#[tokio::test(flavor = "multi_thread")]
async fn a2a_messages_carry_files() {
    let server = start_server("root always says Fine.").await;
    let ann = server.client("ann");
    let mut newer = message("m1", "what is this?");
    newer["parts"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "raw": PNG_BASE64, "filename": "cat.png", "mediaType": "image/png" }));
    let task = ann.rpc("SendMessage", json!({ "message": newer })).await;
    let state = &task["result"]["task"]["status"]["state"];
    assert_eq!(state, "TASK_STATE_COMPLETED", "{task}");
    let mut older = message_v03("m2", "what is this?");
    older["parts"].as_array_mut().unwrap().push(json!({
        "kind": "file",
        "file": { "bytes": PNG_BASE64, "name": "cat.png", "mimeType": "image/png" },
    }));
    let task = ann.rpc("message/send", json!({ "message": older })).await;
    assert_eq!(task["result"]["status"]["state"], "completed", "{task}");
    let mut bad = message("m3", "what is this?");
    bad["parts"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "raw": "aGk=", "mediaType": "image/png" }));
    let refused = ann.rpc("SendMessage", json!({ "message": bad })).await;
    assert_eq!(refused["error"]["code"], -32005, "{refused}");
}
