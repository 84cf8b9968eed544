//! Changes of files that make other programs run something are dangerous, no matter how they are
//! reached.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use lango_domain::Safety;
use lango_tools::files::{FileTools, Workspace, WorkspaceLimits};
use serde_json::{Value, json};

use crate::files::{FilesHarness, context};

/// Returns a call of each tool for a path.
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

async fn assert_dangerous(harness: &FilesHarness, name: &str, args: Value, reason: &str) {
    let intent = harness.intent(name, args.clone()).await.unwrap();
    assert_eq!(intent.level, Safety::Dangerous, "{name} {args}");
    assert!(
        intent.shows.starts_with("CAREFUL: ") && intent.shows.contains(reason),
        "{name}: {}",
        intent.shows
    );
    assert_eq!(intent.pattern, None, "{name} {args}");
}

async fn assert_moderate(harness: &FilesHarness, path: &str) {
    let [(name, args), ..] = calls(path);
    let intent = harness.intent(name, args).await.unwrap();
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
    let harness = FilesHarness::new();
    git(&harness.root(), &["init", "-q"]);
    harness
}

/// B100
#[tokio::test]
async fn sensitive_paths_are_dangerous_to_create_change_and_delete() {
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
        let harness = FilesHarness::new();
        let [write, edit, make, delete] = calls(path);
        for (name, args) in [write.clone(), make] {
            assert_dangerous(&harness, name, args, reason).await;
        }
        harness.write(path, "old");
        for (name, args) in [write, edit, delete] {
            assert_dangerous(&harness, name, args, reason).await;
        }
        let same = json!({ "path": path, "content": "old" });
        assert_eq!(
            harness.intent("fs_write", same).await.unwrap().level,
            Safety::Safe,
            "nothing changes"
        );
    }
}

/// B100: build files are ordinary work.
#[tokio::test]
async fn build_files_are_moderate() {
    for path in [
        "Makefile",
        "package.json",
        "Cargo.toml",
        "build.rs",
        "src/hooks/main.rs",
        "config/a.txt",
    ] {
        let harness = FilesHarness::new();
        let [write, edit, make, delete] = calls(path);
        for (name, args) in [write.clone(), make] {
            assert_eq!(
                harness.intent(name, args).await.unwrap().level,
                Safety::Moderate,
                "{name} {path}"
            );
        }
        harness.write(path, "old");
        for (name, args) in [write, edit, delete] {
            assert_eq!(
                harness.intent(name, args).await.unwrap().level,
                Safety::Moderate,
                "{name} {path}"
            );
        }
    }
}

/// B100
#[tokio::test]
async fn detects_sensitive_paths_through_detours() {
    let harness = FilesHarness::new();
    harness.write(".git/config", "old");
    harness.write("a/b.txt", "old");
    harness.write("shared/tasks.json", "old");
    symlink(".git", harness.path("data")).unwrap();
    symlink(harness.path(".git"), harness.path("a/absolute")).unwrap();
    symlink(".git/config", harness.path("notes.txt")).unwrap();
    symlink("shared", harness.path(".vscode")).unwrap();
    symlink("a/../setup/env", harness.path(".envrc")).unwrap();
    let absolute = harness.path(".git/config").display().to_string();
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
        // The link exists before its target.
        "setup/env",
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&harness, name, args, "run").await;
    }
    let [(name, args), ..] = calls("a/b.txt");
    assert_eq!(
        harness.intent(name, args).await.unwrap().level,
        Safety::Moderate
    );
}

/// B100
#[tokio::test]
async fn detects_folders_that_git_treats_as_repositories() {
    let harness = FilesHarness::new();
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
            harness.intent(name, args).await.unwrap().level,
            Safety::Moderate,
            "{path}"
        );
    }
    let [(name, args), ..] = calls("x/HEAD");
    assert_dangerous(&harness, name, args, "repository").await;
    harness.write("x/HEAD", "ref: refs/heads/main\n");
    for path in becoming {
        for (name, args) in [calls(path)[0].clone(), calls(path)[2].clone()] {
            assert_dangerous(&harness, name, args, "repository").await;
        }
    }
    let [(name, args), ..] = calls("x/readme.txt");
    assert_eq!(
        harness.intent(name, args).await.unwrap().level,
        Safety::Moderate
    );
    let [.., (name, args)] = calls("x");
    assert_dangerous(&harness, name, args, "repository").await;
}

/// B100
#[tokio::test]
async fn deleting_a_folder_includes_its_contents() {
    let harness = FilesHarness::new();
    harness.write("old/deep/down/.git/config", "x");
    harness.write("plain/deep/down/a.txt", "x");
    let [.., (name, args)] = calls("old");
    assert_dangerous(&harness, name, args, "old/deep/down/.git").await;
    let [.., (name, args)] = calls("plain");
    assert_eq!(
        harness.intent(name, args).await.unwrap().level,
        Safety::Moderate
    );
}

/// B100
#[tokio::test]
async fn instruction_paths_are_dangerous_in_any_folder() {
    let harness = FilesHarness::new();
    std::fs::create_dir_all(harness.path("team/own")).unwrap();
    let instructions = vec![harness.path("team/own"), harness.path("settings.toml")];
    let limits = WorkspaceLimits {
        hidden: Vec::new(),
        deny_read: Box::new(|_| false),
        instruction_paths: instructions,
    };
    let workspace = Workspace::open_with_limits(&harness.root(), limits).unwrap();
    let tools = lango_tools::files::tools(FileTools {
        workspace,
        undo_storage: harness.undo_storage.clone(),
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
async fn targets_of_repository_links_are_dangerous() {
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
        let harness = repository();
        harness.write("scripts/check.sh", "old");
        harness.write("lib/deep/a.sh", "old");
        harness.write("lib.txt", "old");
        std::fs::create_dir_all(harness.path(".git/info")).unwrap();
        symlink(target, harness.path(link)).unwrap();
        let [(name, args), ..] = calls(path);
        assert_dangerous(
            &harness,
            name,
            args,
            &format!("{path}, which {link} links to, "),
        )
        .await;
        assert_moderate(&harness, "lib.txt").await;
        assert_moderate(&harness, "scripts/other.sh").await;
    }
}

/// B100
#[tokio::test]
async fn deleting_a_folder_includes_link_targets() {
    let harness = repository();
    harness.write("scripts/deep/check.sh", "old");
    symlink(
        "../../scripts/deep/check.sh",
        harness.path(".git/hooks/pre-commit"),
    )
    .unwrap();
    let [.., (name, args)] = calls("scripts");
    assert_dangerous(&harness, name, args, "which .git/hooks/pre-commit links to").await;
}

/// B100
#[tokio::test]
async fn files_named_in_git_settings_are_dangerous() {
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
        let harness = repository();
        git(&harness.root(), &["config", key, value]);
        let [(name, args), ..] = calls(path);
        assert_dangerous(&harness, name, args.clone(), ", which .git/config names (").await;
        harness.write(path, "old");
        assert_dangerous(&harness, name, args, ", which .git/config names (").await;
        assert_moderate(&harness, "src/main.rs").await;
    }
}

/// B100: ordinary settings do not make files dangerous.
#[tokio::test]
async fn files_named_in_harmless_settings_are_moderate() {
    let harness = repository();
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
        git(&harness.root(), &["config", key, value]);
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
        assert_moderate(&harness, path).await;
    }
}

/// B100
#[tokio::test]
async fn reads_included_settings_without_endless_loops() {
    let harness = repository();
    git(&harness.root(), &["config", "include.path", "../one.inc"]);
    harness.write(
        "one.inc",
        "[include]\npath = sub/two.inc\npath = one.inc\npath = pipe\n",
    );
    harness.write(
        "sub/two.inc",
        "[include] path = ../one.inc\n[core]\nfsmonitor = ./watch.sh\n",
    );
    let pipe = harness.path("pipe");
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
        assert_dangerous(&harness, name, args, reason).await;
    }
    assert_moderate(&harness, "sub/other.inc").await;
}

/// B100
#[tokio::test]
async fn accepts_malformed_repositories() {
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
        let harness = FilesHarness::new();
        harness.write(path, content);
        symlink("b", harness.path("a")).unwrap();
        symlink("a", harness.path("b")).unwrap();
        symlink("/", harness.path("everything")).unwrap();
        assert_moderate(&harness, "src/main.rs").await;
    }
}

/// B100
#[tokio::test]
async fn work_trees_use_the_settings_of_their_repository() {
    let harness = FilesHarness::new();
    let main = harness.folder.path().join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "a"]);
    let tree = harness.path("tree");
    git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    git(&main, &["config", "extensions.worktreeConfig", "true"]);
    git(&main, &["config", "core.fsmonitor", "./shared.sh"]);
    git(&tree, &["config", "--worktree", "core.hooksPath", "own"]);
    symlink(
        harness.path("tree/linked.sh"),
        main.join(".git/hooks/pre-commit"),
    )
    .unwrap();
    for (path, reason) in [
        ("tree/shared.sh", "names (core.fsmonitor)"),
        ("tree/own/a", "config.worktree names (core.hookspath)"),
        ("tree/linked.sh", ".git/hooks/pre-commit links to"),
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&harness, name, args, reason).await;
    }
    assert_moderate(&harness, "tree/src/main.rs").await;
}

/// B100
#[tokio::test]
async fn follows_gitdir_and_commondir_files() {
    let harness = FilesHarness::new();
    harness.write(".git", "gitdir: store\n");
    harness.write("store/commondir", "../shared\n");
    for (path, reason) in [
        ("store/new", "which .git leads to"),
        ("shared/config", "which store/commondir leads to"),
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&harness, name, args, reason).await;
    }
    // Work trees next to the parts of a repository are ordinary folders.
    let harness = FilesHarness::new();
    harness.write("main/.git", "gitdir: ../worktrees/main\n");
    harness.write("worktrees/main/commondir", "../..\n");
    assert_moderate(&harness, "main/src/main.rs").await;
    let [(name, args), ..] = calls("hooks/a");
    assert_dangerous(&harness, name, args, "commondir leads to").await;
}

/// B100: a workspace inside a repository is a part of it.
#[tokio::test]
async fn detects_a_repository_around_the_workspace() {
    let harness = FilesHarness::new();
    git(harness.folder.path(), &["init", "-q"]);
    git(
        harness.folder.path(),
        &["config", "core.fsmonitor", "work/x.sh"],
    );
    symlink(
        "../../work/check.sh",
        harness.folder.path().join(".git/hooks/pre-commit"),
    )
    .unwrap();
    for (path, reason) in [
        ("x.sh", "names (core.fsmonitor)"),
        ("check.sh", "hooks/pre-commit links to"),
    ] {
        let [(name, args), ..] = calls(path);
        assert_dangerous(&harness, name, args, reason).await;
    }
    assert_moderate(&harness, "src/main.rs").await;
}

/// B100
#[tokio::test]
async fn detects_links_with_sensitive_names() {
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
        let harness = FilesHarness::new();
        harness.write("docs/other.md", "old");
        harness.write("cfg/app/config", "old");
        std::fs::create_dir_all(harness.path(link).parent().unwrap()).unwrap();
        symlink(target, harness.path(link)).unwrap();
        for exists in [false, true] {
            if exists {
                harness.write(path, "old");
            }
            let [(name, args), ..] = calls(path);
            assert_dangerous(&harness, name, args.clone(), reason).await;
            assert_dangerous(
                &harness,
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
            assert_moderate(&harness, path).await;
        }
    }
}

/// B100: links to links, with a target that does not exist yet.
#[tokio::test]
async fn follows_chains_of_links() {
    let harness = FilesHarness::new();
    std::fs::create_dir_all(harness.path("far/away")).unwrap();
    symlink("one", harness.path("far/away/.envrc")).unwrap();
    symlink(harness.path("two"), harness.path("far/away/one")).unwrap();
    symlink("setup/env", harness.path("two")).unwrap();
    let [(name, args), ..] = calls("setup/env");
    assert_dangerous(&harness, name, args, "which far/away/.envrc links to").await;
}

/// B100: the search in a large workspace is bounded, and still finds links near the root.
#[tokio::test]
async fn bounds_the_search_in_large_workspaces() {
    let harness = FilesHarness::new();
    for folder in 0..220 {
        let folder = harness.path(&format!("many/{folder}"));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            std::fs::write(folder.join(file.to_string()), "").unwrap();
        }
    }
    harness.write("pkg/a", "");
    symlink("../docs/guide.md", harness.path("pkg/AGENTS.md")).unwrap();
    let [(name, args), ..] = calls("docs/guide.md");
    assert_dangerous(&harness, name, args, "which pkg/AGENTS.md links to").await;
    assert_moderate(&harness, "many/7/new").await;
}
