//! Which session a conversation belongs to when the client sends all of it every time.

use lango_domain::event::{Author, EventBody};
use serde_json::{Value, json};

use crate::harness::{Chat, TestGateway};

const COMPLETIONS: &str = "/v1/chat/completions";

fn chat_message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

struct ChatClient<'a> {
    house: &'a TestGateway,
    token: String,
}

impl ChatClient<'_> {
    /// The answer, and the session that it came from.
    async fn ask(&self, messages: &[Value]) -> (String, String) {
        let reply = self
            .house
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

async fn chat_client(house: &TestGateway) -> ChatClient<'_> {
    ChatClient {
        house,
        token: house.token("ann", &[Chat]).await,
    }
}

const SCRIPT: &str = "root transfers operator\noperator calls fs_read {\"path\":\"a\"}\noperator says It says 42.\nroot always says Fine.";

#[tokio::test]
async fn a_follow_up_goes_on_where_the_team_was() {
    let house = TestGateway::start(SCRIPT).await;
    let talk = chat_client(&house).await;
    let first = [
        chat_message("system", "Be kind."),
        chat_message("user", "read a"),
    ];
    let (answer, session) = talk.ask(&first).await;
    assert_eq!(answer, "It says 42.");
    let mut longer = first.to_vec();
    longer.extend([
        chat_message("assistant", &answer),
        chat_message("user", " thanks "),
    ]);
    let (again, same) = talk.ask(&longer).await;
    assert_eq!((again.as_str(), &same), ("Fine.", &session));
    longer.extend([
        chat_message("assistant", &again),
        chat_message("user", "once more"),
    ]);
    assert_eq!(talk.ask(&longer).await.1, session);
    let log = house.log("ann", &session).await;
    let authors = log
        .iter()
        .filter(|event| matches!(event.body, EventBody::Answer { .. }));
    let authors: Vec<String> = authors.map(|event| event.author.to_string()).collect();
    assert_eq!(
        authors,
        ["operator", "lango-orchestrator", "lango-orchestrator"]
    );
    let told = log
        .iter()
        .filter(|event| matches!(event.body, EventBody::Context { .. }))
        .count();
    assert_eq!(
        told, 1,
        "what the client says beside the conversation is told once"
    );
}

#[tokio::test]
async fn a_retry_an_edit_and_somebody_elses_history_begin_anew_with_what_was_sent() {
    let house = TestGateway::start("root always says Fine.").await;
    let talk = chat_client(&house).await;
    let (answer, session) = talk.ask(&[chat_message("user", "one")]).await;
    let follow_up = |text: &str| {
        vec![
            chat_message("user", "one"),
            chat_message("assistant", &answer),
            chat_message("user", text),
        ]
    };
    assert_eq!(talk.ask(&follow_up("two")).await.1, session);
    let (_, retried) = talk.ask(&follow_up("two")).await;
    assert_ne!(
        retried, session,
        "the session has gone further than the client"
    );
    let edited = [
        chat_message("user", "one"),
        chat_message("assistant", "Something else."),
        chat_message("user", "two"),
    ];
    let (_, other) = talk.ask(&edited).await;
    assert!(other != session && other != retried);
    let log = house.log("ann", &other).await;
    let answered = log.iter().find(
        |event| matches!(&event.body, EventBody::Answer { text } if text == "Something else."),
    );
    assert!(
        matches!(&answered.unwrap().author, Author::Agent(root) if root == "lango-orchestrator")
    );
    // From there it goes on.
    let mut longer = edited.to_vec();
    longer.extend([
        chat_message("assistant", "Fine."),
        chat_message("user", "three"),
    ]);
    assert_eq!(talk.ask(&longer).await.1, other);
    let read = format!("{:?}", house.model.requests().last().unwrap().messages);
    assert!(
        read.contains("Something else.") && read.contains("three"),
        "{read}"
    );
}

#[tokio::test]
async fn two_answers_to_one_history_at_the_same_time_do_not_mix() {
    let house = TestGateway::start("root always says Fine.").await;
    let talk = chat_client(&house).await;
    let (answer, _) = talk.ask(&[chat_message("user", "one")]).await;
    let history = |text: &str| {
        vec![
            chat_message("user", "one"),
            chat_message("assistant", &answer),
            chat_message("user", text),
        ]
    };
    let wishes: Vec<Vec<Value>> = (0..8).map(|n| history(&format!("two {n}"))).collect();
    let sessions = futures::future::join_all(wishes.iter().map(|wish| talk.ask(wish))).await;
    let mut sessions: Vec<String> = sessions.into_iter().map(|(_, session)| session).collect();
    for session in &sessions {
        let log = house.log("ann", session).await;
        let asked = log
            .iter()
            .filter(|event| matches!(event.body, EventBody::User { .. }))
            .count();
        assert_eq!(asked, 2, "{session}");
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 8);
}

/// B74
#[tokio::test]
async fn the_same_history_of_another_principal_is_another_session() {
    let house = TestGateway::start("root always says Fine.").await;
    let talk = chat_client(&house).await;
    let (answer, session) = talk.ask(&[chat_message("user", "one")]).await;
    let eve = ChatClient {
        house: &house,
        token: house.token("eve", &[Chat]).await,
    };
    let history = [
        chat_message("user", "one"),
        chat_message("assistant", &answer),
        chat_message("user", "two"),
    ];
    assert_ne!(eve.ask(&history).await.1, session);
    assert_eq!(talk.ask(&history).await.1, session);
}

#[tokio::test]
async fn an_answer_that_was_streamed_with_a_remark_is_known_again() {
    let script =
        "root says One moment. + transfers operator\noperator says Done.\nroot always says Fine.";
    let house = TestGateway::start(script).await;
    let talk = chat_client(&house).await;
    let body = json!({ "stream": true, "messages": [chat_message("user", "go")] });
    let chunks = house
        .stream(COMPLETIONS, &talk.token, &body)
        .await
        .collect_rest()
        .await;
    let words: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(words, "One moment.\n\nDone.");
    let session = chunks
        .iter()
        .find_map(|chunk| chunk["lango"]["session"].as_str())
        .unwrap();
    let history = [
        chat_message("user", "go"),
        chat_message("assistant", &words),
        chat_message("user", "thanks"),
    ];
    assert_eq!(talk.ask(&history).await.1, session);
}

#[tokio::test]
async fn odd_histories_are_read_as_they_are() {
    let house = TestGateway::start("root always says Fine.").await;
    let talk = chat_client(&house).await;
    let odd = [
        chat_message("assistant", "Welcome!"),
        json!({ "role": "assistant", "content": null }),
        chat_message("user", "a"),
        chat_message("user", "b"),
        chat_message("assistant", "c"),
        chat_message("assistant", "d"),
        chat_message("user", "e"),
    ];
    let (_, session) = talk.ask(&odd).await;
    let mut longer = odd.to_vec();
    longer.extend([
        chat_message("assistant", "Fine."),
        chat_message("user", "f"),
    ]);
    assert_eq!(talk.ask(&longer).await.1, session);
}
