//! Which session a conversation belongs to when the client sends all of it every time.

use lango_domain::event::{Author, EventBody};
use serde_json::{Value, json};

use crate::house::{Chat, House};

const COMPLETIONS: &str = "/v1/chat/completions";

fn said(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

struct Talk<'a> {
    house: &'a House,
    token: String,
}

impl Talk<'_> {
    /// The answer, and the session that it came from.
    async fn ask(&self, messages: &[Value]) -> (String, String) {
        let reply = self.house.post(COMPLETIONS, &self.token, &json!({ "messages": messages })).await;
        let json = reply.json();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{}", reply.body)).to_owned();
        (text(&json["choices"][0]["message"]["content"]), text(&json["lango"]["session"]))
    }
}

async fn talk(house: &House) -> Talk<'_> {
    Talk { house, token: house.token("ann", &[Chat]).await }
}

const SCRIPT: &str = "root transfers operator\noperator calls fs_read {\"path\":\"a\"}\noperator says It says 42.\nroot always says Fine.";

#[tokio::test]
async fn a_follow_up_goes_on_where_the_team_was() {
    let house = House::open(SCRIPT).await;
    let talk = talk(&house).await;
    let first = [said("system", "Be kind."), said("user", "read a")];
    let (answer, session) = talk.ask(&first).await;
    assert_eq!(answer, "It says 42.");
    let mut longer = first.to_vec();
    longer.extend([said("assistant", &answer), said("user", " thanks ")]);
    let (again, same) = talk.ask(&longer).await;
    assert_eq!((again.as_str(), &same), ("Fine.", &session));
    longer.extend([said("assistant", &again), said("user", "once more")]);
    assert_eq!(talk.ask(&longer).await.1, session);
    let log = house.log("ann", &session).await;
    let authors = log.iter().filter(|event| matches!(event.body, EventBody::Answer { .. }));
    let authors: Vec<String> = authors.map(|event| event.author.to_string()).collect();
    assert_eq!(authors, ["operator", "lango-orchestrator", "lango-orchestrator"]);
    let told = log.iter().filter(|event| matches!(event.body, EventBody::Context { .. })).count();
    assert_eq!(told, 1, "what the client says beside the conversation is told once");
}

#[tokio::test]
async fn a_retry_an_edit_and_somebody_elses_history_begin_anew_with_what_was_sent() {
    let house = House::open("root always says Fine.").await;
    let talk = talk(&house).await;
    let (answer, session) = talk.ask(&[said("user", "one")]).await;
    let follow_up = |text: &str| vec![said("user", "one"), said("assistant", &answer), said("user", text)];
    assert_eq!(talk.ask(&follow_up("two")).await.1, session);
    let (_, retried) = talk.ask(&follow_up("two")).await;
    assert_ne!(retried, session, "the session has gone further than the client");
    let edited = [said("user", "one"), said("assistant", "Something else."), said("user", "two")];
    let (_, other) = talk.ask(&edited).await;
    assert!(other != session && other != retried);
    let log = house.log("ann", &other).await;
    let answered =
        log.iter().find(|event| matches!(&event.body, EventBody::Answer { text } if text == "Something else."));
    assert!(matches!(&answered.unwrap().author, Author::Agent(root) if root == "lango-orchestrator"));
    // From there it goes on.
    let mut longer = edited.to_vec();
    longer.extend([said("assistant", "Fine."), said("user", "three")]);
    assert_eq!(talk.ask(&longer).await.1, other);
    let read = format!("{:?}", house.model.requests().last().unwrap().messages);
    assert!(read.contains("Something else.") && read.contains("three"), "{read}");
}

#[tokio::test]
async fn two_answers_to_one_history_at_the_same_time_do_not_mix() {
    let house = House::open("root always says Fine.").await;
    let talk = talk(&house).await;
    let (answer, _) = talk.ask(&[said("user", "one")]).await;
    let history = |text: &str| vec![said("user", "one"), said("assistant", &answer), said("user", text)];
    let wishes: Vec<Vec<Value>> = (0..8).map(|n| history(&format!("two {n}"))).collect();
    let sessions = futures::future::join_all(wishes.iter().map(|wish| talk.ask(wish))).await;
    let mut sessions: Vec<String> = sessions.into_iter().map(|(_, session)| session).collect();
    for session in &sessions {
        let log = house.log("ann", session).await;
        let asked = log.iter().filter(|event| matches!(event.body, EventBody::User { .. })).count();
        assert_eq!(asked, 2, "{session}");
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 8);
}

/// B74
#[tokio::test]
async fn the_same_history_of_another_principal_is_another_session() {
    let house = House::open("root always says Fine.").await;
    let talk = talk(&house).await;
    let (answer, session) = talk.ask(&[said("user", "one")]).await;
    let eve = Talk { house: &house, token: house.token("eve", &[Chat]).await };
    let history = [said("user", "one"), said("assistant", &answer), said("user", "two")];
    assert_ne!(eve.ask(&history).await.1, session);
    assert_eq!(talk.ask(&history).await.1, session);
}

#[tokio::test]
async fn an_answer_that_was_streamed_with_a_remark_is_known_again() {
    let script = "root says One moment. + transfers operator\noperator says Done.\nroot always says Fine.";
    let house = House::open(script).await;
    let talk = talk(&house).await;
    let body = json!({ "stream": true, "messages": [said("user", "go")] });
    let chunks = house.stream(COMPLETIONS, &talk.token, &body).await.rest().await;
    let words: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(words, "One moment.\n\nDone.");
    let session = chunks.iter().find_map(|chunk| chunk["lango"]["session"].as_str()).unwrap();
    let history = [said("user", "go"), said("assistant", &words), said("user", "thanks")];
    assert_eq!(talk.ask(&history).await.1, session);
}

#[tokio::test]
async fn odd_histories_are_read_as_they_are() {
    let house = House::open("root always says Fine.").await;
    let talk = talk(&house).await;
    let odd = [
        said("assistant", "Welcome!"),
        json!({ "role": "assistant", "content": null }),
        said("user", "a"),
        said("user", "b"),
        said("assistant", "c"),
        said("assistant", "d"),
        said("user", "e"),
    ];
    let (_, session) = talk.ask(&odd).await;
    let mut longer = odd.to_vec();
    longer.extend([said("assistant", "Fine."), said("user", "f")]);
    assert_eq!(talk.ask(&longer).await.1, session);
}
