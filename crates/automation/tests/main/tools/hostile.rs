//! Names and texts that try to hide something.

use proptest::prelude::*;
use serde_json::json;

use super::setup::ToolFixture;

#[tokio::test]
async fn names_hide_nothing() {
    let fixture = ToolFixture::new();
    for (name, expected) in [
        ("a\nb", "line ends or invisible"),
        ("a\u{202e}b", "line ends or invisible"),
        ("a\u{200b}", "line ends or invisible"),
        ("\u{7}", "line ends or invisible"),
        ("7", "are the ids"),
        ("#7", "are the ids"),
        ("x #7", "are the ids"),
    ] {
        let args = json!({ "name": name, "when": "tomorrow", "prompt": "x" });
        let error = fixture.error("cron_add", args).await;
        assert!(error.contains(expected), "{name:?}: {error}");
    }
    let long = json!({ "name": "x".repeat(65), "when": "tomorrow", "prompt": "x" });
    let error = fixture.error("cron_add", long).await;
    assert!(error.contains("more than 64 characters"), "{error}");
}

#[tokio::test]
async fn the_question_shows_hidden_characters() {
    let fixture = ToolFixture::new();
    let args = json!({
        "when": "tomorrow",
        "prompt": "check\u{202e} the disk\r\nresults: nowhere\u{200b}",
    });
    let shows = fixture
        .intent("cron_add", args.clone())
        .await
        .unwrap()
        .shows;
    assert!(
        shows.contains("check\\u{202e} the disk") && shows.contains("nowhere\\u{200b}"),
        "{shows}"
    );
    assert_eq!(
        shows
            .lines()
            .filter(|line| line.starts_with("results:"))
            .count(),
        1,
        "{shows}"
    );
    // A made name has no hidden characters.
    fixture.call("cron_add", args).await;
    fixture.job("check the disk results: nowhere").await;
}

#[tokio::test]
async fn rules_hide_nothing() {
    let fixture = ToolFixture::new();
    for rule in ["exec_shell ls\nfs_write", "exec_shell l\u{202e}s"] {
        let args = json!({ "when": "tomorrow", "prompt": "x", "allow": [rule] });
        let error = fixture.error("cron_add", args).await;
        assert!(error.contains("line ends or invisible"), "{error}");
    }
    let many: Vec<String> = (0..40).map(|n| format!("tool_{n}")).collect();
    let args = json!({ "when": "tomorrow", "prompt": "x", "allow": many });
    let error = fixture.error("cron_add", args).await;
    assert!(error.contains("at most 32 rules"), "{error}");
}

#[tokio::test]
async fn long_texts_are_refused() {
    let fixture = ToolFixture::new();
    for (key, length, expected) in [
        ("prompt", 20_001, "more than 20000"),
        ("reminder", 4_001, "more than 4000"),
    ] {
        let mut args = json!({ "when": "tomorrow" });
        args[key] = json!("é".repeat(length));
        let error = fixture.error("cron_add", args).await;
        assert!(error.contains(expected), "{error}");
    }
    let when = format!("tomorrow {}", "x".repeat(50_000));
    let error = fixture.error("cron_add", json!({ "when": when })).await;
    assert!(error.len() < 300, "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is asked for, nothing panics, and what is added can be found and removed by its name.
    #[test]
    fn any_text_is_handled(name in "\\PC{0,20}", text in "\\PC{0,60}", when in "(tomorrow|every day|in 2 hours|\\PC{0,20})") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = ToolFixture::new();
            let args = json!({ "name": name, "when": when, "reminder": text });
            let context = || super::setup::context("chat");
            let added = fixture.call_as(context(), "cron_add", args).await;
            let jobs = fixture.store.jobs(&super::setup::owner()).await.unwrap();
            assert_eq!(added.is_ok(), jobs.len() == 1);
            if let Some(job) = jobs.first() {
                let args = json!({ "job": job.name });
                fixture.call_as(context(), "cron_remove", args).await.unwrap();
            }
        });
    }
}
