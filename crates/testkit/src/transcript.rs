//! The transcript of a turn, as in the lower half of a `.turn` file.

use std::fmt::Write as _;

use lango_domain::Content;
use lango_domain::event::{
    ApprovalState, CallId, Decider, Event, EventBody, TransferOutcome, Update,
};

/// Returns one line per event, then the text that was streamed.
pub fn transcript(updates: &[Update]) -> String {
    let mut text = String::new();
    let mut streamed: Vec<(String, String)> = Vec::new();
    for update in updates {
        match update {
            Update::Delta { author, text } => match streamed.last_mut() {
                Some((last, so_far)) if last == author.as_str() => so_far.push_str(text),
                _ => streamed.push((author.to_string(), text.clone())),
            },
            Update::ToolOutputDelta { .. } => {}
            Update::Event(event) => {
                if let Some(line) = event_line(event, updates) {
                    let _ = writeln!(text, "{line}");
                }
            }
            Update::StoreFailed(error) => _ = writeln!(text, "BROKEN {error}"),
        }
    }
    for (author, streamed) in streamed {
        let _ = writeln!(text, "seen as it came, from {author}: {streamed:?}");
    }
    text
}

fn event_line(event: &Event, updates: &[Update]) -> Option<String> {
    let author = &event.author;
    Some(match &event.body {
        EventBody::User(Content { text, .. }) => format!("user asks: {text}"),
        EventBody::Context { source, text } => {
            format!("  context from {source}: {}", truncate(text))
        }
        EventBody::Digest { through, text } => {
            format!("  digest of events up to {through}: {}", truncate(text))
        }
        EventBody::Note { text } => format!("{author} says in passing: {text}"),
        EventBody::Transfer {
            to,
            task,
            report_back,
            ..
        } => {
            let task = task
                .as_ref()
                .map_or(String::new(), |task| format!(": {task}"));
            let back = if *report_back { " (report back)" } else { "" };
            format!("{author} → {to}{task}{back}")
        }
        EventBody::TransferResult {
            id,
            outcome,
            detail,
            ..
        } => {
            let (target, outcome) = (transfer_target(id, updates), outcome_text(*outcome));
            format!("{author} ← {target} {outcome}{}", in_parentheses(detail))
        }
        EventBody::ToolCall { tool, args, .. } => format!("{author} calls {tool} {args}"),
        EventBody::ToolResult { .. } => format!("{author} gets {}", result_text(&event.body)),
        EventBody::Approval { .. } => approval_line(event),
        EventBody::Rejected { reason } => format!("{author} rejects: {reason}"),
        EventBody::Report(Content { text, .. }) => format!("{author} reports: {}", truncate(text)),
        EventBody::Answer(Content { text, .. }) => format!("{author} ANSWERS: {}", truncate(text)),
        EventBody::Usage(_) => return None,
        EventBody::Thought(thought) => format!("{author} thinks: {}", truncate(&thought.text)),
        EventBody::TurnDone { reason: None } => "done".to_owned(),
        EventBody::TurnDone {
            reason: Some(reason),
        } => format!("done, but {}", reason.description()),
        EventBody::TurnFailed { code, message, .. } => format!("FAILED {code}: {message}"),
    })
}

/// Returns the text of a tool result; empty for other events.
fn result_text(body: &EventBody) -> String {
    let EventBody::ToolResult {
        ok,
        content,
        error,
        code,
        untrusted,
        advice,
        ..
    } = body
    else {
        return String::new();
    };
    if *ok {
        let untrusted = if *untrusted { "untrusted " } else { "" };
        return format!("{untrusted}{}", truncate(content));
    }
    let code = code
        .and_then(|code| serde_json::to_value(code).ok())
        .unwrap_or_default();
    let error = truncate(error.as_deref().unwrap_or("?"));
    let advice = advice
        .as_ref()
        .map_or(String::new(), |advice| format!("; learned: {advice}"));
    format!("{}: {error}{advice}", code.as_str().unwrap_or("?"))
}

/// Returns the line of an approval question or decision; empty for other events.
fn approval_line(event: &Event) -> String {
    let EventBody::Approval {
        tool,
        state,
        tainted_by,
        shows,
        by,
        grant,
        ..
    } = &event.body
    else {
        return String::new();
    };
    match (state, by) {
        (ApprovalState::Asked, _) => {
            let taint = if tainted_by.is_empty() {
                String::new()
            } else {
                format!(", after reading {}", tainted_by.join(", "))
            };
            let sent = shows
                .lines()
                .skip_while(|line| !line.starts_with("SENDS"))
                .nth(1);
            let sent = sent.map_or(String::new(), |sent| format!(", which sends {sent}"));
            format!("{} asks the user about {tool}{taint}{sent}", event.author)
        }
        (_, None | Some(Decider::User)) => {
            let grant = grant
                .as_ref()
                .map_or(String::new(), |grant| format!(", {grant:?}"));
            format!("  the user: {state:?}{grant}")
        }
        (_, Some(by)) => format!("  by {by:?}: {state:?}"),
    }
}

fn transfer_target(call: &CallId, updates: &[Update]) -> String {
    let target = updates.iter().find_map(|update| match update {
        Update::Event(event) => match &event.body {
            EventBody::Transfer { id, to, .. } if id == call => Some(to.to_string()),
            _ => None,
        },
        _ => None,
    });
    target.unwrap_or_else(|| "?".to_owned())
}

fn outcome_text(outcome: TransferOutcome) -> &'static str {
    match outcome {
        TransferOutcome::Answered => "answered",
        TransferOutcome::Rejected => "rejected",
        TransferOutcome::Failed => "failed",
        TransferOutcome::Cancelled => "cancelled",
    }
}

fn in_parentheses(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(" ({detail})")
    }
}

fn truncate(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    if line.chars().count() <= 160 {
        return line;
    }
    let head: String = line.chars().take(60).collect();
    format!("{head}… ({} bytes)", text.len())
}
