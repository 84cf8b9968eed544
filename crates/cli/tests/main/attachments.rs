//! Images and files in requests, end to end (B110).

use lango_testkit::model_server::{ModelServer, ServerReply};
use serde_json::{Value, json};

use crate::ask::events;
use crate::setup::TestDir;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of an image";
const PDF: &[u8] = b"%PDF-1.4 not much of a file";
const PNG_BASE64: &str = "iVBORw0KGgpub3QgbXVjaCBvZiBhbiBpbWFnZQ==";

/// The dialects, with a streamed reply of each.
fn dialects() -> [(&'static str, ServerReply); 3] {
    let sse = |events: &[Value]| {
        let frame = |event: &Value| {
            let kind = event["type"].as_str().unwrap_or("message");
            format!("event: {kind}\ndata: {event}\n\n")
        };
        ServerReply::Stream(vec![
            events.iter().map(frame).collect::<String>().into_bytes(),
        ])
    };
    let anthropic = sse(&[
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "A cat." } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 3 } }),
        json!({ "type": "message_stop" }),
    ]);
    let gemini = sse(&[
        json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "A cat." }] }, "finishReason": "STOP" }] }),
    ]);
    [
        ("openai", ServerReply::text("A cat.")),
        ("anthropic", anthropic),
        ("gemini", gemini),
    ]
}

fn test_dir(kind: &str, server: &ModelServer) -> TestDir {
    let url = match kind {
        "openai" => server.base_url(),
        _ => server.origin(),
    };
    let dir = TestDir::with_provider(kind, &url);
    std::fs::write(dir.path().join("cat.png"), PNG).unwrap();
    std::fs::write(dir.path().join("doc.pdf"), PDF).unwrap();
    dir
}

fn last_message(kind: &str, body: &Value) -> Value {
    let messages = match kind {
        "gemini" => &body["contents"],
        _ => &body["messages"],
    };
    messages.as_array().unwrap().last().unwrap().clone()
}

/// B110
#[test]
fn image_is_sent_in_the_form_of_each_provider() {
    for (kind, reply) in dialects() {
        let server = ModelServer::start(vec![reply]).unwrap();
        let dir = test_dir(kind, &server);
        let run = dir.lango(&["ask", "--attach", "cat.png", "what is this?"]);
        assert_eq!(
            (run.exit, run.stdout.as_str()),
            (0, "A cat.\n"),
            "{kind}: {}",
            run.stderr
        );
        let message = last_message(kind, &server.requests()[0].json());
        let image = match kind {
            "openai" => {
                json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG_BASE64}") } })
            }
            "anthropic" => {
                json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG_BASE64 },
                    "cache_control": { "type": "ephemeral" } })
            }
            _ => json!({ "inlineData": { "mimeType": "image/png", "data": PNG_BASE64 } }),
        };
        let parts = match kind {
            "gemini" => &message["parts"],
            _ => &message["content"],
        };
        assert_eq!(
            parts[0]["text"], "what is this?\n\n[image cat.png]",
            "{kind}: {message}"
        );
        assert_eq!(parts[1], image, "{kind}");
    }
}

/// B110: where a model cannot read a file, it reads a short text about it.
#[test]
fn unreadable_file_becomes_a_short_text() {
    let server = ModelServer::start(vec![ServerReply::text("No.")]).unwrap();
    let dir = test_dir("openai", &server);
    let run = dir.lango(&["ask", "--attach", "doc.pdf", "read it"]);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let message = last_message("openai", &server.requests()[0].json());
    let text = message["content"].as_str().unwrap();
    assert!(
        text.contains("[file doc.pdf, application/pdf, 27 bytes; this model cannot read it]"),
        "{text}"
    );
    let server = ModelServer::start(vec![ServerReply::text("Yes.")]).unwrap();
    let dir = test_dir("openai", &server);
    let reads = "providers.x.reads=[\"pdf\"]";
    let run = dir.lango(&["ask", "--set", reads, "--attach", "doc.pdf", "read it"]);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let message = last_message("openai", &server.requests()[0].json());
    assert_eq!(message["content"][1]["file"]["filename"], "doc.pdf");
}

#[test]
fn server_that_rejects_images_gets_a_text_instead() {
    let server = ModelServer::start(vec![
        ServerReply::status(
            400,
            r#"{"error":{"message":"image input is not supported"}}"#,
        ),
        ServerReply::text("I cannot see it."),
    ])
    .unwrap();
    let dir = test_dir("openai", &server);
    let run = dir.lango(&["ask", "--attach", "cat.png", "what is this?"]);
    assert_eq!(
        (run.exit, run.stdout.as_str()),
        (0, "I cannot see it.\n"),
        "{}",
        run.stderr
    );
    let message = last_message("openai", &server.requests()[1].json());
    assert!(
        message["content"]
            .as_str()
            .unwrap()
            .contains("the provider does not accept it")
    );
}

/// B110, B101: bytes are stored once and sent again in later turns; the event names them and is
/// labelled by them.
#[test]
fn attachment_stays_in_the_session() {
    let replies = vec![ServerReply::text("A cat."), ServerReply::text("Black.")];
    let server = ModelServer::start(replies).unwrap();
    let dir = test_dir("openai", &server);
    let first = dir.lango(&[
        "ask",
        "--json",
        "--session",
        "s",
        "--attach",
        "cat.png",
        "what is this?",
    ]);
    let user = &events(&first)[0];
    assert_eq!(user["text"], "what is this?");
    assert_eq!(user["attachments"][0]["name"], "cat.png");
    assert!(
        !first.stdout.contains(PNG_BASE64),
        "bytes stay out of events"
    );
    dir.lango(&["ask", "--session", "s", "what color?"]);
    let requests = server.requests();
    assert!(
        requests[1].json().to_string().contains(PNG_BASE64),
        "a new process loads the bytes"
    );

    let exported = dir.lango(&["session", "export", "s"]).stdout;
    dir.write("s.jsonl", &exported);
    dir.lango(&["session", "import", "s.jsonl", "--session", "t"]);
    assert_eq!(
        dir.lango(&["session", "export", "t"])
            .stdout
            .replace("\"session\":\"t\"", "\"session\":\"s\""),
        exported
    );
    dir.lango(&["session", "delete", "s"]);
    let files = dir
        .lango(&["--json", "session", "files", "t", "--save", "out"])
        .json();
    assert_eq!(files["items"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read(dir.path().join("out/cat.png")).unwrap(), PNG);
    dir.lango(&["session", "delete", "t"]);
    for file in ["lango.db", "lango.db-wal"] {
        let bytes = std::fs::read(dir.path().join("home").join(file)).unwrap_or_default();
        let is_in = bytes.windows(PNG.len()).any(|window| window == PNG);
        assert!(!is_in, "deleted bytes are in {file}");
    }
}

#[test]
fn damaged_export_is_refused() {
    let server = ModelServer::start(vec![ServerReply::text("A cat.")]).unwrap();
    let dir = test_dir("openai", &server);
    dir.lango(&[
        "ask",
        "--session",
        "s",
        "--attach",
        "cat.png",
        "what is this?",
    ]);
    let exported = dir.lango(&["session", "export", "s"]).stdout;
    for (what, changed) in [
        (
            "checksum",
            exported.replacen("iVBORw0KGgpu", "iVBORw0KGgpv", 1),
        ),
        ("base64", exported.replacen("iVBORw0KGgpu", "!!", 1)),
    ] {
        dir.write("bad.jsonl", &changed);
        let run = dir.lango(&["session", "import", "bad.jsonl", "--session", "bad"]);
        assert_eq!(run.exit, 2);
        assert!(
            run.stderr.contains("bad.jsonl:1:") && run.stderr.contains(what),
            "{}",
            run.stderr
        );
    }
}

/// A file from another place cannot choose where its attachments are saved, or what a terminal does.
#[test]
fn imported_names_stay_in_the_folder() {
    let server = ModelServer::start(vec![ServerReply::text("A cat.")]).unwrap();
    let dir = test_dir("openai", &server);
    dir.lango(&[
        "ask",
        "--session",
        "s",
        "--attach",
        "cat.png",
        "what is this?",
    ]);
    let exported = dir.lango(&["session", "export", "s"]).stdout;
    let absolute = dir.path().join("evil").display().to_string();
    for name in ["../evil", "./../../evil", &absolute, "a\\u001b]0;evil"] {
        let changed = exported.replace("\"name\":\"cat.png\"", &format!("\"name\":\"{name}\""));
        assert_ne!(changed, exported);
        dir.write("evil.jsonl", &changed);
        dir.lango(&["session", "import", "evil.jsonl", "--session", "t"]);
        let saved = dir.lango(&["session", "files", "t", "--save", "deep/out"]);
        assert_eq!(saved.exit, 0, "{}", saved.stderr);
        assert!(!saved.stdout.contains('\u{1b}'));
        assert!(!dir.path().join("evil").exists(), "{name}");
        assert_eq!(
            std::fs::read_dir(dir.path().join("deep/out"))
                .unwrap()
                .count(),
            1
        );
        std::fs::remove_dir_all(dir.path().join("deep")).unwrap();
        dir.lango(&["session", "delete", "t"]);
    }
    let without: String = exported
        .lines()
        .filter(|line| !line.contains("\"type\":\"blob\""))
        .map(|line| format!("{line}\n"))
        .collect();
    dir.lango(&["session", "delete", "s"]);
    dir.write("lost.jsonl", &without);
    let imported = dir.lango(&["session", "import", "lost.jsonl", "--session", "l"]);
    assert!(
        imported.stdout.contains("lacks the content of cat.png"),
        "{}",
        imported.stdout
    );
    let files = dir.lango(&["session", "files", "l"]).stdout;
    assert!(files.contains("its content is lost"), "{files}");
}

/// The text of a PDF file is sent to a model that reads no PDF files, and the user is told.
#[test]
fn pdf_text_is_sent_where_pdf_files_are_not_read() {
    let server = ModelServer::start(vec![ServerReply::text("A zebra.")]).unwrap();
    let dir = test_dir("openai", &server);
    let pdf = lango_testkit::pdf::pdf(&["BT /F1 12 Tf (The zebra sleeps.) Tj ET"]);
    std::fs::write(dir.path().join("zebra.pdf"), pdf).unwrap();
    let run = dir.lango(&["ask", "--attach", "zebra.pdf", "what is in it?"]);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert!(
        run.stderr
            .contains("reads no PDF files, so its text is sent"),
        "{}",
        run.stderr
    );
    let request = server.requests()[0].json().to_string();
    assert!(request.contains("The zebra sleeps."), "{request}");
}

/// Bad files are refused before anything is sent.
#[test]
fn bad_files_are_refused() {
    let server = ModelServer::start(Vec::new()).unwrap();
    let dir = test_dir("openai", &server);
    std::fs::write(dir.path().join("empty.png"), b"").unwrap();
    let large = std::fs::File::create(dir.path().join("large.bin")).unwrap();
    large.set_len(11 * 1024 * 1024).unwrap();
    for (file, reason) in [
        ("none.png", "No such file"),
        (".", "not a regular file"),
        ("empty.png", "is empty"),
        ("large.bin", "at most 10485760"),
    ] {
        let run = dir.lango(&["ask", "--attach", file, "what is this?"]);
        assert_eq!(run.exit, 2, "{file}");
        assert!(run.stderr.contains(reason), "{file}: {}", run.stderr);
    }
    assert!(server.requests().is_empty());
}

/// B101: a text file is context of the request, and a record replays with its files.
#[test]
fn text_files_are_data_and_recordings_replay_files() {
    let server = ModelServer::start(vec![ServerReply::text("Fine.")]).unwrap();
    let dir = test_dir("openai", &server);
    dir.write("note.md", "remember the milk");
    let run = dir.lango(&[
        "ask", "--record", "tape", "--attach", "note.md", "--attach", "cat.png", "sum up",
    ]);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let message = last_message("openai", &server.requests()[0].json());
    let text = message["content"].to_string();
    assert!(
        text.contains("<context source=\\\"file note.md\\\">\\nremember the milk"),
        "{text}"
    );
    let replayed = dir.lango(&["ask", "--replay", "tape"]);
    assert_eq!(
        (replayed.exit, replayed.stdout.as_str()),
        (0, "Fine.\n"),
        "{}",
        replayed.stderr
    );
    assert_eq!(server.requests().len(), 1);
}
