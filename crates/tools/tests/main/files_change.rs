//! Changing files: writing, editing, creating folders.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use lango_domain::Safety;
use serde_json::json;

use crate::files::FilesHarness;

#[tokio::test]
async fn creates_files_with_missing_folders() {
    let harness = FilesHarness::new();
    let args = json!({ "path": "a/b/c.txt", "content": "one\ntwo\n" });
    let intent = harness.intent("fs_write", args.clone()).await.unwrap();
    assert_eq!(
        (intent.level, intent.subject.as_str()),
        (Safety::Moderate, "a/b/c.txt")
    );
    assert_eq!(
        (intent.shows.as_str(), intent.pattern.as_deref()),
        ("new file a/b/c.txt\none\ntwo", Some("a/b/*"))
    );
    assert!(!harness.path("a").exists(), "the intent changes nothing");
    let output = harness.call("fs_write", args).await.unwrap();
    assert_eq!(output, "created a/b/c.txt: 2 lines, 8 bytes");
    assert_eq!(harness.read("a/b/c.txt"), "one\ntwo\n");
    let failure = harness
        .call("fs_write", json!({ "path": "a/b", "content": "" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a folder"), "{failure}");
    let failure = harness
        .call("fs_write", json!({ "path": "a/b/c.txt/d", "content": "" }))
        .await
        .unwrap_err();
    assert!(failure.contains("goes through a file"), "{failure}");
}

#[tokio::test]
async fn write_keeps_mode_and_line_endings() {
    let harness = FilesHarness::new();
    harness.write("a.sh", "one\r\ntwo\r\n");
    std::fs::set_permissions(harness.path("a.sh"), Permissions::from_mode(0o751)).unwrap();
    let args = json!({ "path": "a.sh", "content": "one\nthree\n" });
    let intent = harness.intent("fs_write", args.clone()).await.unwrap();
    assert!(
        intent.shows.contains("-two") && intent.shows.contains("+three"),
        "{}",
        intent.shows
    );
    assert!(!intent.shows.contains("-one"), "{}", intent.shows);
    harness.call("fs_write", args.clone()).await.unwrap();
    assert_eq!(harness.read("a.sh"), "one\r\nthree\r\n");
    harness
        .call(
            "fs_write",
            json!({ "path": "a.sh", "content": "four\n", "append": true }),
        )
        .await
        .unwrap();
    assert_eq!(harness.read("a.sh"), "one\r\nthree\r\nfour\r\n");
    assert_eq!(
        harness
            .path("a.sh")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o7777,
        0o751
    );
    assert_eq!(std::fs::read_dir(harness.root()).unwrap().count(), 2);
    let again = json!({ "path": "a.sh", "content": "one\r\nthree\r\nfour\r\n" });
    assert_eq!(
        harness
            .intent("fs_write", again.clone())
            .await
            .unwrap()
            .level,
        Safety::Safe
    );
    assert!(
        harness
            .call("fs_write", again)
            .await
            .unwrap()
            .contains("already")
    );
}

#[tokio::test]
async fn edit_replaces_a_unique_text() {
    let harness = FilesHarness::new();
    harness.write("src/a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    let args = json!({ "path": "src/a.rs", "old_text": "fn b() {}", "new_text": "fn b() { a() }" });
    let intent = harness.intent("fs_edit", args.clone()).await.unwrap();
    assert_eq!(
        (intent.subject.as_str(), intent.pattern.as_deref()),
        ("src/a.rs", Some("src/*"))
    );
    let output = harness.call("fs_edit", args.clone()).await.unwrap();
    assert!(
        output.starts_with("edited src/a.rs: lines 2-2\n--- src/a.rs"),
        "{output}"
    );
    assert!(output.contains("-fn b() {}\n+fn b() { a() }"), "{output}");
    assert!(output.ends_with(intent.shows.as_str()), "{output}");
    assert_eq!(
        harness.read("src/a.rs"),
        "fn a() {}\nfn b() { a() }\nfn c() {}\n"
    );
    let again = harness.intent("fs_edit", args).await.unwrap_err();
    assert!(
        again.contains("most similar lines are:\n1: fn a() {}\n2: fn b() { a() }"),
        "{again}"
    );
}

#[tokio::test]
async fn rejects_ambiguous_edits() {
    let harness = FilesHarness::new();
    harness.write("a.txt", "x = 1\ny = 2\nx = 1\n");
    let twice = json!({ "path": "a.txt", "old_text": "x = 1", "new_text": "z" });
    let failure = harness.call("fs_edit", twice).await.unwrap_err();
    assert!(
        failure.contains("at lines 1, 3;") && failure.contains("all=true"),
        "{failure}"
    );
    let spaces = json!({ "path": "a.txt", "old_text": "y  =  2", "new_text": "z" });
    let failure = harness.call("fs_edit", spaces).await.unwrap_err();
    assert!(
        failure.contains("different whitespace") && failure.contains("2: y = 2"),
        "{failure}"
    );
    let both = json!({ "path": "a.txt", "old_text": "y", "new_text": "z", "start_line": 1 });
    assert!(
        harness
            .call("fs_edit", both)
            .await
            .unwrap_err()
            .contains("not both")
    );
    let missing = json!({ "path": "b.txt", "old_text": "y", "new_text": "z" });
    assert!(
        harness
            .call("fs_edit", missing)
            .await
            .unwrap_err()
            .contains("use fs_write to create a file")
    );
    assert_eq!(harness.read("a.txt"), "x = 1\ny = 2\nx = 1\n");
    let all = json!({ "path": "a.txt", "old_text": "x = 1", "new_text": "z", "all": true });
    harness.call("fs_edit", all).await.unwrap();
    assert_eq!(harness.read("a.txt"), "z\ny = 2\nz\n");
}

#[tokio::test]
async fn line_edit_keeps_line_endings_and_mode() {
    let harness = FilesHarness::new();
    harness.write("a.txt", "1\r\n2\r\n3\r\n4");
    std::fs::set_permissions(harness.path("a.txt"), Permissions::from_mode(0o600)).unwrap();
    let args = json!({ "path": "a.txt", "start_line": 2, "end_line": 3, "new_text": "two\nthree" });
    let output = harness.call("fs_edit", args).await.unwrap();
    assert!(output.starts_with("edited a.txt: lines 2-3\n"), "{output}");
    assert_eq!(harness.read("a.txt"), "1\r\ntwo\r\nthree\r\n4");
    assert_eq!(
        harness
            .path("a.txt")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    let past_end = json!({ "path": "a.txt", "start_line": 4, "end_line": 9, "new_text": "" });
    assert!(
        harness
            .call("fs_edit", past_end)
            .await
            .unwrap_err()
            .contains("it has 4 lines")
    );
}

#[tokio::test]
async fn rejects_edits_of_binary_files() {
    let harness = FilesHarness::new();
    harness.write("latin", b"caf\xe9\n");
    let args = json!({ "path": "latin", "old_text": "caf", "new_text": "x" });
    assert!(
        harness
            .call("fs_edit", args)
            .await
            .unwrap_err()
            .contains("not valid UTF-8")
    );
    assert_eq!(std::fs::read(harness.path("latin")).unwrap(), b"caf\xe9\n");
}

#[tokio::test]
async fn concurrent_edits_are_all_applied() {
    let harness = FilesHarness::new();
    harness.write(
        "a.txt",
        (0..20)
            .map(|number| format!("<{number}>\n"))
            .collect::<String>(),
    );
    let edits = (0..20).map(|number| {
        let args =
            json!({ "path": "a.txt", "old_text": format!("<{number}>"), "new_text": format!("[{number}]") });
        harness.call("fs_edit", args)
    });
    for result in futures::future::join_all(edits).await {
        result.unwrap();
    }
    assert!(!harness.read("a.txt").contains('<'));
}

#[tokio::test]
async fn creates_folders_once() {
    let harness = FilesHarness::new();
    let args = json!({ "path": "a/b/c" });
    let intent = harness.intent("fs_mkdir", args.clone()).await.unwrap();
    assert_eq!(
        (intent.level, intent.shows.as_str()),
        (Safety::Moderate, "new folder a/b/c")
    );
    assert_eq!(
        harness.call("fs_mkdir", args.clone()).await.unwrap(),
        "made the folder a/b/c"
    );
    assert!(harness.path("a/b/c").is_dir());
    assert_eq!(
        harness
            .intent("fs_mkdir", args.clone())
            .await
            .unwrap()
            .level,
        Safety::Safe
    );
    assert_eq!(
        harness.call("fs_mkdir", args).await.unwrap(),
        "the folder a/b/c exists already"
    );
    harness.write("file", "");
    let failure = harness
        .call("fs_mkdir", json!({ "path": "file" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a file, not a folder"), "{failure}");
}
