//! Changing files: writing, editing, making folders.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use lango_domain::Safety;
use serde_json::json;

use crate::files::FilesHarness;

#[tokio::test]
async fn a_new_file_comes_with_its_folders() {
    let place = FilesHarness::new();
    let args = json!({ "path": "a/b/c.txt", "content": "one\ntwo\n" });
    let intent = place.intent("fs_write", args.clone()).await.unwrap();
    assert_eq!(
        (intent.level, intent.subject.as_str()),
        (Safety::Moderate, "a/b/c.txt")
    );
    assert_eq!(
        (intent.shows.as_str(), intent.pattern.as_deref()),
        ("new file a/b/c.txt\none\ntwo", Some("a/b/*"))
    );
    assert!(!place.path("a").exists(), "telling changes nothing");
    let said = place.call("fs_write", args).await.unwrap();
    assert_eq!(said, "created a/b/c.txt: 2 lines, 8 bytes");
    assert_eq!(place.read("a/b/c.txt"), "one\ntwo\n");
    let failure = place
        .call("fs_write", json!({ "path": "a/b", "content": "" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a folder"), "{failure}");
    let failure = place
        .call("fs_write", json!({ "path": "a/b/c.txt/d", "content": "" }))
        .await
        .unwrap_err();
    assert!(failure.contains("goes through a file"), "{failure}");
}

#[tokio::test]
async fn writing_keeps_mode_and_line_ends_and_leaves_nothing_behind() {
    let place = FilesHarness::new();
    place.write("a.sh", "one\r\ntwo\r\n");
    std::fs::set_permissions(place.path("a.sh"), Permissions::from_mode(0o751)).unwrap();
    let args = json!({ "path": "a.sh", "content": "one\nthree\n" });
    let intent = place.intent("fs_write", args.clone()).await.unwrap();
    assert!(
        intent.shows.contains("-two") && intent.shows.contains("+three"),
        "{}",
        intent.shows
    );
    assert!(!intent.shows.contains("-one"), "{}", intent.shows);
    place.call("fs_write", args.clone()).await.unwrap();
    assert_eq!(place.read("a.sh"), "one\r\nthree\r\n");
    place
        .call(
            "fs_write",
            json!({ "path": "a.sh", "content": "four\n", "append": true }),
        )
        .await
        .unwrap();
    assert_eq!(place.read("a.sh"), "one\r\nthree\r\nfour\r\n");
    assert_eq!(
        place.path("a.sh").metadata().unwrap().permissions().mode() & 0o7777,
        0o751
    );
    assert_eq!(std::fs::read_dir(place.root()).unwrap().count(), 2);
    let again = json!({ "path": "a.sh", "content": "one\r\nthree\r\nfour\r\n" });
    assert_eq!(
        place.intent("fs_write", again.clone()).await.unwrap().level,
        Safety::Safe
    );
    assert!(
        place
            .call("fs_write", again)
            .await
            .unwrap()
            .contains("already")
    );
}

#[tokio::test]
async fn an_edit_replaces_what_is_there_once() {
    let place = FilesHarness::new();
    place.write("src/a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    let args = json!({ "path": "src/a.rs", "old_text": "fn b() {}", "new_text": "fn b() { a() }" });
    let intent = place.intent("fs_edit", args.clone()).await.unwrap();
    assert_eq!(
        (intent.subject.as_str(), intent.pattern.as_deref()),
        ("src/a.rs", Some("src/*"))
    );
    let said = place.call("fs_edit", args.clone()).await.unwrap();
    assert!(
        said.starts_with("edited src/a.rs: lines 2-2\n--- src/a.rs"),
        "{said}"
    );
    assert!(said.contains("-fn b() {}\n+fn b() { a() }"), "{said}");
    assert!(said.ends_with(intent.shows.as_str()), "{said}");
    assert_eq!(
        place.read("src/a.rs"),
        "fn a() {}\nfn b() { a() }\nfn c() {}\n"
    );
    let again = place.intent("fs_edit", args).await.unwrap_err();
    assert!(
        again.contains("most similar lines are:\n1: fn a() {}\n2: fn b() { a() }"),
        "{again}"
    );
}

#[tokio::test]
async fn an_edit_that_is_not_clear_changes_nothing() {
    let place = FilesHarness::new();
    place.write("a.txt", "x = 1\ny = 2\nx = 1\n");
    let twice = json!({ "path": "a.txt", "old_text": "x = 1", "new_text": "z" });
    let failure = place.call("fs_edit", twice).await.unwrap_err();
    assert!(
        failure.contains("at lines 1, 3;") && failure.contains("all=true"),
        "{failure}"
    );
    let spaces = json!({ "path": "a.txt", "old_text": "y  =  2", "new_text": "z" });
    let failure = place.call("fs_edit", spaces).await.unwrap_err();
    assert!(
        failure.contains("other white space") && failure.contains("2: y = 2"),
        "{failure}"
    );
    let both = json!({ "path": "a.txt", "old_text": "y", "new_text": "z", "start_line": 1 });
    assert!(
        place
            .call("fs_edit", both)
            .await
            .unwrap_err()
            .contains("not both")
    );
    let missing = json!({ "path": "b.txt", "old_text": "y", "new_text": "z" });
    assert!(
        place
            .call("fs_edit", missing)
            .await
            .unwrap_err()
            .contains("fs_write makes new files")
    );
    assert_eq!(place.read("a.txt"), "x = 1\ny = 2\nx = 1\n");
    let all = json!({ "path": "a.txt", "old_text": "x = 1", "new_text": "z", "all": true });
    place.call("fs_edit", all).await.unwrap();
    assert_eq!(place.read("a.txt"), "z\ny = 2\nz\n");
}

#[tokio::test]
async fn an_edit_of_lines_keeps_line_ends_and_mode() {
    let place = FilesHarness::new();
    place.write("a.txt", "1\r\n2\r\n3\r\n4");
    std::fs::set_permissions(place.path("a.txt"), Permissions::from_mode(0o600)).unwrap();
    let args = json!({ "path": "a.txt", "start_line": 2, "end_line": 3, "new_text": "two\nthree" });
    let said = place.call("fs_edit", args).await.unwrap();
    assert!(said.starts_with("edited a.txt: lines 2-3\n"), "{said}");
    assert_eq!(place.read("a.txt"), "1\r\ntwo\r\nthree\r\n4");
    assert_eq!(
        place.path("a.txt").metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let behind = json!({ "path": "a.txt", "start_line": 4, "end_line": 9, "new_text": "" });
    assert!(
        place
            .call("fs_edit", behind)
            .await
            .unwrap_err()
            .contains("it has 4 lines")
    );
}

#[tokio::test]
async fn what_is_no_text_is_not_edited() {
    let place = FilesHarness::new();
    place.write("latin", b"caf\xe9\n");
    let args = json!({ "path": "latin", "old_text": "caf", "new_text": "x" });
    assert!(
        place
            .call("fs_edit", args)
            .await
            .unwrap_err()
            .contains("not valid UTF-8")
    );
    assert_eq!(std::fs::read(place.path("latin")).unwrap(), b"caf\xe9\n");
}

#[tokio::test]
async fn edits_at_the_same_time_are_all_there() {
    let place = FilesHarness::new();
    place.write(
        "a.txt",
        (0..20)
            .map(|number| format!("<{number}>\n"))
            .collect::<String>(),
    );
    let edits = (0..20).map(|number| {
        let args =
            json!({ "path": "a.txt", "old_text": format!("<{number}>"), "new_text": format!("[{number}]") });
        place.call("fs_edit", args)
    });
    for done in futures::future::join_all(edits).await {
        done.unwrap();
    }
    assert!(!place.read("a.txt").contains('<'));
}

#[tokio::test]
async fn folders_are_made_once() {
    let place = FilesHarness::new();
    let args = json!({ "path": "a/b/c" });
    let intent = place.intent("fs_mkdir", args.clone()).await.unwrap();
    assert_eq!(
        (intent.level, intent.shows.as_str()),
        (Safety::Moderate, "new folder a/b/c")
    );
    assert_eq!(
        place.call("fs_mkdir", args.clone()).await.unwrap(),
        "made the folder a/b/c"
    );
    assert!(place.path("a/b/c").is_dir());
    assert_eq!(
        place.intent("fs_mkdir", args.clone()).await.unwrap().level,
        Safety::Safe
    );
    assert_eq!(
        place.call("fs_mkdir", args).await.unwrap(),
        "the folder a/b/c exists already"
    );
    place.write("file", "");
    let failure = place
        .call("fs_mkdir", json!({ "path": "file" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a file, so no folder"), "{failure}");
}
