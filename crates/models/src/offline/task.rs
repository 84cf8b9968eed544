//! Extracts the task from the messages, which are the same text that other models read.

use lango_domain::Content;
use lango_domain::fence::{self, FENCES, OUTPUT};
use lango_domain::markers::{
    CALL_NOT_RUN, DEFAULT_TASK, EMPTY_REPLY_REMINDER, HISTORY_TRUNCATED_MARKER, INQUIRY_PREFIX,
    STEPS_TRUNCATED_MARKER,
};
use lango_domain::model::{Message, ToolCall, ToolCallResult};

/// The current request and the calls made for it.
pub struct OfflineTask<'a> {
    /// The first paragraph of the user's message.
    pub request: &'a str,
    /// The task of a specialist, if it is more specific than the user's request.
    pub task: Option<&'a str>,
    /// The calls made so far, with their results.
    pub completed_calls: Vec<(&'a ToolCall, ToolCallResult)>,
    /// An inquiry that may be added to the answer.
    pub inquiry: Option<&'a str>,
    /// True if the session has no reply yet.
    pub is_first: bool,
}

impl<'a> OfflineTask<'a> {
    pub fn from_messages(messages: &'a [Message]) -> Self {
        let request_index = messages.iter().rposition(
            |message| matches!(message, Message::User(content) if !is_fenced(&content.text)),
        );
        let (before, after) = messages.split_at(request_index.unwrap_or(0));
        let request = after
            .first()
            .and_then(user_text)
            .map_or("", |text| first_paragraph(strip_context(text)));
        let mut tasks = after.iter().filter_map(user_text).filter_map(task_text);
        let is_reply = |message: &Message| match message {
            Message::Assistant { .. } => true,
            Message::User(content) => content.text.starts_with("<answer "),
            Message::Results(_) => false,
        };
        let is_first = !before.iter().any(is_reply);
        let task_index = after
            .iter()
            .rposition(|message| user_text(message).is_some_and(|text| task_text(text).is_some()));
        let own = &after[task_index.unwrap_or(0)..];
        Self {
            request,
            task: tasks.next_back().filter(|task| *task != DEFAULT_TASK),
            completed_calls: completed_calls(own),
            inquiry: after.first().and_then(user_text).and_then(inquiry_line),
            is_first,
        }
    }

    /// Returns the task and the request, most specific first.
    pub fn request_texts(&self) -> impl Iterator<Item = &'a str> {
        self.task.into_iter().chain([self.request])
    }
}

fn user_text(message: &Message) -> Option<&str> {
    match message {
        Message::User(content) => Some(&content.text),
        _ => None,
    }
}

/// Returns true for fenced text of others and for markers of the engine.
fn is_fenced(text: &str) -> bool {
    let is_fence =
        |tag: &&str| text.starts_with(&format!("<{tag} ")) && text.ends_with(&format!("</{tag}>"));
    FENCES.iter().any(is_fence)
        || text == HISTORY_TRUNCATED_MARKER
        || text == EMPTY_REPLY_REMINDER
        || text.starts_with(STEPS_TRUNCATED_MARKER)
}

/// Returns the first paragraph. Pasted or piped text after it is data, whatever it says.
fn first_paragraph(text: &str) -> &str {
    text.trim().split("\n\n").next().unwrap_or(text).trim()
}

/// Returns the text before the context that was added to it.
fn strip_context(text: &str) -> &str {
    text.split("\n\n<context ").next().unwrap_or(text).trim()
}

/// Returns the inquiry line in the context of a request.
fn inquiry_line(text: &str) -> Option<&str> {
    let (_, context) = text.split_once("\n\n<context ")?;
    context
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
    let find_result = |call: &&ToolCall| {
        results
            .iter()
            .find(|result| result.id == call.id)
            .map(|result| unfence_result(result))
    };
    // A call that did not run is made again.
    let has_run = |result: &ToolCallResult| result.ok || result.content.text != CALL_NOT_RUN;
    calls
        .flatten()
        .filter_map(|call| Some((call, find_result(&call).filter(has_run)?)))
        .collect()
}

/// Returns a result without its fence. What follows the fence is for language models: advice, and names of
/// attachments that they cannot read.
fn unfence_result(result: &ToolCallResult) -> ToolCallResult {
    let (text, end) = (&result.content.text, format!("\n</{OUTPUT}>"));
    // The end of a fence is escaped inside of it.
    let fenced = text.find(&end).map(|at| &text[..at + end.len()]);
    let text = fenced.and_then(|fenced| fence::unwrap_fence(OUTPUT, fenced));
    ToolCallResult {
        content: text.map_or_else(|| result.content.clone(), Content::from),
        ..result.clone()
    }
}

/// Returns the text inside a report fence, or the whole text if there is none.
pub fn unwrap_report(text: &str) -> &str {
    let inside = text
        .find("<report ")
        .and_then(|at| text[at..].split_once(">\n"));
    inside
        .and_then(|(_, rest)| rest.rsplit_once("\n</report>"))
        .map_or(text, |(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::event::CallId;

    #[test]
    fn a_result_is_read_without_its_fence_and_what_follows_it() {
        let texts = [
            "<output from=\"browser_screenshot\">\nsaved a.webp\n</output>",
            "<output from=\"browser_screenshot\">\nsaved a.webp\n</output>\n\n[image a.webp]",
        ];
        for text in texts {
            let result = ToolCallResult {
                id: CallId::new("call"),
                name: "browser_screenshot".to_owned(),
                ok: true,
                content: Content::from(text.to_owned()),
            };
            assert_eq!(unfence_result(&result).content.text, "saved a.webp");
        }
    }
}
