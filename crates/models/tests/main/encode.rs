use std::path::Path;

use lango_domain::model::Message;
use lango_testkit::golden;
use serde_json::Value;

use crate::setup::{DIALECTS, endpoint, request};

fn body(at: usize, messages: usize) -> Value {
    let mut request = request();
    request.messages.truncate(messages);
    let (dialect, name) = DIALECTS[at];
    serde_json::from_slice(&dialect.encode(&request, &endpoint(name)).body).unwrap()
}

#[test]
fn encoded_requests_are_as_blessed() {
    for (dialect, name) in DIALECTS {
        let wire = dialect.encode(&request(), &endpoint(name));
        let body: Value = serde_json::from_slice(&wire.body).unwrap();
        let headers: Vec<String> = wire
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}-request.txt"));
        golden::check(
            &file,
            &format!("POST {}\n{}\n{body:#}\n", wire.url, headers.concat()),
        );
    }
}

/// Thoughts are sent back, unchanged, only to the provider that made them.
#[test]
fn thoughts_are_sent_only_to_their_provider() {
    let has = |at: usize, text: &str| body(at, 6).to_string().contains(text);
    assert!(!has(0, "sig") && !has(0, "c2ln"));
    assert!(has(1, "\"signature\":\"sig\"") && !has(1, "c2ln"));
    assert!(has(2, "\"thoughtSignature\":\"c2ln\"") && !has(2, "\"sig\""));
    let mut other_provider = request();
    other_provider.messages.truncate(4);
    let (anthropic, _) = DIALECTS[1];
    let wire = anthropic.encode(&other_provider, &endpoint("another-account"));
    assert!(!String::from_utf8(wire.body).unwrap().contains("signature"));
}

/// All results of one reply are in one message, right after their calls.
#[test]
fn parallel_results_are_in_one_message() {
    let anthropic = body(1, 4);
    let last = anthropic["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"].as_array().unwrap().len(), 2);
    assert_eq!(last["content"][1]["is_error"], true);
    let gemini = body(2, 4);
    assert_eq!(
        gemini["contents"].as_array().unwrap().last().unwrap()["parts"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// B40: earlier messages are sent again byte for byte, apart from the cache breakpoint.
#[test]
fn consecutive_requests_share_the_longest_possible_prefix() {
    for (dialect, name) in DIALECTS {
        let encode = |messages: usize| {
            let mut request = request();
            request.messages.truncate(messages);
            let text = String::from_utf8(dialect.encode(&request, &endpoint(name)).body).unwrap();
            text.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
        };
        for messages in [2, 4, 5] {
            let (shorter, longer) = (encode(messages), encode(messages + 1));
            let common = shorter
                .bytes()
                .zip(longer.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            let end = shorter.len() - shorter.trim_end_matches([']', '}', '"']).len();
            assert!(
                common + end >= shorter.len(),
                "{name} after {messages}: {common} of {}",
                shorter.len()
            );
        }
    }
}

#[test]
fn system_prompt_is_a_cache_breakpoint() {
    assert_eq!(
        body(1, 2)["system"][0]["cache_control"]["type"],
        "ephemeral"
    );
}

#[test]
fn roles_alternate_where_required() {
    for (at, key) in [(0, "messages"), (1, "messages"), (2, "contents")] {
        let body = body(at, 6);
        let roles: Vec<&str> = body[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["role"].as_str().unwrap())
            .filter(|role| *role != "tool")
            .collect();
        assert!(
            roles
                .windows(2)
                .all(|pair| pair[0] != pair[1] || at == 0 && pair[0] == "assistant"),
            "{roles:?}"
        );
    }
    assert!(
        matches!(request().messages[1], Message::User(_)),
        "the request has adjacent messages of one role"
    );
}
