//! Searching files.

use serde_json::json;

use crate::files::FilesHarness;

fn search_harness() -> FilesHarness {
    let harness = FilesHarness::new();
    harness.write("src/main.rs", "fn main() {\n    needle();\n}\n");
    harness.write("src/lib/deep.rs", "// Needle\nfn needle() {}\n");
    harness.write("notes.md", "a needle in a haystack\r\n");
    harness.write("target/out.rs", "needle\n");
    harness.write(".hidden/a.rs", "needle\n");
    harness.write(".lango/a.rs", "needle\n");
    harness.write("image.bin", b"needle\n\0\0\0");
    harness.write(".gitignore", "target/\n");
    harness
}

#[tokio::test]
async fn returns_sorted_matches_without_ignored_files() {
    let harness = search_harness();
    let found = harness
        .call("fs_search", json!({ "pattern": "needle" }))
        .await
        .unwrap();
    let lines = [
        "notes.md:1: a needle in a haystack",
        "src/lib/deep.rs:1: // Needle",
        "src/lib/deep.rs:2: fn needle() {}",
        "src/main.rs:2:     needle();",
    ];
    assert_eq!(found.lines().collect::<Vec<_>>(), lines);
}

#[tokio::test]
async fn supports_case_globs_folders_and_hidden_files() {
    let harness = search_harness();
    for (args, paths) in [
        (
            json!({ "pattern": "Needle" }),
            vec!["src/lib/deep.rs:1: // Needle"],
        ),
        (
            json!({ "pattern": "NEEDLE", "case_sensitive": false, "glob": "*.md" }),
            vec!["notes.md:1: a needle in a haystack"],
        ),
        (
            json!({ "pattern": "needle", "case_sensitive": true, "path": "src/lib" }),
            vec!["src/lib/deep.rs:2: fn needle() {}"],
        ),
        (
            json!({ "pattern": "needle", "path": "target/out.rs" }),
            vec!["target/out.rs:1: needle"],
        ),
        (
            json!({ "pattern": "^needle", "hidden": true }),
            vec![".hidden/a.rs:1: needle"],
        ),
        (
            json!({ "pattern": "haystack$" }),
            vec!["notes.md:1: a needle in a haystack"],
        ),
        (
            json!({ "glob": "*.rs" }),
            vec!["src/lib/deep.rs", "src/main.rs"],
        ),
        (json!({ "glob": "src/*.rs" }), vec!["src/main.rs"]),
        (
            json!({ "glob": "./src/**/*.rs" }),
            vec!["src/lib/deep.rs", "src/main.rs"],
        ),
        (
            json!({ "glob": "lib/*.rs", "path": "src" }),
            vec!["src/lib/deep.rs"],
        ),
        (
            json!({ "glob": "src/" }),
            vec!["src/lib/deep.rs", "src/main.rs"],
        ),
        (json!({ "glob": "*.toml" }), vec!["no matches in 0 files"]),
    ] {
        let found = harness.call("fs_search", args.clone()).await.unwrap();
        assert_eq!(found.lines().collect::<Vec<_>>(), paths, "{args}");
    }
}

#[tokio::test]
async fn shows_context_lines() {
    let harness = FilesHarness::new();
    harness.write("a.txt", "1\n2\nx\n4\n5\n6\n7\nx\n");
    harness.write("b.txt", "x\n");
    let found = harness
        .call("fs_search", json!({ "pattern": "x", "context": 1 }))
        .await
        .unwrap();
    let lines = [
        "a.txt-2- 2",
        "a.txt:3: x",
        "a.txt-4- 4",
        "--",
        "a.txt-7- 7",
        "a.txt:8: x",
        "--",
        "b.txt:1: x",
    ];
    assert_eq!(found.lines().collect::<Vec<_>>(), lines);
}

#[tokio::test]
async fn enforces_the_limit_with_a_note() {
    let harness = FilesHarness::new();
    for number in 0..50 {
        harness.write(&format!("{number:02}.txt"), "x\n".repeat(10));
    }
    let found = harness
        .call("fs_search", json!({ "pattern": "x", "limit": 7 }))
        .await
        .unwrap();
    assert_eq!(found.lines().count(), 8);
    assert!(
        found.ends_with("[there are more than 7; search more narrowly, or raise the limit]"),
        "{found}"
    );
    let found = harness
        .call("fs_search", json!({ "glob": "*.txt", "limit": 50 }))
        .await
        .unwrap();
    assert_eq!(found.lines().count(), 50);
    let all = harness
        .call("fs_search", json!({ "pattern": "x", "limit": 500 }))
        .await
        .unwrap();
    assert_eq!(all.lines().count(), 500);
}

#[tokio::test]
async fn explains_invalid_patterns() {
    let harness = search_harness();
    let failure = harness
        .call("fs_search", json!({ "pattern": "nee(dle" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("unclosed group") && failure.contains('^'),
        "{failure}"
    );
    let failure = harness
        .call("fs_search", json!({ "glob": "a[b" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("invalid glob") && failure.contains("a[b"),
        "{failure}"
    );
    let failure = harness
        .call("fs_search", json!({ "pattern": "a\nb" }))
        .await
        .unwrap_err();
    assert!(failure.contains("invalid pattern"), "{failure}");
    let failure = harness
        .call("fs_search", json!({ "pattern": "x", "path": "targt" }))
        .await
        .unwrap_err();
    assert!(failure.contains("did you mean `target`?"), "{failure}");
}

#[tokio::test]
async fn truncates_long_lines_and_does_not_follow_links() {
    let harness = FilesHarness::new();
    harness.write("long.txt", format!("x{}\n", "y".repeat(5_000)));
    harness.write("odd.txt", b"x \xff\n");
    std::os::unix::fs::symlink("long.txt", harness.path("link.txt")).unwrap();
    let found = harness
        .call("fs_search", json!({ "pattern": "^x" }))
        .await
        .unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 2, "{found}");
    assert!(
        lines[0].ends_with("yy…") && lines[0].chars().count() < 330,
        "{found}"
    );
    assert_eq!(lines[1], "odd.txt:1: x �");
}
