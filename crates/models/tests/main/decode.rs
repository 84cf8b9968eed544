use lango_domain::event::{CallId, Usage};
use lango_domain::model::{Fragment, ModelError, Thought, ToolCall};
use lango_models::Dialect;
use proptest::prelude::*;
use serde_json::json;

use crate::setup::{DIALECTS, decode};

const OPENAI: &str = r#"data: {"choices":[{"delta":{"role":"assistant","reasoning_content":"hm"}}]}

data: {"choices":[{"delta":{"content":"Grüß "}}]}

data: {"choices":[{"delta":{"content":"dich"}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"fs_read","arguments":""}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"fs_read","arguments":"{\"path\":\"b\"}"}},{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":80},"completion_tokens_details":{"reasoning_tokens":5}}}

data: [DONE]

"#;

const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":15,"cache_read_input_tokens":80,"cache_creation_input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüß "}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"dich"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1","name":"fs_read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20}}

event: message_stop
data: {"type":"message_stop"}

"#;

const GEMINI: &str = r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"Grüß "}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"dich"},{"functionCall":{"name":"fs_read","args":{"path":"a"}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":15,"cachedContentTokenCount":80,"thoughtsTokenCount":5}}

"#;

const RECORDED: [&str; 3] = [OPENAI, ANTHROPIC, GEMINI];

fn text(fragments: &[Fragment]) -> String {
    fragments
        .iter()
        .filter_map(|fragment| {
            if let Fragment::Text(text) = fragment {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect()
}

#[test]
fn recorded_replies_decode_in_every_dialect() {
    for ((dialect, name), recorded) in DIALECTS.into_iter().zip(RECORDED) {
        let fragments = decode(dialect, name, &[recorded.as_bytes()]).unwrap();
        assert_eq!(text(&fragments), "Grüß dich", "{name}");
        let calls: Vec<&ToolCall> = fragments
            .iter()
            .filter_map(|f| {
                if let Fragment::Call(call) = f {
                    Some(call)
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(
            (calls[0].name.as_str(), &calls[0].arguments),
            ("fs_read", &json!({ "path": "a" })),
            "{name}"
        );
        let usage = Usage {
            model: format!("{name}/m-1"),
            input: 100,
            output: 20,
            cached: 80,
            reasoning: if name == "anthropic" { 0 } else { 5 },
            cache_written: if name == "anthropic" { 5 } else { 0 },
            cost_usd: None,
        };
        assert!(
            fragments.contains(&Fragment::Usage(usage)),
            "{name}: {fragments:?}"
        );
        let seal = match name {
            "anthropic" => {
                Some(json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" }))
            }
            _ => None,
        };
        let thought = Thought {
            provider: name.into(),
            text: "hm".into(),
            seal,
            call: None,
        };
        assert!(
            fragments.contains(&Fragment::Thought(thought)),
            "{name}: {fragments:?}"
        );
        assert_eq!(fragments.last(), Some(&Fragment::Done), "{name}");
    }
}

#[test]
fn gemini_seal_belongs_to_its_call() {
    let fragments = decode(Dialect::Gemini, "gemini", &[GEMINI.as_bytes()]).unwrap();
    let sealed = Thought {
        provider: "gemini".into(),
        text: String::new(),
        seal: Some(json!("c2ln")),
        call: Some(CallId::new("gemini-1")),
    };
    assert!(
        fragments.contains(&Fragment::Thought(sealed)),
        "{fragments:?}"
    );
}

/// An incomplete stream is an error, never an answer.
#[test]
fn incomplete_streams_break_off() {
    for ((dialect, name), recorded) in DIALECTS.into_iter().zip(RECORDED) {
        let events: Vec<&str> = recorded.split_inclusive("\n\n").collect();
        let finished = match name {
            "openai" => events.len() - 3,
            "anthropic" => events.len() - 2,
            _ => events.len() - 1,
        };
        for end in 0..finished {
            let error = decode(dialect, name, &[events[..end].concat().as_bytes()]).unwrap_err();
            assert_eq!(error, ModelError::BrokeOff, "{name} after {end} events");
        }
    }
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let overloaded = r#"data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}

"#;
    assert_eq!(
        decode(Dialect::Anthropic, "a", &[overloaded.as_bytes()]),
        Err(ModelError::Busy { retry_after: None })
    );
    let blocked = r#"data: {"promptFeedback":{"blockReason":"SAFETY"}}

"#;
    assert_eq!(
        decode(Dialect::Gemini, "g", &[blocked.as_bytes()]),
        Err(ModelError::Refused("safety".into()))
    );
    let declined = ANTHROPIC.replace(
        "\"stop_reason\":\"tool_use\"",
        "\"stop_reason\":\"refusal\"",
    );
    assert!(matches!(
        decode(Dialect::Anthropic, "a", &[declined.as_bytes()]),
        Err(ModelError::Refused(_))
    ));
}

#[test]
fn truncated_replies_end_with_a_marker() {
    let truncated = [
        (
            Dialect::OpenAi,
            r#"data: {"choices":[{"delta":{"content":"Once"},"finish_reason":"length"}]}"#.to_owned(),
        ),
        (
            Dialect::Gemini,
            r#"data: {"candidates":[{"content":{"parts":[{"text":"Once"}]},"finishReason":"MAX_TOKENS"}]}"#
                .to_owned(),
        ),
        (
            Dialect::Anthropic,
            ANTHROPIC.replace("\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"max_tokens\""),
        ),
    ];
    for (dialect, stream) in truncated {
        let fragments = decode(dialect, "x", &[stream.as_bytes()]).unwrap();
        assert!(text(&fragments).contains("cut off"), "{dialect:?}");
    }
}

#[test]
fn shortened_names_are_mapped_back() {
    let wire = lango_models::Dialect::OpenAi
        .encode(&crate::setup::request(), &crate::setup::endpoint("x"));
    let sent: serde_json::Value = serde_json::from_slice(&wire.body).unwrap();
    let wire_name = sent["tools"][1]["function"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(wire_name.len() <= 64);
    let stream = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "1", "function": { "name": wire_name, "arguments": "{}" } }] } }] })
    );
    let fragments = decode(Dialect::OpenAi, "x", &[stream.as_bytes()]).unwrap();
    assert!(
        matches!(&fragments[0], Fragment::Call(call) if call.name == crate::setup::long_name()),
        "{fragments:?}"
    );
}

proptest! {
    /// Any chunking of a recorded stream decodes to the same fragments.
    #[test]
    fn chunking_does_not_matter(which in 0..3usize, cuts in prop::collection::vec(0..2_000usize, 0..12)) {
        let (dialect, name) = DIALECTS[which];
        let bytes = RECORDED[which].as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % bytes.len()).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut from = 0;
        let chunks: Vec<&[u8]> = cuts.into_iter().map(|to| &bytes[std::mem::replace(&mut from, to)..to]).collect();
        prop_assert_eq!(decode(dialect, name, &chunks), decode(dialect, name, &[bytes]));
    }

    /// A decoder never panics, whatever the bytes are.
    #[test]
    fn no_bytes_break_a_decoder(which in 0..3usize, bytes in prop::collection::vec(any::<u8>(), 0..400), splice in 0..2_000usize) {
        let (dialect, name) = DIALECTS[which];
        let recorded = RECORDED[which].as_bytes();
        let at = splice % recorded.len();
        let _ = decode(dialect, name, &[&recorded[..at], &bytes, &recorded[at..]]);
    }
}

/// Real servers send null for missing values, two names for one field, and numbers of any size.
#[test]
fn unusual_but_valid_streams_decode() {
    for chunk in [
        r#"{"choices":[{"delta":{"content":"Hi","reasoning":"a","reasoning_content":"b"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"delta":{"content":"Hi"},"message":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":null,"completion_tokens":3.0}}"#,
        r#"{"choices":[{"delta":{"content":"Hi","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":18446744073709551615,"completion_tokens":1e40}}"#,
    ] {
        let stream = format!("data: {{\"choices\":null}}\n\ndata: {chunk}\n\n");
        assert_eq!(
            text(&decode(Dialect::OpenAi, "x", &[stream.as_bytes()]).unwrap()),
            "Hi",
            "{chunk}"
        );
    }
    let huge = format!(
        "{{\"candidates\":[{{\"content\":{{\"parts\":null}}}}]}}\n\ndata: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"Hi\"}}]}},\"finishReason\":\"STOP\"}}],\"usageMetadata\":{{\"candidatesTokenCount\":{0},\"thoughtsTokenCount\":{0}}}}}",
        u64::MAX
    );
    assert_eq!(
        text(
            &decode(
                Dialect::Gemini,
                "x",
                &[format!("data: {huge}\n\n").as_bytes()]
            )
            .unwrap()
        ),
        "Hi"
    );
    let more = ANTHROPIC.replace(
        "\"input_tokens\":15",
        &format!("\"input_tokens\":{}", u64::MAX),
    );
    assert!(decode(Dialect::Anthropic, "x", &[more.as_bytes()]).is_ok());
}

#[test]
fn refusals_are_joined_and_empty_finish_reasons_ignored() {
    let pieces = "data: {\"choices\":[{\"delta\":{\"refusal\":\"I'm \"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"refusal\":\"sorry.\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(
        decode(Dialect::OpenAi, "x", &[pieces.as_bytes()]),
        Err(ModelError::Refused("I'm sorry.".into()))
    );
    let empty =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"},\"finish_reason\":\"\"}]}\n\n";
    assert_eq!(
        decode(Dialect::OpenAi, "x", &[empty.as_bytes()]),
        Err(ModelError::BrokeOff)
    );
}
