//! Reading, listing and describing files, and properties shared by all file tools.

use std::path::{Path, PathBuf};

use lango_domain::event::TurnId;
use lango_domain::{Intent, Safety, Tool, ToolContext, Trust};
use lango_tools::files::{FileTools, UndoStorage, Workspace, tools};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness;

pub const TOOL_NAMES: [&str; 8] = [
    "fs_read",
    "fs_list",
    "fs_stat",
    "fs_search",
    "fs_write",
    "fs_edit",
    "fs_mkdir",
    "fs_delete",
];

/// A workspace with the file tools, and a data folder next to it.
pub struct FilesHarness {
    pub folder: TempDir,
    pub undo_storage: UndoStorage,
    tools: Vec<Tool>,
}

impl FilesHarness {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        Self::with(folder, Some(&data))
    }

    /// Creates a harness without a data folder.
    pub fn without_data() -> Self {
        Self::with(tempfile::tempdir().unwrap(), None)
    }

    fn with(folder: TempDir, data: Option<&Path>) -> Self {
        let root = folder.path().join("work");
        std::fs::create_dir_all(root.join(".lango")).unwrap();
        let workspace = Workspace::open(&root, vec![root.join(".lango")]).unwrap();
        let undo_storage = UndoStorage::in_folder(data);
        let tools = tools(FileTools {
            workspace,
            undo_storage: undo_storage.clone(),
        });
        Self {
            folder,
            undo_storage,
            tools,
        }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn tool(&self, name: &str) -> &Tool {
        self.tools.iter().find(|tool| tool.name == name).unwrap()
    }

    /// Calls a tool and returns its result or error as text.
    pub async fn call(&self, name: &str, args: Value) -> Result<String, String> {
        self.call_in("t1", name, args).await
    }

    pub async fn call_in(&self, turn: &str, name: &str, args: Value) -> Result<String, String> {
        let result = self.tool(name).call(context(turn), args).await;
        result
            .map(|output| output.content.text)
            .map_err(|failure| failure.0)
    }

    pub async fn intent(&self, name: &str, args: Value) -> Result<Intent, String> {
        self.tool(name)
            .intent(context("t1"), args)
            .await
            .map_err(|failure| failure.0)
    }
}

pub fn context(turn: &str) -> ToolContext {
    ToolContext {
        turn: TurnId::new(turn),
        ..harness::context()
    }
}

/// S84
#[test]
fn all_tools_have_descriptions_intents_and_phrases() {
    let harness = FilesHarness::new();
    let names: Vec<&str> = harness
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, TOOL_NAMES);
    for tool in &harness.tools {
        let changes =
            ["fs_write", "fs_edit", "fs_mkdir", "fs_delete"].contains(&tool.name.as_str());
        assert_eq!(
            tool.safety,
            if changes {
                Safety::Moderate
            } else {
                Safety::Safe
            },
            "{}",
            tool.name
        );
        assert!(tool.has_intent(), "{}", tool.name);
        assert!(tool.phrases.len() >= 3, "{}", tool.name);
        for (name, argument) in tool.parameters["properties"].as_object().unwrap() {
            assert!(argument["description"].is_string(), "{} {name}", tool.name);
        }
        let untrusted =
            ["fs_read", "fs_list", "fs_stat", "fs_search", "fs_edit"].contains(&tool.name.as_str());
        assert_eq!(tool.trust == Trust::Untrusted, untrusted, "{}", tool.name);
    }
}

async fn assert_rejected(calls: impl IntoIterator<Item = (&str, Value, &str)>) {
    let harness = FilesHarness::new();
    harness.write("a.txt", "a\n");
    for (name, args, expected) in calls {
        let failure = harness.call(name, args).await.unwrap_err();
        assert!(failure.contains(expected), "{name}: {failure}");
    }
}

#[tokio::test]
async fn rejects_invalid_arguments_of_read_tools() {
    assert_rejected([
        ("fs_read", json!({ "path": 7 }), "argument `path`"),
        (
            "fs_read",
            json!({ "path": "a.txt", "start_line": -1 }),
            "argument `start_line`",
        ),
        (
            "fs_read",
            json!({ "path": "a.txt", "lines": "ten" }),
            "argument `lines`",
        ),
        (
            "fs_read",
            json!({ "path": "a.txt", "start_line": 0 }),
            "counts from 1",
        ),
        (
            "fs_read",
            json!({ "path": "a.txt", "lines": 0 }),
            "at least 1",
        ),
        ("fs_list", json!({ "depth": 9 }), "from 1 to 5"),
        ("fs_search", json!({}), "give a pattern"),
        (
            "fs_search",
            json!({ "pattern": "a", "limit": 0 }),
            "from 1 to 1000",
        ),
        (
            "fs_search",
            json!({ "pattern": "a", "context": 9 }),
            "from 0 to 5",
        ),
    ])
    .await;
}

#[tokio::test]
async fn rejects_invalid_arguments_of_change_tools() {
    assert_rejected([
        ("fs_write", json!({ "path": "a.txt" }), "content"),
        (
            "fs_write",
            json!({ "path": "a.txt", "content": "x", "append": "yes" }),
            "argument `append`",
        ),
        (
            "fs_edit",
            json!({ "path": "a.txt", "new_text": "x" }),
            "say what to replace",
        ),
        (
            "fs_edit",
            json!({ "path": "a.txt", "new_text": "x", "start_line": 2, "end_line": 1 }),
            "not a valid range",
        ),
        (
            "fs_delete",
            json!({ "path": "a.txt", "recursive": 1 }),
            "argument `recursive`",
        ),
    ])
    .await;
}

#[tokio::test]
async fn reads_whole_files() {
    let harness = FilesHarness::new();
    harness.write("a.txt", "one\ntwo\n");
    harness.write("empty.txt", "");
    assert_eq!(
        harness
            .call("fs_read", json!({ "path": "a.txt" }))
            .await
            .unwrap(),
        "one\ntwo\n"
    );
    let absolute = harness.path("a.txt");
    assert_eq!(
        harness
            .call("fs_read", json!({ "path": absolute }))
            .await
            .unwrap(),
        "one\ntwo\n"
    );
    assert_eq!(
        harness
            .call("fs_read", json!({ "path": "empty.txt" }))
            .await
            .unwrap(),
        "`empty.txt` is empty"
    );
}

#[tokio::test]
async fn reads_line_ranges() {
    let harness = FilesHarness::new();
    let text: String = (1..=340).map(|number| format!("line {number}\n")).collect();
    harness.write("a.txt", text);
    let args = json!({ "path": "a.txt", "start_line": 10, "lines": 2 });
    assert_eq!(
        harness.call("fs_read", args).await.unwrap(),
        "lines 10-11 of 340\nline 10\nline 11\n"
    );
    let end = harness
        .call(
            "fs_read",
            json!({ "path": "a.txt", "start_line": 340, "lines": 9 }),
        )
        .await
        .unwrap();
    assert_eq!(end, "lines 340-340 of 340\nline 340\n");
    let past_end = harness
        .call("fs_read", json!({ "path": "a.txt", "start_line": 341 }))
        .await
        .unwrap_err();
    assert!(past_end.contains("has 340 lines"), "{past_end}");
}

#[tokio::test]
async fn truncates_large_files_and_long_lines() {
    let harness = FilesHarness::new();
    harness.write("large.txt", "0123456789abcdef\n".repeat(100_000));
    let text = harness
        .call("fs_read", json!({ "path": "large.txt" }))
        .await
        .unwrap();
    assert!(text.len() < 260 * 1024, "{}", text.len());
    let header = text.lines().next().unwrap();
    assert_eq!(
        header,
        "lines 1-15420 of 100000; read on with start_line=15421"
    );
    harness.write("long.txt", format!("{}\nend\n", "x".repeat(3_000_000)));
    let text = harness
        .call("fs_read", json!({ "path": "long.txt" }))
        .await
        .unwrap();
    assert!(
        text.starts_with("lines longer than 2000 characters are cut\nxxx"),
        "{}",
        &text[..60]
    );
    assert!(
        text.ends_with(" [… 2998001 bytes more]\nend\n"),
        "{}",
        &text[text.len() - 60..]
    );
}

/// B110
#[tokio::test]
async fn attaches_images_and_pdf_files() {
    let harness = FilesHarness::new();
    for (name, bytes, attached) in [
        (
            "a.png",
            &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
            Some("image/png"),
        ),
        (
            "b.pdf",
            b"%PDF-1.7 all of it is text",
            Some("application/pdf"),
        ),
        ("c.bin", b"\0\x01", None),
        ("fake.png", b"just text", None),
    ] {
        harness.write(name, bytes);
        let tool = harness.tool("fs_read");
        let output = tool
            .call(context("t1"), json!({ "path": name }))
            .await
            .unwrap();
        let attachments = &output.content.attachments;
        let types: Vec<&str> = attachments
            .iter()
            .map(|file| file.media_type.as_str())
            .collect();
        assert_eq!(types.first().copied(), attached, "{name}");
        for file in attachments {
            assert_eq!(file.data.bytes().map(|bytes| &bytes[..]), Some(bytes));
        }
    }
}

#[tokio::test]
async fn describes_binary_files() {
    let harness = FilesHarness::new();
    harness.write("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    harness.write("blob", b"\0\x01\x02");
    harness.write("latin", b"caf\xe9\n");
    let png = harness
        .call("fs_read", json!({ "path": "a.png" }))
        .await
        .unwrap();
    assert_eq!(png, "`a.png` is not plain text: PNG image, 16 bytes");
    let blob = harness
        .call("fs_read", json!({ "path": "blob" }))
        .await
        .unwrap();
    assert_eq!(blob, "`blob` is not plain text: binary file, 3 bytes");
    let latin = harness
        .call("fs_read", json!({ "path": "latin" }))
        .await
        .unwrap();
    assert_eq!(
        latin,
        "not valid UTF-8; invalid bytes are shown as �\ncaf�\n"
    );
}

#[tokio::test]
async fn suggests_similar_names_for_missing_files() {
    let harness = FilesHarness::new();
    harness.write("source/Main.rs", "");
    let failure = harness
        .call("fs_read", json!({ "path": "source/main.rs" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("no file or folder `source/main.rs`"),
        "{failure}"
    );
    assert!(
        failure.ends_with("did you mean `source/Main.rs`?"),
        "{failure}"
    );
    let failure = harness
        .call("fs_read", json!({ "path": "sorce/Main.rs" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("(no folder `sorce`); did you mean `source`?"),
        "{failure}"
    );
    let failure = harness
        .call("fs_read", json!({ "path": "source" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a folder; use fs_list"), "{failure}");
}

#[tokio::test]
async fn lists_folders_sorted() {
    let harness = FilesHarness::new();
    harness.write("b.txt", "12345");
    harness.write("a/inner/deep.txt", "1");
    harness.write(".lango/secret", "x");
    std::os::unix::fs::symlink("b.txt", harness.path("link")).unwrap();
    let names = |text: String| -> Vec<String> {
        text.lines()
            .map(|line| line.split("  ").next().unwrap().to_owned())
            .collect()
    };
    let flat = harness.call("fs_list", json!({})).await.unwrap();
    assert!(flat.contains("b.txt  5 bytes  20"), "{flat}");
    assert_eq!(names(flat), ["a/", "b.txt", "link -> b.txt"]);
    let deep = harness
        .call("fs_list", json!({ "path": ".", "depth": 3 }))
        .await
        .unwrap();
    assert_eq!(
        names(deep),
        [
            "a/",
            "a/inner/",
            "a/inner/deep.txt",
            "b.txt",
            "link -> b.txt"
        ]
    );
    let failure = harness
        .call("fs_list", json!({ "path": "b.txt" }))
        .await
        .unwrap_err();
    assert_eq!(failure, "`b.txt` is not a folder");
}

#[tokio::test]
async fn truncates_long_listings() {
    let harness = FilesHarness::new();
    for number in 0..1_003 {
        harness.write(&format!("many/{number:04}"), "");
    }
    let text = harness
        .call("fs_list", json!({ "path": "many" }))
        .await
        .unwrap();
    assert_eq!(text.lines().count(), 1_001);
    assert!(
        text.lines().last().unwrap().starts_with("[3 more;"),
        "{text}"
    );
}

#[tokio::test]
async fn describes_links_without_following_them() {
    let harness = FilesHarness::new();
    harness.write("a.txt", "one\ntwo");
    std::os::unix::fs::symlink("/etc/passwd", harness.path("out")).unwrap();
    let parse = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let file = parse(
        harness
            .call("fs_stat", json!({ "path": "a.txt" }))
            .await
            .unwrap(),
    );
    assert_eq!(
        (&file["kind"], &file["bytes"], &file["lines"]),
        (&json!("file"), &json!(7), &json!(2))
    );
    assert!(
        file["modified"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .is_ok()
    );
    let link = parse(
        harness
            .call("fs_stat", json!({ "path": "out" }))
            .await
            .unwrap(),
    );
    assert_eq!(
        (&link["kind"], &link["target"]),
        (&json!("link"), &json!("/etc/passwd"))
    );
    let root = parse(
        harness
            .call("fs_stat", json!({ "path": "." }))
            .await
            .unwrap(),
    );
    assert_eq!(
        (&root["kind"], &root["path"]),
        (&json!("folder"), &json!("."))
    );
}
