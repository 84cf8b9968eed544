//! No path reaches outside of the workspace, even if other programs change it concurrently.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};

use crate::files::{FilesHarness, TOOL_NAMES};
use lango_tools::files::Workspace;

/// Returns valid arguments for each tool.
fn args(name: &str, path: &str) -> Value {
    match name {
        "fs_search" => json!({ "path": path, "pattern": "secret" }),
        "fs_write" => json!({ "path": path, "content": "mine" }),
        "fs_edit" => json!({ "path": path, "old_text": "secret", "new_text": "mine" }),
        "fs_delete" => json!({ "path": path, "recursive": true }),
        _ => json!({ "path": path }),
    }
}

fn harness_with_outside() -> FilesHarness {
    let harness = FilesHarness::new();
    let outside = harness.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.txt"), "secret\n").unwrap();
    symlink(&outside, harness.path("absolute")).unwrap();
    symlink("../outside", harness.path("relative")).unwrap();
    symlink("/proc/self/root", harness.path("magic")).unwrap();
    symlink(".lango", harness.path("own")).unwrap();
    harness.write(".lango/a.txt", "secret\n");
    harness
}

#[tokio::test]
async fn rejects_paths_that_lead_outside() {
    let harness = harness_with_outside();
    let absolute = harness
        .folder
        .path()
        .join("outside/a.txt")
        .display()
        .to_string();
    let magic = format!("magic{absolute}");
    let paths = [
        "../outside/a.txt",
        "a/../../outside/a.txt",
        absolute.as_str(),
        "absolute/a.txt",
        "relative/a.txt",
        magic.as_str(),
        "~/a.txt",
        "~",
        "/",
        "a\0b",
        "",
        ".lango/a.txt",
        "own/a.txt",
        ".lango/new.txt",
        "own/new/new.txt",
        "absolute/new/new.txt",
    ];
    for name in TOOL_NAMES {
        for path in paths {
            let args = args(name, path);
            let failure = harness.call(name, args.clone()).await;
            assert!(failure.is_err(), "{name} {path:?}: {failure:?}");
            if harness.tool(name).has_intent() {
                assert!(harness.intent(name, args).await.is_err(), "{name} {path:?}");
            }
        }
    }
    assert_eq!(
        std::fs::read_to_string(harness.folder.path().join("outside/a.txt")).unwrap(),
        "secret\n"
    );
    assert_eq!(
        std::fs::read_dir(harness.folder.path().join("outside"))
            .unwrap()
            .count(),
        1
    );
    assert_eq!(harness.read(".lango/a.txt"), "secret\n");
    assert_eq!(
        std::fs::read_dir(harness.path(".lango")).unwrap().count(),
        1
    );
}

#[tokio::test]
async fn errors_name_the_workspace() {
    let harness = harness_with_outside();
    let root = harness.root().display().to_string();
    for path in ["..", "/etc/passwd", "~/x", "", "relative/a.txt"] {
        let failure = harness
            .call("fs_read", json!({ "path": path }))
            .await
            .unwrap_err();
        assert!(failure.contains(&root), "{path}: {failure}");
    }
}

#[tokio::test]
async fn follows_links_that_stay_inside() {
    let harness = FilesHarness::new();
    harness.write("real/a.txt", "hello\n");
    symlink("real/a.txt", harness.path("link")).unwrap();
    symlink(harness.path("real"), harness.path("absolute")).unwrap();
    symlink("nowhere", harness.path("dangling")).unwrap();
    assert_eq!(
        harness
            .call("fs_read", json!({ "path": "link" }))
            .await
            .unwrap(),
        "hello\n"
    );
    assert_eq!(
        harness
            .call("fs_read", json!({ "path": "absolute/a.txt" }))
            .await
            .unwrap(),
        "hello\n"
    );
    harness
        .call("fs_write", json!({ "path": "link", "content": "new\n" }))
        .await
        .unwrap();
    harness
        .call(
            "fs_write",
            json!({ "path": "absolute/b.txt", "content": "b\n" }),
        )
        .await
        .unwrap();
    assert!(harness.path("link").is_symlink());
    assert_eq!(
        (harness.read("real/a.txt"), harness.read("real/b.txt")),
        ("new\n".to_owned(), "b\n".to_owned())
    );
    let failure = harness
        .call("fs_write", json!({ "path": "dangling", "content": "" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a link to `nowhere`"), "{failure}");
}

#[tokio::test]
async fn does_not_block_on_pipes_and_sockets() {
    let harness = FilesHarness::new();
    let created = std::process::Command::new("mkfifo")
        .arg(harness.path("pipe"))
        .status()
        .unwrap();
    assert!(created.success());
    let _socket = std::os::unix::net::UnixListener::bind(harness.path("socket")).unwrap();
    std::fs::create_dir(harness.path("trap")).unwrap();
    std::process::Command::new("mkfifo")
        .arg(harness.path("trap/.gitignore"))
        .status()
        .unwrap();
    harness.write("trap/a.txt", "x");
    for path in ["pipe", "socket"] {
        for name in ["fs_read", "fs_write", "fs_edit"] {
            let failure = harness.call(name, args(name, path)).await.unwrap_err();
            assert!(
                failure.contains("not a regular file"),
                "{name} {path}: {failure}"
            );
        }
        assert!(
            harness
                .call("fs_stat", json!({ "path": path }))
                .await
                .is_ok()
        );
    }
    assert!(
        harness
            .call("fs_search", json!({ "pattern": "x" }))
            .await
            .unwrap()
            .starts_with("no matches")
    );
}

#[tokio::test]
async fn rejects_deleting_folders_that_contain_lango() {
    let harness = FilesHarness::new();
    let root = harness.root();
    std::fs::create_dir_all(root.join("home/lango/data")).unwrap();
    let data = root.join("home/lango/data");
    let workspace = Workspace::open(&root, vec![data.clone()]).unwrap();
    let files = lango_tools::files::FileTools {
        workspace,
        undo_storage: harness.undo_storage.clone(),
    };
    let tools = lango_tools::files::tools(files);
    let delete = tools.iter().find(|tool| tool.name == "fs_delete").unwrap();
    let args = json!({ "path": "home", "recursive": true });
    let failure = delete
        .call(crate::files::context("t"), args)
        .await
        .unwrap_err();
    assert!(
        failure.0.contains("folders that belong to Lango"),
        "{failure}"
    );
    assert!(data.exists());
}

#[test]
fn resolves_real_folders_for_commands() {
    let harness = harness_with_outside();
    let workspace = Workspace::open(&harness.root(), vec![harness.path(".lango")]).unwrap();
    harness.write("sub/a.txt", "");
    symlink("sub", harness.path("inside")).unwrap();
    assert_eq!(workspace.resolve_folder(".").unwrap(), harness.root());
    assert_eq!(
        workspace.resolve_folder("inside").unwrap(),
        harness.path("sub")
    );
    for path in ["relative", "own", "..", "sub/a.txt", "nothing", "/"] {
        assert!(workspace.resolve_folder(path).is_err(), "{path}");
    }
}

/// Another thread repeatedly swaps a folder with a link to the outside.
#[tokio::test]
async fn a_folder_swapped_with_a_link_does_not_lead_outside() {
    let harness = harness_with_outside();
    harness.write("door/a.txt", "inside\n");
    let (door, link) = (harness.path("door"), harness.path("relative"));
    let is_finished = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_finished);
    let swapping = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        }
    });
    for round in 0..400 {
        if let Ok(text) = harness
            .call("fs_read", json!({ "path": "door/a.txt" }))
            .await
        {
            assert!(!text.contains("secret"), "{text}");
        }
        let found = harness
            .call("fs_search", json!({ "path": "door", "pattern": "secret" }))
            .await;
        assert!(!found.unwrap_or_default().contains("secret"));
        let path = format!("door/new{}.txt", round % 7);
        let _ = harness
            .call(
                "fs_write",
                json!({ "path": path, "content": format!("{round}") }),
            )
            .await;
        let _ = harness.call("fs_delete", json!({ "path": path })).await;
        let _ = harness
            .call("fs_mkdir", json!({ "path": "door/sub/sub" }))
            .await;
    }
    is_finished.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    let outside = harness.folder.path().join("outside");
    let names: Vec<_> = std::fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.txt"]);
    assert_eq!(
        std::fs::read_to_string(outside.join("a.txt")).unwrap(),
        "secret\n"
    );
}
