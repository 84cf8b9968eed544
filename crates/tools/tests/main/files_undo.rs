//! Taking changes back: the trash and the journal.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

use lango_tools::files::{TrashError, TrashedKind, UndoError, UndoStorage};
use serde_json::json;

use crate::files::{FilesHarness, context};

#[tokio::test]
async fn what_is_deleted_can_be_restored() {
    let place = FilesHarness::new();
    place.write("a/b.txt", "hello");
    std::fs::set_permissions(place.path("a/b.txt"), Permissions::from_mode(0o640)).unwrap();
    let args = json!({ "path": "a/b.txt" });
    let intent = place.intent("fs_delete", args.clone()).await.unwrap();
    assert_eq!(intent.shows, "to the trash: a/b.txt (5 bytes)");
    assert_eq!(
        (intent.subject.as_str(), intent.pattern.as_deref()),
        ("a/b.txt", Some("a/*"))
    );
    let said = place.call("fs_delete", args).await.unwrap();
    assert!(
        said.starts_with("moved a/b.txt (5 bytes) to the trash as "),
        "{said}"
    );
    assert!(!place.path("a/b.txt").exists());
    let trash = &place.undo_storage.trash;
    let [trashed] = &trash.list()[..] else {
        panic!("{:?}", trash.list())
    };
    assert_eq!(
        (&trashed.path, trashed.kind, trashed.bytes),
        (&place.path("a/b.txt"), TrashedKind::File, 5)
    );
    assert_eq!(
        (trashed.session.as_str(), trashed.turn.as_str()),
        ("s", "t1")
    );
    std::fs::remove_dir(place.path("a")).unwrap();
    assert_eq!(trash.restore("b.txt").unwrap(), place.path("a/b.txt"));
    assert_eq!(place.read("a/b.txt"), "hello");
    assert_eq!(
        place
            .path("a/b.txt")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o640
    );
    assert!(trash.list().is_empty());
    assert!(matches!(
        trash.restore("b.txt"),
        Err(TrashError::NotFound(_))
    ));
}

#[tokio::test]
async fn nothing_is_restored_over_something_else() {
    let place = FilesHarness::new();
    for text in ["old", "new"] {
        place.write("a.txt", text);
        place.write("b/a.txt", text);
        place
            .call("fs_delete", json!({ "path": "a.txt" }))
            .await
            .unwrap();
    }
    place
        .call("fs_delete", json!({ "path": "b/a.txt" }))
        .await
        .unwrap();
    let trash = &place.undo_storage.trash;
    assert!(matches!(
        trash.restore("a.txt"),
        Err(TrashError::Ambiguous { .. })
    ));
    trash.restore("b/a.txt").unwrap();
    trash.restore("work/a.txt").unwrap();
    assert_eq!(place.read("a.txt"), "new");
    assert!(matches!(
        trash.restore("work/a.txt"),
        Err(TrashError::Occupied(_))
    ));
    assert_eq!(
        (place.read("a.txt"), trash.list().len()),
        ("new".to_owned(), 1)
    );
    assert_eq!(trash.empty(Some(trash.list()[0].at)), 0);
    assert_eq!(trash.empty(None), 1);
    assert!(trash.list().is_empty());
}

#[tokio::test]
async fn folders_and_links_are_deleted_with_care() {
    let place = FilesHarness::new();
    place.write("full/a.txt", "12");
    place.write("full/sub/b.txt", "345");
    symlink("full", place.path("link")).unwrap();
    let failure = place
        .call("fs_delete", json!({ "path": "full" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("2 files and 1 folder; delete it with recursive=true"),
        "{failure}"
    );
    place
        .call("fs_delete", json!({ "path": "link" }))
        .await
        .unwrap();
    assert!(place.path("full/a.txt").exists() && !place.path("link").is_symlink());
    let intent = place
        .intent("fs_delete", json!({ "path": "full", "recursive": true }))
        .await
        .unwrap();
    assert_eq!(
        intent.shows,
        "to the trash: full/ (2 files and 1 folder, 5 bytes)"
    );
    std::fs::set_permissions(place.path("full/sub"), Permissions::from_mode(0o555)).unwrap();
    place
        .call("fs_delete", json!({ "path": "full", "recursive": true }))
        .await
        .unwrap();
    for path in [".", "a/..", place.root().to_str().unwrap()] {
        let failure = place
            .call("fs_delete", json!({ "path": path, "recursive": true }))
            .await
            .unwrap_err();
        assert!(failure.contains("the workspace itself"), "{failure}");
    }
    assert_eq!(place.undo_storage.trash.empty(None), 2);
}

#[tokio::test]
async fn without_a_trash_nothing_is_deleted_but_changes_work() {
    let place = FilesHarness::without_data();
    place
        .call("fs_write", json!({ "path": "a.txt", "content": "x" }))
        .await
        .unwrap();
    let failure = place
        .intent("fs_delete", json!({ "path": "a.txt" }))
        .await
        .unwrap_err();
    assert!(failure.contains("nothing can be deleted here"), "{failure}");
    assert!(
        place
            .call("fs_delete", json!({ "path": "a.txt" }))
            .await
            .is_err()
    );
    assert_eq!(place.read("a.txt"), "x");
    assert!(matches!(
        place.undo_storage.journal.undo_last(&place.root()),
        Err(UndoError::NoJournal)
    ));
    place
        .undo_storage
        .journal
        .record_command(&context("t"), &place.root(), "true");
}

#[tokio::test]
async fn a_turn_is_taken_back_as_a_whole() {
    let place = FilesHarness::new();
    place.write("old.txt", "one\n");
    place.write("gone.txt", "still\n");
    std::fs::set_permissions(place.path("old.txt"), Permissions::from_mode(0o600)).unwrap();
    place
        .call("fs_write", json!({ "path": "old.txt", "content": "two\n" }))
        .await
        .unwrap();
    let edit = json!({ "path": "old.txt", "old_text": "two", "new_text": "three" });
    place.call("fs_edit", edit).await.unwrap();
    place
        .call(
            "fs_write",
            json!({ "path": "new/deep/file.txt", "content": "x" }),
        )
        .await
        .unwrap();
    place
        .call("fs_mkdir", json!({ "path": "made/here" }))
        .await
        .unwrap();
    place
        .call("fs_delete", json!({ "path": "gone.txt" }))
        .await
        .unwrap();
    let journal = &place.undo_storage.journal;
    journal.record_command(&context("t1"), &place.root(), "make all");
    let plan = journal.preview_last(&place.root()).unwrap();
    let undone = journal.undo_last(&place.root()).unwrap();
    assert_eq!((undone.turn.as_str(), undone.skipped.len()), ("t1", 0));
    let paths = [
        "gone.txt",
        "made/here",
        "made",
        "new/deep/file.txt",
        "new/deep",
        "new",
        "old.txt",
    ];
    assert_eq!(undone.restored, paths);
    assert_eq!(undone.commands, ["make all"]);
    assert_eq!(
        (plan.restored.len(), plan.commands),
        (paths.len(), undone.commands)
    );
    assert_eq!(
        (place.read("old.txt"), place.read("gone.txt")),
        ("one\n".to_owned(), "still\n".to_owned())
    );
    assert!(!place.path("new").exists() && !place.path("made").exists());
    assert_eq!(
        place
            .path("old.txt")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert!(matches!(
        journal.undo_last(&place.root()),
        Err(UndoError::NothingToUndo)
    ));
}

#[tokio::test]
async fn turns_are_taken_back_one_after_the_other() {
    let place = FilesHarness::new();
    for turn in ["t1", "t2", "t3"] {
        place
            .call_in(
                turn,
                "fs_write",
                json!({ "path": "a.txt", "content": turn }),
            )
            .await
            .unwrap();
    }
    let journal = &place.undo_storage.journal;
    journal.record_command(&context("t4"), &place.path("sub"), "only a command");
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(matches!(
        journal.undo_last(elsewhere.path()),
        Err(UndoError::NothingToUndo)
    ));
    // A turn that only ran commands is not passed over: nothing older is taken back in its place.
    for (turn, text) in [
        ("t4", Some("t3")),
        ("t3", Some("t2")),
        ("t2", Some("t1")),
        ("t1", None),
    ] {
        assert_eq!(journal.undo_last(&place.root()).unwrap().turn, turn);
        assert_eq!(
            std::fs::read_to_string(place.path("a.txt")).ok().as_deref(),
            text
        );
    }
}

#[tokio::test]
async fn what_was_changed_since_is_left() {
    let place = FilesHarness::new();
    place.write("a.txt", "one");
    place.write("b.txt", "one");
    place.write("c.txt", "one");
    for path in ["a.txt", "b.txt", "c.txt"] {
        place
            .call("fs_write", json!({ "path": path, "content": "two" }))
            .await
            .unwrap();
    }
    place
        .call(
            "fs_write",
            json!({ "path": "folder/new.txt", "content": "x" }),
        )
        .await
        .unwrap();
    place.write("a.txt", "mine");
    place.write("folder/mine.txt", "mine");
    std::fs::remove_file(place.path("c.txt")).unwrap();
    symlink("a.txt", place.path("c.txt")).unwrap();
    let undone = place.undo_storage.journal.undo_last(&place.root()).unwrap();
    assert_eq!(undone.restored, ["folder/new.txt", "b.txt"]);
    let left: Vec<(&str, &str)> = undone
        .skipped
        .iter()
        .map(|(path, why)| (path.as_str(), why.as_str()))
        .collect();
    let expected = [
        ("folder", "the folder is not empty"),
        ("c.txt", "a link is there now"),
        ("a.txt", "it was changed since"),
    ];
    assert_eq!(left, expected);
    assert_eq!(
        (place.read("a.txt"), place.read("b.txt")),
        ("mine".to_owned(), "one".to_owned())
    );
}

#[tokio::test]
async fn only_recent_turns_are_kept_and_nobody_else_reads_them() {
    let place = FilesHarness::new();
    for turn in 0..55 {
        let args = json!({ "path": "a.txt", "content": format!("{turn}") });
        place
            .call_in(&format!("t{turn}"), "fs_write", args)
            .await
            .unwrap();
    }
    let folder = place.folder.path().join("data/undo");
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
    let again = UndoStorage::in_folder(Some(&place.folder.path().join("data")));
    assert_eq!(again.journal.undo_last(&place.root()).unwrap().turn, "t54");
    assert_eq!(place.read("a.txt"), "53");
}

#[tokio::test]
async fn a_huge_file_is_written_but_cannot_be_taken_back() {
    let place = FilesHarness::new();
    let file = std::fs::File::create(place.path("huge")).unwrap();
    file.set_len(65 * 1024 * 1024).unwrap();
    let args = json!({ "path": "huge", "content": "small" });
    let intent = place.intent("fs_write", args.clone()).await.unwrap();
    assert!(
        intent.shows.contains("too large to be restored"),
        "{}",
        intent.shows
    );
    place.call("fs_write", args).await.unwrap();
    let undone = place.undo_storage.journal.undo_last(&place.root()).unwrap();
    assert_eq!(
        undone.skipped,
        [("huge".to_owned(), "it was too large to be kept".to_owned())]
    );
    assert_eq!(place.read("huge"), "small");
}
