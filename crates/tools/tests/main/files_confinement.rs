//! Nothing outside the workspace is reached, whatever the path looks like and whoever changes it meanwhile.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};

use crate::files::{FilesHarness, TOOL_NAMES};
use lango_tools::files::Workspace;

/// Arguments with which each tool could work.
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
    let place = FilesHarness::new();
    let outside = place.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.txt"), "secret\n").unwrap();
    symlink(&outside, place.path("absolute")).unwrap();
    symlink("../outside", place.path("relative")).unwrap();
    symlink("/proc/self/root", place.path("magic")).unwrap();
    symlink(".lango", place.path("own")).unwrap();
    place.write(".lango/a.txt", "secret\n");
    place
}

#[tokio::test]
async fn no_path_leads_out() {
    let place = harness_with_outside();
    let absolute = place
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
            let failure = place.call(name, args.clone()).await;
            assert!(failure.is_err(), "{name} {path:?}: {failure:?}");
            if place.tool(name).has_intent() {
                assert!(place.intent(name, args).await.is_err(), "{name} {path:?}");
            }
        }
    }
    assert_eq!(
        std::fs::read_to_string(place.folder.path().join("outside/a.txt")).unwrap(),
        "secret\n"
    );
    assert_eq!(
        std::fs::read_dir(place.folder.path().join("outside"))
            .unwrap()
            .count(),
        1
    );
    assert_eq!(place.read(".lango/a.txt"), "secret\n");
    assert_eq!(std::fs::read_dir(place.path(".lango")).unwrap().count(), 1);
}

#[tokio::test]
async fn failures_name_the_workspace() {
    let place = harness_with_outside();
    let root = place.root().display().to_string();
    for path in ["..", "/etc/passwd", "~/x", "", "relative/a.txt"] {
        let failure = place
            .call("fs_read", json!({ "path": path }))
            .await
            .unwrap_err();
        assert!(failure.contains(&root), "{path}: {failure}");
    }
}

#[tokio::test]
async fn links_that_stay_inside_are_followed() {
    let place = FilesHarness::new();
    place.write("real/a.txt", "hello\n");
    symlink("real/a.txt", place.path("link")).unwrap();
    symlink(place.path("real"), place.path("absolute")).unwrap();
    symlink("nowhere", place.path("dangling")).unwrap();
    assert_eq!(
        place
            .call("fs_read", json!({ "path": "link" }))
            .await
            .unwrap(),
        "hello\n"
    );
    assert_eq!(
        place
            .call("fs_read", json!({ "path": "absolute/a.txt" }))
            .await
            .unwrap(),
        "hello\n"
    );
    place
        .call("fs_write", json!({ "path": "link", "content": "new\n" }))
        .await
        .unwrap();
    place
        .call(
            "fs_write",
            json!({ "path": "absolute/b.txt", "content": "b\n" }),
        )
        .await
        .unwrap();
    assert!(place.path("link").is_symlink());
    assert_eq!(
        (place.read("real/a.txt"), place.read("real/b.txt")),
        ("new\n".to_owned(), "b\n".to_owned())
    );
    let failure = place
        .call("fs_write", json!({ "path": "dangling", "content": "" }))
        .await
        .unwrap_err();
    assert!(failure.contains("is a link to `nowhere`"), "{failure}");
}

#[tokio::test]
async fn pipes_and_sockets_keep_nobody_waiting() {
    let place = FilesHarness::new();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    std::fs::create_dir(place.path("trap")).unwrap();
    std::process::Command::new("mkfifo")
        .arg(place.path("trap/.gitignore"))
        .status()
        .unwrap();
    place.write("trap/a.txt", "x");
    for path in ["pipe", "socket"] {
        for name in ["fs_read", "fs_write", "fs_edit"] {
            let failure = place.call(name, args(name, path)).await.unwrap_err();
            assert!(
                failure.contains("no regular file"),
                "{name} {path}: {failure}"
            );
        }
        assert!(place.call("fs_stat", json!({ "path": path })).await.is_ok());
    }
    assert!(
        place
            .call("fs_search", json!({ "pattern": "x" }))
            .await
            .unwrap()
            .starts_with("nothing found")
    );
}

#[tokio::test]
async fn folders_that_hold_lango_itself_are_not_deleted() {
    let place = FilesHarness::new();
    let root = place.root();
    std::fs::create_dir_all(root.join("home/lango/data")).unwrap();
    let data = root.join("home/lango/data");
    let workspace = Workspace::open(&root, vec![data.clone()]).unwrap();
    let files = lango_tools::files::FileTools {
        workspace,
        undo_storage: place.undo_storage.clone(),
    };
    let tools = lango_tools::files::tools(files);
    let delete = tools.iter().find(|tool| tool.name == "fs_delete").unwrap();
    let args = json!({ "path": "home", "recursive": true });
    let failure = delete
        .call(crate::files::context("t"), args)
        .await
        .unwrap_err();
    assert!(failure.0.contains("folders of Lango itself"), "{failure}");
    assert!(data.exists());
}

#[test]
fn a_folder_for_commands_is_a_real_one() {
    let place = harness_with_outside();
    let workspace = Workspace::open(&place.root(), vec![place.path(".lango")]).unwrap();
    place.write("sub/a.txt", "");
    symlink("sub", place.path("inside")).unwrap();
    assert_eq!(workspace.resolve_folder(".").unwrap(), place.root());
    assert_eq!(
        workspace.resolve_folder("inside").unwrap(),
        place.path("sub")
    );
    for path in ["relative", "own", "..", "sub/a.txt", "nothing", "/"] {
        assert!(workspace.resolve_folder(path).is_err(), "{path}");
    }
}

/// Somebody swaps a folder with a link to the outside, over and over.
#[tokio::test]
async fn a_folder_that_turns_into_a_link_leads_nowhere() {
    let place = harness_with_outside();
    place.write("door/a.txt", "inside\n");
    let (door, link) = (place.path("door"), place.path("relative"));
    let is_over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_over);
    let swapping = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        }
    });
    for round in 0..400 {
        if let Ok(text) = place.call("fs_read", json!({ "path": "door/a.txt" })).await {
            assert!(!text.contains("secret"), "{text}");
        }
        let found = place
            .call("fs_search", json!({ "path": "door", "pattern": "secret" }))
            .await;
        assert!(!found.unwrap_or_default().contains("secret"));
        let path = format!("door/new{}.txt", round % 7);
        let _ = place
            .call(
                "fs_write",
                json!({ "path": path, "content": format!("{round}") }),
            )
            .await;
        let _ = place.call("fs_delete", json!({ "path": path })).await;
        let _ = place
            .call("fs_mkdir", json!({ "path": "door/sub/sub" }))
            .await;
    }
    is_over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    let outside = place.folder.path().join("outside");
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
