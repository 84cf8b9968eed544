//! Files that make other programs run something are no ordinary files, whichever way they are reached.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use lango_domain::Safety;
use lango_tools::files::{FileTools, Workspace, WorkspaceLimits};
use serde_json::{Value, json};

use crate::files::{FilesHarness, context};

/// What a call of each tool says about a path.
fn calls(path: &str) -> [(&'static str, Value); 4] {
    [
        ("fs_write", json!({ "path": path, "content": "mine" })),
        (
            "fs_edit",
            json!({ "path": path, "old_text": "old", "new_text": "mine" }),
        ),
        ("fs_mkdir", json!({ "path": path })),
        ("fs_delete", json!({ "path": path, "recursive": true })),
    ]
}

async fn assert_dangerous(place: &FilesHarness, name: &str, args: Value, reason: &str) {
    let intent = place.intent(name, args.clone()).await.unwrap();
    assert_eq!(intent.level, Safety::Dangerous, "{name} {args}");
    assert!(
        intent.shows.starts_with("CAREFUL: ") && intent.shows.contains(reason),
        "{name}: {}",
        intent.shows
    );
    assert_eq!(intent.pattern, None, "{name} {args}");
}

async fn assert_moderate(place: &FilesHarness, path: &str) {
    let [(name, args), ..] = calls(path);
    let intent = place.intent(name, args).await.unwrap();
    assert_eq!(intent.level, Safety::Moderate, "{path}: {}", intent.shows);
}

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = command
        .arg("-C")
        .arg(folder)
        .args(identity)
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn repository() -> FilesHarness {
    let place = FilesHarness::new();
    git(&place.root(), &["init", "-q"]);
    place
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
        let place = FilesHarness::new();
        let [write, edit, make, delete] = calls(path);
        for (name, args) in [write.clone(), make] {
            assert_dangerous(&place, name, args, reason).await;
        }
        place.write(path, "old");
        for (name, args) in [write, edit, delete] {
            assert_dangerous(&place, name, args, reason).await;
        }
        let same = json!({ "path": path, "content": "old" });
        assert_eq!(
            place.intent("fs_write", same).await.unwrap().level,
            Safety::Safe,
            "nothing changes"
        );
    }
}

/// B100: the user's ordinary work.
#[tokio::test]
async fn build_files_stay_moderate() {
    for path in [
        "Makefile",
        "package.json",
        "Cargo.toml",
        "build.rs",
        "src/hooks/main.rs",
        "config/a.txt",
    ] {
        let place = FilesHarness::new();
        let [write, edit, make, delete] = calls(path);
        for (name, args) in [write.clone(), make] {
            assert_eq!(
                place.intent(name, args).await.unwrap().level,
                Safety::Moderate,
                "{name} {path}"
            );
        }
        place.write(path, "old");
        for (name, args) in [write, edit, delete] {
            assert_eq!(
                place.intent(name, args).await.unwrap().level,
                Safety::Moderate,
                "{name} {path}"
            );
        }
    }
}

/// B100
#[tokio::test]
async fn a_detour_leads_to_the_same_question() {
    let place = FilesHarness::new();
    place.write(".git/config", "old");
    place.write("a/b.txt", "old");
    place.write("shared/tasks.json", "old");
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
    assert_eq!(
        place.intent(name, args).await.unwrap().level,
        Safety::Moderate
    );
}

/// B100
#[tokio::test]
async fn a_folder_that_git_takes_for_a_repository_is_one() {
    let place = FilesHarness::new();
    let becoming = [
        "x/config",
        "x/hooks/run",
        "x/objects",
        "x/commondir",
        "x/config.worktree",
    ];
    for path in becoming {
        let [(name, args), ..] = calls(path);
        assert_eq!(
            place.intent(name, args).await.unwrap().level,
            Safety::Moderate,
            "{path}"
        );
    }
    let [(name, args), ..] = calls("x/HEAD");
    assert_dangerous(&place, name, args, "repository").await;
    place.write("x/HEAD", "ref: refs/heads/main\n");
    for path in becoming {
        for (name, args) in [calls(path)[0].clone(), calls(path)[2].clone()] {
            assert_dangerous(&place, name, args, "repository").await;
        }
    }
    let [(name, args), ..] = calls("x/readme.txt");
    assert_eq!(
        place.intent(name, args).await.unwrap().level,
        Safety::Moderate
    );
    let [.., (name, args)] = calls("x");
    assert_dangerous(&place, name, args, "repository").await;
}

/// B100
#[tokio::test]
async fn a_folder_goes_with_what_is_in_it() {
    let place = FilesHarness::new();
    place.write("old/deep/down/.git/config", "x");
    place.write("plain/deep/down/a.txt", "x");
    let [.., (name, args)] = calls("old");
    assert_dangerous(&place, name, args, "old/deep/down/.git").await;
    let [.., (name, args)] = calls("plain");
    assert_eq!(
        place.intent(name, args).await.unwrap().level,
        Safety::Moderate
    );
}

/// B100
#[tokio::test]
async fn what_the_team_is_made_of_is_dangerous_wherever_it_lies() {
    let place = FilesHarness::new();
    std::fs::create_dir_all(place.path("team/own")).unwrap();
    let instructions = vec![place.path("team/own"), place.path("settings.toml")];
    let limits = WorkspaceLimits {
        hidden: Vec::new(),
        deny_read: Box::new(|_| false),
        instruction_paths: instructions,
    };
    let workspace = Workspace::open_with_limits(&place.root(), limits).unwrap();
    let tools = lango_tools::files::tools(FileTools {
        workspace,
        undo_storage: place.undo_storage.clone(),
    });
    let write = tools.iter().find(|tool| tool.name == "fs_write").unwrap();
    for (path, level) in [
        ("team/own/planner.md", Safety::Dangerous),
        ("settings.toml", Safety::Dangerous),
        ("team/notes.md", Safety::Moderate),
    ] {
        let [(_, args), ..] = calls(path);
        assert_eq!(
            write.intent(context("t1"), args).await.unwrap().level,
            level,
            "{path}"
        );
    }
    let delete = tools.iter().find(|tool| tool.name == "fs_delete").unwrap();
    let [.., (_, args)] = calls("team");
    assert_eq!(
        delete.intent(context("t1"), args).await.unwrap().level,
        Safety::Dangerous
    );
}

/// B100
#[tokio::test]
async fn a_link_of_a_repository_makes_its_target_a_part_of_it() {
    for (link, target, path) in [
        (
            ".git/hooks/pre-commit",
            "../../scripts/check.sh",
            "scripts/check.sh",
        ),
        (
            ".git/hooks/pre-push",
            "../../later/check.sh",
            "later/check.sh",
        ),
        (".git/info/attributes", "../../kinds.txt", "kinds.txt"),
        (".git/config.worktree", "../own.txt", "own.txt"),
        (".git/hooks/shared", "../../lib", "lib/deep/a.sh"),
    ] {
        let place = repository();
        place.write("scripts/check.sh", "old");
        place.write("lib/deep/a.sh", "old");
        place.write("lib.txt", "old");
        std::fs::create_dir_all(place.path(".git/info")).unwrap();
        symlink(target, place.path(link)).unwrap();
        let [(name, args), ..] = calls(path);
        assert_dangerous(
            &place,
            name,
            args,
            &format!("{path}, which {link} links to, "),
        )
        .await;
        assert_moderate(&place, "lib.txt").await;
        assert_moderate(&place, "scripts/other.sh").await;
    }
}

/// B100
#[tokio::test]
async fn a_folder_goes_with_what_links_find_in_it() {
    let place = repository();
    place.write("scripts/deep/check.sh", "old");
    symlink(
        "../../scripts/deep/check.sh",
        place.path(".git/hooks/pre-commit"),
    )
    .unwrap();
    let [.., (name, args)] = calls("scripts");
    assert_dangerous(&place, name, args, "which .git/hooks/pre-commit links to").await;
}

/// B100
#[tokio::test]
async fn what_settings_of_git_name_is_run_or_obeyed() {
    for (key, value, path) in [
        ("include.path", "../settings.inc", "settings.inc"),
        (
            "includeIf.gitdir:/nowhere/.path",
            "../settings.inc",
            "settings.inc",
        ),
        ("core.hooksPath", "scripts/hooks", "scripts/hooks/lib/a.sh"),
        ("core.hooksPath", "scripts/my hooks", "scripts/my hooks/a"),
        ("core.fsmonitor", "./x.sh", "x.sh"),
        ("core.attributesFile", "kinds.txt", "kinds.txt"),
        ("core.pager", "tools/show --fast", "tools/show"),
        ("diff.image.textconv", "sh text.sh", "text.sh"),
        ("filter.big.clean", "tools/clean.py %f", "tools/clean.py"),
        ("alias.check", "!./x.sh", "x.sh"),
        ("alias.check", "!sh run", "run"),
        (
            "alias.check",
            "!f() { cd tools && ./x.sh \"$@\"; }; f",
            "tools/x.sh",
        ),
        ("alias.check", "!\"$PWD/tools/x.sh\"", "tools/x.sh"),
        (
            "alias.check",
            "!$(git rev-parse --show-toplevel)/tools/x.sh",
            "tools/x.sh",
        ),
        ("merge.own.driver", "'./my merge.sh' %O", "my merge.sh"),
        ("remote.origin.url", "ext::sh ./x.sh", "x.sh"),
        ("future.setting", "./x.sh", "x.sh"),
    ] {
        let place = repository();
        git(&place.root(), &["config", key, value]);
        let [(name, args), ..] = calls(path);
        assert_dangerous(&place, name, args.clone(), ", which .git/config names (").await;
        place.write(path, "old");
        assert_dangerous(&place, name, args, ", which .git/config names (").await;
        assert_moderate(&place, "src/main.rs").await;
    }
}

/// B100: ordinary settings make nothing dangerous.
#[tokio::test]
async fn settings_that_run_nothing_name_ordinary_files() {
    let place = repository();
    for (key, value) in [
        ("core.excludesFile", "ignored.txt"),
        ("blame.ignoreRevsFile", ".git-blame-ignore-revs"),
        ("commit.template", "docs/commit.txt"),
        ("remote.origin.url", "../upstream"),
        ("branch.main.remote", "origin"),
        ("user.name", "Makefile"),
        ("core.hooksPath", "."),
        ("core.editor", "/usr/bin/code"),
    ] {
        git(&place.root(), &["config", key, value]);
    }
    for path in [
        "ignored.txt",
        ".git-blame-ignore-revs",
        "docs/commit.txt",
        "origin",
        "Makefile",
        "code",
        "a/b",
    ] {
        assert_moderate(&place, path).await;
    }
}

/// B100
#[tokio::test]
async fn included_settings_are_read_too_and_end() {
    let place = repository();
    git(&place.root(), &["config", "include.path", "../one.inc"]);
    place.write(
        "one.inc",
        "[include]\npath = sub/two.inc\npath = one.inc\npath = pipe\n",
    );
    place.write(
        "sub/two.inc",
        "[include] path = ../one.inc\n[core]\nfsmonitor = ./watch.sh\n",
    );
    let pipe = place.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for (path, reason) in [
        ("watch.sh", "which sub/two.inc names"),
        ("sub/two.inc", "which one.inc names"),
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&place, name, args, reason).await;
    }
    assert_moderate(&place, "sub/other.inc").await;
}

/// B100
#[tokio::test]
async fn broken_repositories_are_no_reason_to_fail() {
    for (path, content) in [
        (".git", &b"gitdir: "[..]),
        (".git", b"gitdir: \0\xff"),
        (".git", b"gitdir: .git"),
        (".git/commondir", b"\0"),
        (".git/commondir", b"commondir"),
        (".git/config", b"[core\nhooksPath = \0\n\xff = \\"),
        (
            ".git/config",
            b"[core]\nhooksPath =\nfsmonitor\npager = ..\n",
        ),
    ] {
        let place = FilesHarness::new();
        place.write(path, content);
        symlink("b", place.path("a")).unwrap();
        symlink("a", place.path("b")).unwrap();
        symlink("/", place.path("everything")).unwrap();
        assert_moderate(&place, "src/main.rs").await;
    }
}

/// B100
#[tokio::test]
async fn every_work_tree_has_the_settings_of_its_repository() {
    let place = FilesHarness::new();
    let main = place.folder.path().join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "a"]);
    let tree = place.path("tree");
    git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    git(&main, &["config", "extensions.worktreeConfig", "true"]);
    git(&main, &["config", "core.fsmonitor", "./shared.sh"]);
    git(&tree, &["config", "--worktree", "core.hooksPath", "own"]);
    symlink(
        place.path("tree/linked.sh"),
        main.join(".git/hooks/pre-commit"),
    )
    .unwrap();
    for (path, reason) in [
        ("tree/shared.sh", "names (core.fsmonitor)"),
        ("tree/own/a", "config.worktree names (core.hookspath)"),
        ("tree/linked.sh", ".git/hooks/pre-commit links to"),
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&place, name, args, reason).await;
    }
    assert_moderate(&place, "tree/src/main.rs").await;
}

/// B100
#[tokio::test]
async fn a_repository_lies_where_its_files_point() {
    let place = FilesHarness::new();
    place.write(".git", "gitdir: store\n");
    place.write("store/commondir", "../shared\n");
    for (path, reason) in [
        ("store/new", "which .git leads to"),
        ("shared/config", "which store/commondir leads to"),
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&place, name, args, reason).await;
    }
    // Work trees beside the parts of a repository are ordinary folders.
    let place = FilesHarness::new();
    place.write("main/.git", "gitdir: ../worktrees/main\n");
    place.write("worktrees/main/commondir", "../..\n");
    assert_moderate(&place, "main/src/main.rs").await;
    let [(name, args), ..] = calls("hooks/a");
    assert_dangerous(&place, name, args, "commondir leads to").await;
}

/// B100: a workspace inside a repository is a part of it.
#[tokio::test]
async fn a_repository_around_the_workspace_counts() {
    let place = FilesHarness::new();
    git(place.folder.path(), &["init", "-q"]);
    git(
        place.folder.path(),
        &["config", "core.fsmonitor", "work/x.sh"],
    );
    symlink(
        "../../work/check.sh",
        place.folder.path().join(".git/hooks/pre-commit"),
    )
    .unwrap();
    for (path, reason) in [
        ("x.sh", "names (core.fsmonitor)"),
        ("check.sh", "hooks/pre-commit links to"),
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&place, name, args, reason).await;
    }
    assert_moderate(&place, "src/main.rs").await;
}

/// B100
#[tokio::test]
async fn a_link_anywhere_gives_a_path_its_meaning() {
    for (link, target, path, reason) in [
        (
            "pkg/AGENTS.md",
            "../docs/guide.md",
            "docs/guide.md",
            "instructions",
        ),
        (
            "sub/.vscode",
            "../shared",
            "shared/tasks.json",
            "editors run",
        ),
        (".config", "cfg", "cfg/git/config", "git runs"),
        (".config", "cfg", "cfg/fish/config.fish", "shells run"),
        (".github", "gh", "gh/workflows/ci.yml", "a server runs"),
        (
            "a/b/c/d/.envrc",
            "../../../../e/../setup/env",
            "setup/env",
            "shells run",
        ),
    ] {
        let place = FilesHarness::new();
        place.write("docs/other.md", "old");
        place.write("cfg/app/config", "old");
        std::fs::create_dir_all(place.path(link).parent().unwrap()).unwrap();
        symlink(target, place.path(link)).unwrap();
        for exists in [false, true] {
            if exists {
                place.write(path, "old");
            }
            let [(name, args), ..] = calls(path);
            assert_dangerous(&place, name, args.clone(), reason).await;
            assert_dangerous(
                &place,
                name,
                args,
                &format!("{path}, which {link} links to, "),
            )
            .await;
        }
        for path in [
            "docs/other.md",
            "cfg/app/config",
            "gh/ISSUE_TEMPLATE/bug.md",
        ] {
            assert_moderate(&place, path).await;
        }
    }
}

/// B100: links that lead to links, and to nothing yet.
#[tokio::test]
async fn a_chain_of_links_is_followed_to_its_end() {
    let place = FilesHarness::new();
    std::fs::create_dir_all(place.path("far/away")).unwrap();
    symlink("one", place.path("far/away/.envrc")).unwrap();
    symlink(place.path("two"), place.path("far/away/one")).unwrap();
    symlink("setup/env", place.path("two")).unwrap();
    let [(name, args), ..] = calls("setup/env");
    assert_dangerous(&place, name, args, "which far/away/.envrc links to").await;
}

/// B100: a workspace of any size gets its answer, and what lies near is seen in it.
#[tokio::test]
async fn a_large_workspace_is_looked_through_within_bounds() {
    let place = FilesHarness::new();
    for folder in 0..220 {
        let folder = place.path(&format!("many/{folder}"));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            std::fs::write(folder.join(file.to_string()), "").unwrap();
        }
    }
    place.write("pkg/a", "");
    symlink("../docs/guide.md", place.path("pkg/AGENTS.md")).unwrap();
    let [(name, args), ..] = calls("docs/guide.md");
    assert_dangerous(&place, name, args, "which pkg/AGENTS.md links to").await;
    assert_moderate(&place, "many/7/new").await;
}
