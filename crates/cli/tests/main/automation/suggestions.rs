//! Names and numbers that do not exist.

use super::{AutomationFixture, DISK_JOB};

const UNKNOWN: [(&str, &str); 17] = [
    ("cron show disc-chek", "did you mean `disk-check`?"),
    ("cron run zebra", "disk-check"),
    ("cron history disk-chek", "disk-check"),
    ("bg status abc", "`abc` is not the number of a task"),
    ("bg status 99", "there is no task 99"),
    ("bg status 1", "lango workflow status 1"),
    ("bg result 2", "no result yet"),
    (
        "workflow status review",
        "the newest workflow run of `review` is 1",
    ),
    ("workflow status 2", "lango bg status 2"),
    ("workflow status -- -1", "`-1` is not the number"),
    ("workflow approve 1 chek", "did you mean `check`?"),
    ("workflow approve 1 check", "does not wait for an answer"),
    ("workflow retry 1", "is not over"),
    ("workflow graph reviw", "there is no workflow `reviw`"),
    ("workflow graph 77", "there is no workflow run 77"),
    ("inbox read 5", "there is no message 5"),
    ("inbox read x", "`x` is not the number of a message"),
];

#[test]
fn unknown_names_and_numbers_come_with_suggestions() {
    let fixture = AutomationFixture::new();
    fixture.ok(DISK_JOB);
    fixture.ok("workflow run review.flow.yaml");
    fixture.ok("bg submit 'count the files'");
    for (line, expected) in UNKNOWN {
        let run = fixture.lango(line);
        assert_ne!(run.exit, 0, "{line}");
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{line}");
    }
}
