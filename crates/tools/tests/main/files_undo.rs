//! Undoing changes: the trash and the journal.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

use lango_tools::files::{TrashError, TrashedKind, UndoError, UndoStorage};
use serde_json::json;

use crate::files::{FilesHarness, context};

fn mode(harness: &FilesHarness, path: &str) -> u32 {
    let metadata = harness.path(path).metadata().unwrap();
    metadata.permissions().mode() & 0o777
}

#[tokio::test]
async fn restores_deleted_files() {
    let harness = FilesHarness::new();
    harness.write("a/b.txt", "hello");
    std::fs::set_permissions(harness.path("a/b.txt"), Permissions::from_mode(0o640)).unwrap();
    let args = json!({ "path": "a/b.txt" });
    let intent = harness.intent("fs_delete", args.clone()).await.unwrap();
    assert_eq!(intent.shows, "to the trash: a/b.txt (5 bytes)");
    assert_eq!(
        (intent.subject.as_str(), intent.pattern.as_deref()),
        ("a/b.txt", Some("a/*"))
    );
    let output = harness.call("fs_delete", args).await.unwrap();
    assert!(
        output.starts_with("moved a/b.txt (5 bytes) to the trash as "),
        "{output}"
    );
    assert!(!harness.path("a/b.txt").exists());
    let trash = &harness.undo_storage.trash;
    let [trashed] = &trash.list()[..] else {
        panic!("{:?}", trash.list())
    };
    assert_eq!(
        (&trashed.path, trashed.kind, trashed.bytes),
        (&harness.path("a/b.txt"), TrashedKind::File, 5)
    );
    assert_eq!(
        (trashed.session.as_str(), trashed.turn.as_str()),
        ("s", "t1")
    );
    std::fs::remove_dir(harness.path("a")).unwrap();
    assert_eq!(trash.restore("b.txt").unwrap(), harness.path("a/b.txt"));
    assert_eq!(harness.read("a/b.txt"), "hello");
    assert_eq!(mode(&harness, "a/b.txt"), 0o640);
    assert!(trash.list().is_empty());
    assert!(matches!(
        trash.restore("b.txt"),
        Err(TrashError::NotFound(_))
    ));
}

#[tokio::test]
async fn restore_does_not_overwrite() {
    let harness = FilesHarness::new();
    for text in ["old", "new"] {
        harness.write("a.txt", text);
        harness.write("b/a.txt", text);
        harness
            .call("fs_delete", json!({ "path": "a.txt" }))
            .await
            .unwrap();
    }
    harness
        .call("fs_delete", json!({ "path": "b/a.txt" }))
        .await
        .unwrap();
    let trash = &harness.undo_storage.trash;
    assert!(matches!(
        trash.restore("a.txt"),
        Err(TrashError::Ambiguous { .. })
    ));
    trash.restore("b/a.txt").unwrap();
    trash.restore("work/a.txt").unwrap();
    assert_eq!(harness.read("a.txt"), "new");
    assert!(matches!(
        trash.restore("work/a.txt"),
        Err(TrashError::Occupied(_))
    ));
    assert_eq!(
        (harness.read("a.txt"), trash.list().len()),
        ("new".to_owned(), 1)
    );
    assert_eq!(trash.empty(Some(trash.list()[0].at)), 0);
    assert_eq!(trash.empty(None), 1);
    assert!(trash.list().is_empty());
}

#[tokio::test]
async fn deletes_folders_and_links() {
    let harness = FilesHarness::new();
    harness.write("full/a.txt", "12");
    harness.write("full/sub/b.txt", "345");
    symlink("full", harness.path("link")).unwrap();
    let failure = harness
        .call("fs_delete", json!({ "path": "full" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("2 files and 1 folder; delete it with recursive=true"),
        "{failure}"
    );
    harness
        .call("fs_delete", json!({ "path": "link" }))
        .await
        .unwrap();
    assert!(harness.path("full/a.txt").exists() && !harness.path("link").is_symlink());
    let intent = harness
        .intent("fs_delete", json!({ "path": "full", "recursive": true }))
        .await
        .unwrap();
    assert_eq!(
        intent.shows,
        "to the trash: full/ (2 files and 1 folder, 5 bytes)"
    );
    std::fs::set_permissions(harness.path("full/sub"), Permissions::from_mode(0o555)).unwrap();
    harness
        .call("fs_delete", json!({ "path": "full", "recursive": true }))
        .await
        .unwrap();
    for path in [".", "a/..", harness.root().to_str().unwrap()] {
        let failure = harness
            .call("fs_delete", json!({ "path": path, "recursive": true }))
            .await
            .unwrap_err();
        assert!(failure.contains("the workspace itself"), "{failure}");
    }
    assert_eq!(harness.undo_storage.trash.empty(None), 2);
}

#[tokio::test]
async fn without_trash_rejects_deletes_but_allows_writes() {
    let harness = FilesHarness::without_data();
    harness
        .call("fs_write", json!({ "path": "a.txt", "content": "x" }))
        .await
        .unwrap();
    let failure = harness
        .intent("fs_delete", json!({ "path": "a.txt" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("no data folder for its trash"),
        "{failure}"
    );
    assert!(
        harness
            .call("fs_delete", json!({ "path": "a.txt" }))
            .await
            .is_err()
    );
    assert_eq!(harness.read("a.txt"), "x");
    assert!(matches!(
        harness.undo_storage.journal.undo_last(&harness.root()),
        Err(UndoError::NoJournal)
    ));
    harness
        .undo_storage
        .journal
        .record_command(&context("t"), &harness.root(), "true");
}

#[tokio::test]
async fn undoes_a_whole_turn() {
    let harness = FilesHarness::new();
    harness.write("old.txt", "one\n");
    harness.write("gone.txt", "still\n");
    std::fs::set_permissions(harness.path("old.txt"), Permissions::from_mode(0o600)).unwrap();
    harness
        .call("fs_write", json!({ "path": "old.txt", "content": "two\n" }))
        .await
        .unwrap();
    let edit = json!({ "path": "old.txt", "old_text": "two", "new_text": "three" });
    harness.call("fs_edit", edit).await.unwrap();
    harness
        .call(
            "fs_write",
            json!({ "path": "new/deep/file.txt", "content": "x" }),
        )
        .await
        .unwrap();
    harness
        .call("fs_mkdir", json!({ "path": "made/here" }))
        .await
        .unwrap();
    harness
        .call("fs_delete", json!({ "path": "gone.txt" }))
        .await
        .unwrap();
    let journal = &harness.undo_storage.journal;
    journal.record_command(&context("t1"), &harness.root(), "make all");
    let plan = journal.preview_last(&harness.root()).unwrap();
    let report = journal.undo_last(&harness.root()).unwrap();
    assert_eq!((report.turn.as_str(), report.skipped.len()), ("t1", 0));
    let paths = [
        "gone.txt",
        "made/here",
        "made",
        "new/deep/file.txt",
        "new/deep",
        "new",
        "old.txt",
    ];
    assert_eq!(report.restored, paths);
    assert_eq!(report.commands, ["make all"]);
    assert_eq!(
        (plan.restored.len(), plan.commands),
        (paths.len(), report.commands)
    );
    assert_eq!(
        (harness.read("old.txt"), harness.read("gone.txt")),
        ("one\n".to_owned(), "still\n".to_owned())
    );
    assert!(!harness.path("new").exists() && !harness.path("made").exists());
    assert_eq!(mode(&harness, "old.txt"), 0o600);
    assert!(matches!(
        journal.undo_last(&harness.root()),
        Err(UndoError::NothingToUndo)
    ));
}

#[tokio::test]
async fn undoes_turns_newest_first() {
    let harness = FilesHarness::new();
    for turn in ["t1", "t2", "t3"] {
        harness
            .call_in(
                turn,
                "fs_write",
                json!({ "path": "a.txt", "content": turn }),
            )
            .await
            .unwrap();
    }
    let journal = &harness.undo_storage.journal;
    journal.record_command(&context("t4"), &harness.path("sub"), "only a command");
    let other_folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        journal.undo_last(other_folder.path()),
        Err(UndoError::NothingToUndo)
    ));
    // A turn that only ran commands is not skipped in favor of an older one.
    for (turn, text) in [
        ("t4", Some("t3")),
        ("t3", Some("t2")),
        ("t2", Some("t1")),
        ("t1", None),
    ] {
        assert_eq!(journal.undo_last(&harness.root()).unwrap().turn, turn);
        assert_eq!(
            std::fs::read_to_string(harness.path("a.txt"))
                .ok()
                .as_deref(),
            text
        );
    }
}

#[tokio::test]
async fn skips_paths_changed_since() {
    let harness = FilesHarness::new();
    harness.write("a.txt", "one");
    harness.write("b.txt", "one");
    harness.write("c.txt", "one");
    for path in ["a.txt", "b.txt", "c.txt"] {
        harness
            .call("fs_write", json!({ "path": path, "content": "two" }))
            .await
            .unwrap();
    }
    harness
        .call(
            "fs_write",
            json!({ "path": "folder/new.txt", "content": "x" }),
        )
        .await
        .unwrap();
    harness.write("a.txt", "mine");
    harness.write("folder/mine.txt", "mine");
    std::fs::remove_file(harness.path("c.txt")).unwrap();
    symlink("a.txt", harness.path("c.txt")).unwrap();
    let report = harness
        .undo_storage
        .journal
        .undo_last(&harness.root())
        .unwrap();
    assert_eq!(report.restored, ["folder/new.txt", "b.txt"]);
    let skipped: Vec<(&str, &str)> = report
        .skipped
        .iter()
        .map(|(path, reason)| (path.as_str(), reason.as_str()))
        .collect();
    let expected = [
        ("folder", "the folder is not empty"),
        ("c.txt", "it is a link now"),
        ("a.txt", "it was changed since"),
    ];
    assert_eq!(skipped, expected);
    assert_eq!(
        (harness.read("a.txt"), harness.read("b.txt")),
        ("mine".to_owned(), "one".to_owned())
    );
}

#[tokio::test]
async fn keeps_recent_turns_readable_only_by_the_owner() {
    let harness = FilesHarness::new();
    for turn in 0..55 {
        let args = json!({ "path": "a.txt", "content": format!("{turn}") });
        harness
            .call_in(&format!("t{turn}"), "fs_write", args)
            .await
            .unwrap();
    }
    let folder = harness.folder.path().join("data/undo");
    let turns: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(turns.len(), 50);
    for turn in turns {
        assert_eq!(turn.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        for file in std::fs::read_dir(turn).unwrap() {
            assert_eq!(
                file.unwrap().metadata().unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }
    let again = UndoStorage::in_folder(Some(&harness.folder.path().join("data")));
    assert_eq!(
        again.journal.undo_last(&harness.root()).unwrap().turn,
        "t54"
    );
    assert_eq!(harness.read("a.txt"), "53");
}

#[tokio::test]
async fn cannot_undo_writes_of_huge_files() {
    let harness = FilesHarness::new();
    let file = std::fs::File::create(harness.path("huge")).unwrap();
    file.set_len(65 * 1024 * 1024).unwrap();
    let args = json!({ "path": "huge", "content": "small" });
    let intent = harness.intent("fs_write", args.clone()).await.unwrap();
    assert!(
        intent.shows.contains("too large to be restored"),
        "{}",
        intent.shows
    );
    harness.call("fs_write", args).await.unwrap();
    let report = harness
        .undo_storage
        .journal
        .undo_last(&harness.root())
        .unwrap();
    assert_eq!(
        report.skipped,
        [(
            "huge".to_owned(),
            "its old content was too large to save".to_owned()
        )]
    );
    assert_eq!(harness.read("huge"), "small");
}
