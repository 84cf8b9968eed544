//! What is asked for, read out of the messages as any model reads them.

use lango_domain::fence::{self, FENCES, OUTPUT};
use lango_domain::markers::{
    DEFAULT_TASK, EMPTY_REPLY_REMINDER, HISTORY_TRUNCATED_MARKER, INQUIRY_PREFIX,
    STEPS_TRUNCATED_MARKER,
};
use lango_domain::model::{Message, ToolCall, ToolCallResult};

/// The request at hand and what was done about it so far.
pub struct OfflineTask<'a> {
    /// The user's own words: their first paragraph.
    pub request: &'a str,
    /// What a specialist was told to do, where it is more than "what the user asks".
    pub task: Option<&'a str>,
    /// The calls made for it, each with its result.
    pub completed_calls: Vec<(&'a ToolCall, ToolCallResult)>,
    /// A question that may be asked in passing.
    pub inquiry: Option<&'a str>,
    /// Whether this is the first thing that is said in the conversation.
    pub is_first: bool,
}

impl<'a> OfflineTask<'a> {
    pub fn from_messages(messages: &'a [Message]) -> Self {
        let asked = messages
            .iter()
            .rposition(|message| matches!(message, Message::User(text) if !is_fenced(text)));
        let (before, after) = messages.split_at(asked.unwrap_or(0));
        let request = after
            .first()
            .and_then(user_text)
            .map_or("", |text| first_paragraph(strip_context(text)));
        let mut tasks = after.iter().filter_map(user_text).filter_map(task_text);
        let has_spoken = |message: &Message| match message {
            Message::Assistant { .. } => true,
            Message::User(text) => text.starts_with("<answer "),
            Message::Results(_) => false,
        };
        let is_first = !before.iter().any(has_spoken);
        let begun = after
            .iter()
            .rposition(|message| user_text(message).is_some_and(|text| task_text(text).is_some()));
        let own = &after[begun.unwrap_or(0)..];
        Self {
            request,
            task: tasks.next_back().filter(|task| *task != DEFAULT_TASK),
            completed_calls: completed_calls(own),
            inquiry: after.first().and_then(user_text).and_then(inquiry_line),
            is_first,
        }
    }

    /// What to do, most exact first.
    pub fn request_texts(&self) -> impl Iterator<Item = &'a str> {
        self.task.into_iter().chain([self.request])
    }
}

fn user_text(message: &Message) -> Option<&str> {
    match message {
        Message::User(text) => Some(text),
        _ => None,
    }
}

/// Words of others, or a mark of the engine's.
fn is_fenced(text: &str) -> bool {
    let is_fence =
        |tag: &&str| text.starts_with(&format!("<{tag} ")) && text.ends_with(&format!("</{tag}>"));
    FENCES.iter().any(is_fence)
        || text == HISTORY_TRUNCATED_MARKER
        || text == EMPTY_REPLY_REMINDER
        || text.starts_with(STEPS_TRUNCATED_MARKER)
}

/// What is asked; what was pasted or piped in behind it is data, whatever it says.
fn first_paragraph(text: &str) -> &str {
    text.trim().split("\n\n").next().unwrap_or(text).trim()
}

/// The words before what was looked up for them.
fn strip_context(text: &str) -> &str {
    text.split("\n\n<context ").next().unwrap_or(text).trim()
}

/// Of what was looked up for a request, the one line that begins so.
fn inquiry_line(text: &str) -> Option<&str> {
    let (_, looked_up) = text.split_once("\n\n<context ")?;
    looked_up
        .lines()
        .find_map(|line| line.strip_prefix(INQUIRY_PREFIX))
        .map(str::trim)
}

fn task_text(text: &str) -> Option<&str> {
    let (_, inside) = text.strip_prefix("<task ")?.split_once(">\n")?;
    inside.strip_suffix("\n</task>")
}

fn completed_calls(messages: &[Message]) -> Vec<(&ToolCall, ToolCallResult)> {
    let results: Vec<&ToolCallResult> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Results(results) => Some(results),
            _ => None,
        })
        .flatten()
        .collect();
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    let of = |call: &&ToolCall| {
        results
            .iter()
            .find(|result| result.id == call.id)
            .map(|result| unfence_result(result))
    };
    calls
        .flatten()
        .filter_map(|call| Some((call, of(&call)?)))
        .collect()
}

/// A result as it was before it was fenced.
fn unfence_result(result: &ToolCallResult) -> ToolCallResult {
    let content =
        fence::unwrap_fence(OUTPUT, &result.content).unwrap_or_else(|| result.content.clone());
    ToolCallResult {
        content,
        ..result.clone()
    }
}

/// What stands inside a fence of somebody's words; the text itself where there is none.
pub fn unwrap_report(text: &str) -> &str {
    let inside = text
        .find("<report ")
        .and_then(|at| text[at..].split_once(">\n"));
    inside
        .and_then(|(_, rest)| rest.rsplit_once("\n</report>"))
        .map_or(text, |(inside, _)| inside)
}
