//! Asks for approval of tool calls at the terminal.

use std::io::{IsTerminal, Write as _};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::Safety;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::event::Decider;
use lango_text::sanitize::{one_line, strip_control_chars};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

use crate::output::{DIM, ERROR, NAME, print_stderr, styled};

/// The number of lines of a call that are shown at first.
const MAX_LINES: usize = 60;
/// The maximum length of an answer line, in bytes. A longer line is not an answer.
const MAX_ANSWER: usize = 256;
const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// Returns the approver of this process: none without a terminal, unless `--yes` approves every
/// call.
pub fn approver(yes: bool) -> Option<Arc<dyn Approver>> {
    if yes {
        return Some(Arc::new(ApproveAll));
    }
    let has_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    has_terminal.then(|| Arc::new(TerminalApprover) as Arc<dyn Approver>)
}

/// The approver for `--yes`. Approves every call once.
struct ApproveAll;

impl Approver for ApproveAll {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        ready(ApprovalDecision::Approved {
            scope: ApprovalScope::Once,
            by: Decider::Yes,
        })
        .boxed()
    }
}

struct TerminalApprover;

impl Approver for TerminalApprover {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        async move {
            let details = strip_control_chars(&question.intent.shows);
            let is_long = details.lines().count() > MAX_LINES;
            print_stderr(&format_question(&question, &truncate_middle(&details)));
            let pattern = question.intent.pattern.as_deref();
            // Discard input that was typed before the question appeared.
            let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
            let mut has_seen_all = !is_long;
            loop {
                let text = choices_prompt(pattern, has_seen_all);
                let _ =
                    write!(anstream::stderr(), "{text} ").and_then(|()| std::io::stderr().flush());
                let Some(line) = next_line().await else {
                    return ApprovalDecision::NobodyThere;
                };
                if line.trim() == "v" {
                    print_stderr(&indent(&details));
                    has_seen_all = true;
                }
                match parse_decision(line.trim(), pattern) {
                    // A call can only be approved after all of it was shown.
                    Some(ApprovalDecision::Approved { .. }) if !has_seen_all => {}
                    Some(decision) => return decision,
                    None => {}
                }
            }
        }
        .boxed()
    }
}

fn format_question(question: &ApprovalQuestion, details: &str) -> String {
    let (agent, tool) = (&question.agent, one_line(&question.tool));
    let level = match question.intent.level {
        Safety::Safe => styled(DIM, "safe"),
        Safety::Moderate => styled(NAME, "can be undone"),
        Safety::Dangerous => styled(ERROR, "dangerous"),
    };
    format!(
        "\n{} wants to use {} ({level}):\n{}",
        styled(NAME, agent),
        styled(NAME, tool),
        indent(details)
    )
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Keeps the beginning and the end, since either may hold the important part.
fn truncate_middle(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= MAX_LINES {
        return text.to_owned();
    }
    let (head, tail) = (
        &lines[..MAX_LINES / 2],
        &lines[lines.len() - MAX_LINES / 2..],
    );
    let omitted = lines.len() - MAX_LINES;
    format!(
        "{}\n{}\n{}",
        head.join("\n"),
        styled(ERROR, format!("[{omitted} lines are not shown]")),
        tail.join("\n")
    )
}

fn choices_prompt(pattern: Option<&str>, has_seen_all: bool) -> String {
    if !has_seen_all {
        return "Not all of it is shown. [v] show all of it, [n] no:".to_owned();
    }
    let pattern = pattern.map_or(String::new(), |pattern| {
        format!(", [p] `{}` in this session", one_line(pattern))
    });
    format!("Allow it? [y] once, [s] exactly this in this session{pattern}, [n] no:")
}

fn parse_decision(answer: &str, pattern: Option<&str>) -> Option<ApprovalDecision> {
    let approved = |scope| {
        Some(ApprovalDecision::Approved {
            scope,
            by: Decider::User,
        })
    };
    match answer.to_lowercase().as_str() {
        "y" | "yes" => approved(ApprovalScope::Once),
        "s" => approved(ApprovalScope::SameCall),
        "p" if pattern.is_some() => approved(ApprovalScope::Pattern),
        "n" | "no" => Some(ApprovalDecision::Denied),
        _ => None,
    }
}

/// Returns the next line from the terminal.
///
/// Polls instead of blocking in a read, so that a cancelled turn takes no further input.
async fn next_line() -> Option<String> {
    let stdin = std::io::stdin();
    while poll(
        &mut [PollFd::new(&stdin, PollFlags::IN)],
        Some(&Timespec::default()),
    )
    .ok()?
        == 0
    {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let mut line = [0; MAX_ANSWER];
    let length = rustix::io::read(&stdin, &mut line).ok()?;
    if line[..length].contains(&b'\n') {
        return Some(String::from_utf8_lossy(&line[..length]).into_owned());
    }
    // The line is too long to be an answer. Discard the rest of it, too.
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    (length > 0).then(String::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_only_offered_answers() {
        let scope = |answer, pattern| match parse_decision(answer, pattern) {
            Some(ApprovalDecision::Approved { scope, .. }) => Some(scope),
            _ => None,
        };
        assert_eq!(scope("Y", None), Some(ApprovalScope::Once));
        assert_eq!(scope("s", None), Some(ApprovalScope::SameCall));
        assert_eq!(scope("p", Some("git *")), Some(ApprovalScope::Pattern));
        assert_eq!(parse_decision("p", None), None);
        assert_eq!(parse_decision("", None), None);
        assert_eq!(parse_decision("no", None), Some(ApprovalDecision::Denied));
    }
}
