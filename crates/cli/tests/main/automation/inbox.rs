//! `lango inbox`, and its announcement.

use serde_json::json;

use super::{AutomationFixture, keys};

#[test]
fn an_empty_inbox_says_so() {
    let fixture = AutomationFixture::new();
    for (line, expected) in [
        ("inbox list", "no unread messages"),
        ("inbox list --all", "inbox is empty"),
        ("inbox read", "no unread messages"),
        ("inbox clear", "no messages that were read"),
        ("inbox clear --all", "inbox is empty"),
    ] {
        assert!(fixture.ok(line).stdout.contains(expected), "{line}");
    }
    assert_eq!(fixture.lango("inbox read 1 --all").exit, 2);
}

#[test]
fn messages_are_listed_read_and_cleared() {
    let fixture = AutomationFixture::new();
    for number in 1..=3 {
        let text = format!("text\u{1b}[2J {number}");
        fixture.deliver(&format!("result {number}"), &text);
    }
    let list = fixture.items("inbox list");
    assert_eq!(keys(&list[0]), "id at from title text session read");
    assert_eq!((list.len(), &list[0]["title"]), (3, &json!("result 3")));
    assert_eq!(list[0]["read"], false);
    let plain = fixture.ok("inbox list").stdout;
    assert!(
        plain.contains("disk: result 3") && !plain.contains('\u{1b}'),
        "{plain}"
    );
    let first = fixture.ok("inbox read").stdout;
    for part in ["result 1", "text[2J 1", "2 more"] {
        assert!(first.contains(part), "{first}");
    }
    let second = fixture.items("inbox read 2");
    assert_eq!(
        (&second[0]["title"], &second[0]["read"]),
        (&json!("result 2"), &json!(true))
    );
    assert_eq!(fixture.items("inbox list").len(), 1);
    assert_eq!(fixture.items("inbox list --all").len(), 3);
    assert_eq!(fixture.ok("inbox clear --json").json()["cleared"], 2);
    assert!(fixture.ok("inbox read --all").stdout.contains("result 3"));
    assert_eq!(fixture.ok("inbox clear --all --json").json()["cleared"], 1);
}

#[test]
fn answers_in_pipes_say_nothing_of_the_inbox() {
    let fixture = AutomationFixture::new();
    fixture.deliver("the disk is full", "now");
    let chat = ["chat", "--provider", "offline"];
    for run in [
        fixture.ok("ask --provider offline hello"),
        fixture.ok("ask --provider offline --json hello"),
        fixture.dir.lango_with_input(&chat, b"hello\n"),
    ] {
        assert_eq!(run.exit, 0, "{}", run.stderr);
        let printed = run.stdout + &run.stderr;
        assert!(!printed.contains("disk is full"), "{printed}");
    }
}
