//! Files that make other programs run something are no ordinary files, whichever way they are reached.

use std::os::unix::fs::symlink;

use lango_domain::Safety;
use lango_tools::files::{Files, Limits, Workspace};
use serde_json::{Value, json};

use crate::files::{Place, context};

/// What a call of each tool says about a path.
fn calls(path: &str) -> [(&'static str, Value); 4] {
    [
        ("fs_write", json!({ "path": path, "content": "mine" })),
        ("fs_edit", json!({ "path": path, "old_text": "old", "new_text": "mine" })),
        ("fs_mkdir", json!({ "path": path })),
        ("fs_delete", json!({ "path": path, "recursive": true })),
    ]
}

async fn assert_dangerous(place: &Place, name: &str, args: Value, reason: &str) {
    let intent = place.intent(name, args.clone()).await.unwrap();
    assert_eq!(intent.level, Safety::Dangerous, "{name} {args}");
    assert!(
        intent.shows.starts_with("CAREFUL: ") && intent.shows.contains(reason),
        "{name}: {}",
        intent.shows
    );
    assert_eq!(intent.pattern, None, "{name} {args}");
}

/// B100
#[tokio::test]
async fn what_others_run_is_dangerous_to_make_to_change_and_to_delete() {
    for (path, reason) in [
        (".git/config", "git runs"),
        ("sub/.GIT/hooks/pre-commit", "git runs"),
        (".gitattributes", "git runs"),
        (".envrc", "shells run"),
        (".bashrc", "shells run"),
        (".vscode/tasks.json", "editors run"),
        (".github/workflows/ci.yml", "a server runs"),
        (".gitlab-ci.yml", "a server runs"),
        ("lango.toml", "Lango itself"),
        ("AGENTS.md", "instructions"),
        ("sub/claude.md", "instructions"),
        (".npmrc", "package tools"),
        (".cargo/config.toml", "package tools"),
        (".pre-commit-config.yaml", "hooks of git"),
    ] {
        let place = Place::new();
        let [write, edit, make, delete] = calls(path);
        for (name, args) in [write.clone(), make] {
            assert_dangerous(&place, name, args, reason).await;
        }
        place.put(path, "old");
        for (name, args) in [write, edit, delete] {
            assert_dangerous(&place, name, args, reason).await;
        }
        let same = json!({ "path": path, "content": "old" });
        assert_eq!(place.intent("fs_write", same).await.unwrap().level, Safety::Safe, "nothing changes");
    }
}

/// B100: the user's ordinary work.
#[tokio::test]
async fn build_files_stay_moderate() {
    for path in ["Makefile", "package.json", "Cargo.toml", "build.rs", "src/hooks/main.rs", "config/a.txt"] {
        let place = Place::new();
        let [write, edit, make, delete] = calls(path);
        for (name, args) in [write.clone(), make] {
            assert_eq!(place.intent(name, args).await.unwrap().level, Safety::Moderate, "{name} {path}");
        }
        place.put(path, "old");
        for (name, args) in [write, edit, delete] {
            assert_eq!(place.intent(name, args).await.unwrap().level, Safety::Moderate, "{name} {path}");
        }
    }
}

/// B100
#[tokio::test]
async fn a_detour_leads_to_the_same_question() {
    let place = Place::new();
    place.put(".git/config", "old");
    place.put("a/b.txt", "old");
    place.put("shared/tasks.json", "old");
    symlink(".git", place.path("data")).unwrap();
    symlink(place.path(".git"), place.path("a/absolute")).unwrap();
    symlink(".git/config", place.path("notes.txt")).unwrap();
    symlink("shared", place.path(".vscode")).unwrap();
    symlink("a/../setup/env", place.path(".envrc")).unwrap();
    let absolute = place.path(".git/config").display().to_string();
    for path in [
        "data/config",
        "data/new/file",
        "a/absolute/config",
        "notes.txt",
        "a/../.git/config",
        "./.git//config",
        absolute.as_str(),
        ".git /config",
        ".Git/new",
        // Editors find it as `.vscode/tasks.json`, under either name.
        ".vscode/tasks.json",
        "shared/tasks.json",
        "shared/new.json",
        // A link is there before what it leads to.
        "setup/env",
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&place, name, args, "run").await;
    }
    let [(name, args), ..] = calls("a/b.txt");
    assert_eq!(place.intent(name, args).await.unwrap().level, Safety::Moderate);
}

/// B100
#[tokio::test]
async fn a_folder_that_git_takes_for_a_repository_is_one() {
    let place = Place::new();
    let becoming = ["x/config", "x/hooks/run", "x/objects", "x/commondir", "x/config.worktree"];
    for path in becoming {
        let [(name, args), ..] = calls(path);
        assert_eq!(place.intent(name, args).await.unwrap().level, Safety::Moderate, "{path}");
    }
    let [(name, args), ..] = calls("x/HEAD");
    assert_dangerous(&place, name, args, "repository").await;
    place.put("x/HEAD", "ref: refs/heads/main\n");
    for path in becoming {
        for (name, args) in [calls(path)[0].clone(), calls(path)[2].clone()] {
            assert_dangerous(&place, name, args, "repository").await;
        }
    }
    let [(name, args), ..] = calls("x/readme.txt");
    assert_eq!(place.intent(name, args).await.unwrap().level, Safety::Moderate);
    let [.., (name, args)] = calls("x");
    assert_dangerous(&place, name, args, "repository").await;
}

/// B100
#[tokio::test]
async fn a_folder_goes_with_what_is_in_it() {
    let place = Place::new();
    place.put("old/deep/down/.git/config", "x");
    place.put("plain/deep/down/a.txt", "x");
    let [.., (name, args)] = calls("old");
    assert_dangerous(&place, name, args, "old/deep/down/.git").await;
    let [.., (name, args)] = calls("plain");
    assert_eq!(place.intent(name, args).await.unwrap().level, Safety::Moderate);
}

/// B100
#[tokio::test]
async fn what_the_team_is_made_of_is_dangerous_wherever_it_lies() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("team/own")).unwrap();
    let instructions = vec![place.path("team/own"), place.path("settings.toml")];
    let limits = Limits { hidden: Vec::new(), closed: Box::new(|_| false), instructions };
    let workspace = Workspace::open_with(&place.root(), limits).unwrap();
    let tools = lango_tools::files::tools(Files { workspace, keeping: place.keeping.clone() });
    let write = tools.iter().find(|tool| tool.name == "fs_write").unwrap();
    for (path, level) in [
        ("team/own/planner.md", Safety::Dangerous),
        ("settings.toml", Safety::Dangerous),
        ("team/notes.md", Safety::Moderate),
    ] {
        let [(_, args), ..] = calls(path);
        assert_eq!(write.intent(context("t1"), args).await.unwrap().level, level, "{path}");
    }
    let delete = tools.iter().find(|tool| tool.name == "fs_delete").unwrap();
    let [.., (_, args)] = calls("team");
    assert_eq!(delete.intent(context("t1"), args).await.unwrap().level, Safety::Dangerous);
}
