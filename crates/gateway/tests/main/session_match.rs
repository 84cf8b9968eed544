//! Matching of conversations to sessions.

use lango_domain::Content;
use lango_domain::event::{Author, EventBody};
use serde_json::{Value, json};

use crate::harness::{Chat, TestGateway};

const COMPLETIONS: &str = "/v1/chat/completions";

fn chat_message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

struct ChatClient<'a> {
    gateway: &'a TestGateway,
    token: String,
}

impl ChatClient<'_> {
    /// Returns the answer and its session.
    async fn ask(&self, messages: &[Value]) -> (String, String) {
        let reply = self
            .gateway
            .post(COMPLETIONS, &self.token, &json!({ "messages": messages }))
            .await;
        let json = reply.json();
        let text = |value: &Value| {
            value
                .as_str()
                .unwrap_or_else(|| panic!("{}", reply.body))
                .to_owned()
        };
        (
            text(&json["choices"][0]["message"]["content"]),
            text(&json["lango"]["session"]),
        )
    }
}

async fn chat_client(gateway: &TestGateway) -> ChatClient<'_> {
    ChatClient {
        gateway,
        token: gateway.token("ann", &[Chat]).await,
    }
}

const SCRIPT: &str = "root transfers operator\noperator calls fs_read {\"path\":\"a\"}\noperator says It says 42.\nroot always says Fine.";

#[tokio::test]
async fn follow_ups_continue_the_session() {
    let gateway = TestGateway::start(SCRIPT).await;
    let chat = chat_client(&gateway).await;
    let first = [
        chat_message("system", "Be kind."),
        chat_message("user", "read a"),
    ];
    let (answer, session) = chat.ask(&first).await;
    assert_eq!(answer, "It says 42.");
    let mut longer = first.to_vec();
    longer.extend([
        chat_message("assistant", &answer),
        chat_message("user", " thanks "),
    ]);
    let (again, same) = chat.ask(&longer).await;
    assert_eq!((again.as_str(), &same), ("Fine.", &session));
    longer.extend([
        chat_message("assistant", &again),
        chat_message("user", "once more"),
    ]);
    assert_eq!(chat.ask(&longer).await.1, session);
    let log = gateway.log("ann", &session).await;
    let authors = log
        .iter()
        .filter(|event| matches!(event.body, EventBody::Answer(_)));
    let authors: Vec<String> = authors.map(|event| event.author.to_string()).collect();
    assert_eq!(
        authors,
        ["operator", "lango-orchestrator", "lango-orchestrator"]
    );
    let context_count = log
        .iter()
        .filter(|event| matches!(event.body, EventBody::Context { .. }))
        .count();
    assert_eq!(context_count, 1, "the system prompt is logged once");
}

#[tokio::test]
async fn retries_and_edited_histories_start_new_sessions() {
    let gateway = TestGateway::start("root always says Fine.").await;
    let chat = chat_client(&gateway).await;
    let (answer, session) = chat.ask(&[chat_message("user", "one")]).await;
    let follow_up = |text: &str| {
        vec![
            chat_message("user", "one"),
            chat_message("assistant", &answer),
            chat_message("user", text),
        ]
    };
    assert_eq!(chat.ask(&follow_up("two")).await.1, session);
    let (_, retried) = chat.ask(&follow_up("two")).await;
    assert_ne!(
        retried, session,
        "the session has more turns than the client's history"
    );
    let edited = [
        chat_message("user", "one"),
        chat_message("assistant", "Something else."),
        chat_message("user", "two"),
    ];
    let (_, other) = chat.ask(&edited).await;
    assert!(other != session && other != retried);
    let log = gateway.log("ann", &other).await;
    let answered = log.iter().find(
        |event| matches!(&event.body, EventBody::Answer(Content { text, .. }) if text == "Something else."),
    );
    assert!(
        matches!(&answered.unwrap().author, Author::Agent(root) if root == "lango-orchestrator")
    );
    // The new session can be continued.
    let mut longer = edited.to_vec();
    longer.extend([
        chat_message("assistant", "Fine."),
        chat_message("user", "three"),
    ]);
    assert_eq!(chat.ask(&longer).await.1, other);
    let read = format!("{:?}", gateway.model.requests().last().unwrap().messages);
    assert!(
        read.contains("Something else.") && read.contains("three"),
        "{read}"
    );
}

#[tokio::test]
async fn concurrent_requests_with_one_history_use_separate_sessions() {
    let gateway = TestGateway::start("root always says Fine.").await;
    let chat = chat_client(&gateway).await;
    let (answer, _) = chat.ask(&[chat_message("user", "one")]).await;
    let history = |text: &str| {
        vec![
            chat_message("user", "one"),
            chat_message("assistant", &answer),
            chat_message("user", text),
        ]
    };
    let histories: Vec<Vec<Value>> = (0..8).map(|n| history(&format!("two {n}"))).collect();
    let sessions =
        futures::future::join_all(histories.iter().map(|history| chat.ask(history))).await;
    let mut sessions: Vec<String> = sessions.into_iter().map(|(_, session)| session).collect();
    for session in &sessions {
        let log = gateway.log("ann", session).await;
        let request_count = log
            .iter()
            .filter(|event| matches!(event.body, EventBody::User(_)))
            .count();
        assert_eq!(request_count, 2, "{session}");
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 8);
}

/// B74
#[tokio::test]
async fn sessions_are_separate_per_principal() {
    let gateway = TestGateway::start("root always says Fine.").await;
    let chat = chat_client(&gateway).await;
    let (answer, session) = chat.ask(&[chat_message("user", "one")]).await;
    let eve = ChatClient {
        gateway: &gateway,
        token: gateway.token("eve", &[Chat]).await,
    };
    let history = [
        chat_message("user", "one"),
        chat_message("assistant", &answer),
        chat_message("user", "two"),
    ];
    assert_ne!(eve.ask(&history).await.1, session);
    assert_eq!(chat.ask(&history).await.1, session);
}

#[tokio::test]
async fn matches_streamed_answers_with_notes() {
    let script =
        "root says One moment. + transfers operator\noperator says Done.\nroot always says Fine.";
    let gateway = TestGateway::start(script).await;
    let chat = chat_client(&gateway).await;
    let body = json!({ "stream": true, "messages": [chat_message("user", "go")] });
    let chunks = gateway
        .stream(COMPLETIONS, &chat.token, &body)
        .await
        .collect_rest()
        .await;
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "One moment.\n\nDone.");
    let session = chunks
        .iter()
        .find_map(|chunk| chunk["lango"]["session"].as_str())
        .unwrap();
    let history = [
        chat_message("user", "go"),
        chat_message("assistant", &text),
        chat_message("user", "thanks"),
    ];
    assert_eq!(chat.ask(&history).await.1, session);
}

#[tokio::test]
async fn matches_unusual_histories() {
    let gateway = TestGateway::start("root always says Fine.").await;
    let chat = chat_client(&gateway).await;
    let messages = [
        chat_message("assistant", "Welcome!"),
        json!({ "role": "assistant", "content": null }),
        chat_message("user", "a"),
        chat_message("user", "b"),
        chat_message("assistant", "c"),
        chat_message("assistant", "d"),
        chat_message("user", "e"),
    ];
    let (_, session) = chat.ask(&messages).await;
    let mut longer = messages.to_vec();
    longer.extend([
        chat_message("assistant", "Fine."),
        chat_message("user", "f"),
    ]);
    assert_eq!(chat.ask(&longer).await.1, session);
}
