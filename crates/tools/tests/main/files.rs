//! Looking at files: reading, listing, describing; and what all the tools have in common.

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

/// A workspace, a folder for Lango's data beside it, and the tools.
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

    /// Without a folder for data.
    pub fn without_data() -> Self {
        Self::with(tempfile::tempdir().unwrap(), None)
    }

    fn with(folder: TempDir, data: Option<&Path>) -> Self {
        let root = folder.path().join("work");
        std::fs::create_dir_all(root.join(".lango")).unwrap();
        let workspace = Workspace::open(&root, vec![root.join(".lango")]).unwrap();
        let keeping = UndoStorage::in_folder(data);
        let tools = tools(FileTools {
            workspace,
            undo_storage: keeping.clone(),
        });
        Self {
            folder,
            undo_storage: keeping,
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

    /// What a call gives, or why it fails, both as text.
    pub async fn call(&self, name: &str, args: Value) -> Result<String, String> {
        self.call_in("t1", name, args).await
    }

    pub async fn call_in(&self, turn: &str, name: &str, args: Value) -> Result<String, String> {
        let done = self.tool(name).call(context(turn), args).await;
        done.map(|output| output.text).map_err(|failure| failure.0)
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
fn the_eight_tools_are_there_with_words_for_everybody() {
    let place = FilesHarness::new();
    let names: Vec<&str> = place.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, TOOL_NAMES);
    for tool in &place.tools {
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

#[tokio::test]
async fn wrong_arguments_are_named() {
    let place = FilesHarness::new();
    place.write("a.txt", "a\n");
    for (name, args, part) in [
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
            "no range",
        ),
        (
            "fs_delete",
            json!({ "path": "a.txt", "recursive": 1 }),
            "argument `recursive`",
        ),
    ] {
        let failure = place.call(name, args).await.unwrap_err();
        assert!(failure.contains(part), "{name}: {failure}");
    }
}

#[tokio::test]
async fn a_file_is_read_as_it_is() {
    let place = FilesHarness::new();
    place.write("a.txt", "one\ntwo\n");
    place.write("empty.txt", "");
    assert_eq!(
        place
            .call("fs_read", json!({ "path": "a.txt" }))
            .await
            .unwrap(),
        "one\ntwo\n"
    );
    let absolute = place.path("a.txt");
    assert_eq!(
        place
            .call("fs_read", json!({ "path": absolute }))
            .await
            .unwrap(),
        "one\ntwo\n"
    );
    assert_eq!(
        place
            .call("fs_read", json!({ "path": "empty.txt" }))
            .await
            .unwrap(),
        "`empty.txt` is empty"
    );
}

#[tokio::test]
async fn lines_are_read_in_ranges() {
    let place = FilesHarness::new();
    let text: String = (1..=340).map(|number| format!("line {number}\n")).collect();
    place.write("a.txt", text);
    let args = json!({ "path": "a.txt", "start_line": 10, "lines": 2 });
    assert_eq!(
        place.call("fs_read", args).await.unwrap(),
        "lines 10-11 of 340\nline 10\nline 11\n"
    );
    let end = place
        .call(
            "fs_read",
            json!({ "path": "a.txt", "start_line": 340, "lines": 9 }),
        )
        .await
        .unwrap();
    assert_eq!(end, "lines 340-340 of 340\nline 340\n");
    let behind = place
        .call("fs_read", json!({ "path": "a.txt", "start_line": 341 }))
        .await
        .unwrap_err();
    assert!(behind.contains("has 340 lines"), "{behind}");
}

#[tokio::test]
async fn large_files_and_long_lines_are_cut_with_a_note() {
    let place = FilesHarness::new();
    place.write("large.txt", "0123456789abcdef\n".repeat(100_000));
    let text = place
        .call("fs_read", json!({ "path": "large.txt" }))
        .await
        .unwrap();
    assert!(text.len() < 260 * 1024, "{}", text.len());
    let header = text.lines().next().unwrap();
    assert_eq!(
        header,
        "lines 1-15420 of 100000; read on with start_line=15421"
    );
    place.write("long.txt", format!("{}\nend\n", "x".repeat(3_000_000)));
    let text = place
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

#[tokio::test]
async fn what_is_no_text_is_described() {
    let place = FilesHarness::new();
    place.write("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    place.write("blob", b"\0\x01\x02");
    place.write("latin", b"caf\xe9\n");
    let png = place
        .call("fs_read", json!({ "path": "a.png" }))
        .await
        .unwrap();
    assert_eq!(png, "`a.png` holds no plain text: PNG image, 16 bytes");
    let blob = place
        .call("fs_read", json!({ "path": "blob" }))
        .await
        .unwrap();
    assert_eq!(blob, "`blob` holds no plain text: binary file, 3 bytes");
    let latin = place
        .call("fs_read", json!({ "path": "latin" }))
        .await
        .unwrap();
    assert_eq!(
        latin,
        "not valid UTF-8: what is no text is shown as �\ncaf�\n"
    );
}

#[tokio::test]
async fn a_missing_file_comes_with_a_suggestion() {
    let place = FilesHarness::new();
    place.write("source/Main.rs", "");
    let failure = place
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
    let failure = place
        .call("fs_read", json!({ "path": "sorce/Main.rs" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("(no folder `sorce`); did you mean `source`?"),
        "{failure}"
    );
    let failure = place
        .call("fs_read", json!({ "path": "source" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a folder; fs_list"), "{failure}");
}

#[tokio::test]
async fn a_folder_is_listed_in_order() {
    let place = FilesHarness::new();
    place.write("b.txt", "12345");
    place.write("a/inner/deep.txt", "1");
    place.write(".lango/secret", "x");
    std::os::unix::fs::symlink("b.txt", place.path("link")).unwrap();
    let names = |text: String| -> Vec<String> {
        text.lines()
            .map(|line| line.split("  ").next().unwrap().to_owned())
            .collect()
    };
    let flat = place.call("fs_list", json!({})).await.unwrap();
    assert!(flat.contains("b.txt  5 bytes  20"), "{flat}");
    assert_eq!(names(flat), ["a/", "b.txt", "link -> b.txt"]);
    let deep = place
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
    let failure = place
        .call("fs_list", json!({ "path": "b.txt" }))
        .await
        .unwrap_err();
    assert_eq!(failure, "`b.txt` is no folder");
}

#[tokio::test]
async fn a_long_listing_is_cut() {
    let place = FilesHarness::new();
    for number in 0..1_003 {
        place.write(&format!("many/{number:04}"), "");
    }
    let text = place
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
async fn a_path_is_described_without_following_it() {
    let place = FilesHarness::new();
    place.write("a.txt", "one\ntwo");
    std::os::unix::fs::symlink("/etc/passwd", place.path("out")).unwrap();
    let told = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let file = told(
        place
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
    let link = told(
        place
            .call("fs_stat", json!({ "path": "out" }))
            .await
            .unwrap(),
    );
    assert_eq!(
        (&link["kind"], &link["target"]),
        (&json!("link"), &json!("/etc/passwd"))
    );
    let root = told(place.call("fs_stat", json!({ "path": "." })).await.unwrap());
    assert_eq!(
        (&root["kind"], &root["path"]),
        (&json!("folder"), &json!("."))
    );
}
