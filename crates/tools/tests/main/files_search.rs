//! Searching.

use serde_json::json;

use crate::files::FilesHarness;

fn search_harness() -> FilesHarness {
    let place = FilesHarness::new();
    place.write("src/main.rs", "fn main() {\n    needle();\n}\n");
    place.write("src/lib/deep.rs", "// Needle\nfn needle() {}\n");
    place.write("notes.md", "a needle in a haystack\r\n");
    place.write("target/out.rs", "needle\n");
    place.write(".hidden/a.rs", "needle\n");
    place.write(".lango/a.rs", "needle\n");
    place.write("image.bin", b"needle\n\0\0\0");
    place.write(".gitignore", "target/\n");
    place
}

#[tokio::test]
async fn lines_are_found_sorted_and_without_what_is_ignored() {
    let place = search_harness();
    let found = place
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
async fn case_globs_folders_and_hidden_files() {
    let place = search_harness();
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
        (
            json!({ "glob": "*.toml" }),
            vec!["nothing found among 0 files"],
        ),
    ] {
        let found = place.call("fs_search", args.clone()).await.unwrap();
        assert_eq!(found.lines().collect::<Vec<_>>(), paths, "{args}");
    }
}

#[tokio::test]
async fn lines_around_a_match_are_shown() {
    let place = FilesHarness::new();
    place.write("a.txt", "1\n2\nx\n4\n5\n6\n7\nx\n");
    place.write("b.txt", "x\n");
    let found = place
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
async fn the_limit_holds_and_says_that_there_is_more() {
    let place = FilesHarness::new();
    for number in 0..50 {
        place.write(&format!("{number:02}.txt"), "x\n".repeat(10));
    }
    let found = place
        .call("fs_search", json!({ "pattern": "x", "limit": 7 }))
        .await
        .unwrap();
    assert_eq!(found.lines().count(), 8);
    assert!(
        found.ends_with("[there are more than 7; search more narrowly, or raise the limit]"),
        "{found}"
    );
    let found = place
        .call("fs_search", json!({ "glob": "*.txt", "limit": 50 }))
        .await
        .unwrap();
    assert_eq!(found.lines().count(), 50);
    let all = place
        .call("fs_search", json!({ "pattern": "x", "limit": 500 }))
        .await
        .unwrap();
    assert_eq!(all.lines().count(), 500);
}

#[tokio::test]
async fn a_bad_pattern_is_explained() {
    let place = search_harness();
    let failure = place
        .call("fs_search", json!({ "pattern": "nee(dle" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("unclosed group") && failure.contains('^'),
        "{failure}"
    );
    let failure = place
        .call("fs_search", json!({ "glob": "a[b" }))
        .await
        .unwrap_err();
    assert!(
        failure.contains("the glob cannot be used") && failure.contains("a[b"),
        "{failure}"
    );
    let failure = place
        .call("fs_search", json!({ "pattern": "a\nb" }))
        .await
        .unwrap_err();
    assert!(failure.contains("the pattern cannot be used"), "{failure}");
    let failure = place
        .call("fs_search", json!({ "pattern": "x", "path": "targt" }))
        .await
        .unwrap_err();
    assert!(failure.contains("did you mean `target`?"), "{failure}");
}

#[tokio::test]
async fn long_lines_are_cut_and_links_not_followed() {
    let place = FilesHarness::new();
    place.write("long.txt", format!("x{}\n", "y".repeat(5_000)));
    place.write("odd.txt", b"x \xff\n");
    std::os::unix::fs::symlink("long.txt", place.path("link.txt")).unwrap();
    let found = place
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
