//! The transcript that the observer reads: messages, tool calls and results. It excludes recalled
//! context, digests and memory tools, so that memory is never made of memory.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::event::{CallId, Event, EventBody, TurnId};
use lango_domain::memory::MemorySpeaker;
use lango_domain::{Content, Label};
use lango_text::token_estimate;

use super::tools::{MEMORY_CHANGING_TOOLS, is_memory_tool};

/// Maximum tokens of one message.
const MESSAGE_CAP: usize = 4_000;
/// Maximum tokens of one tool result.
const RESULT_CAP: usize = 300;
/// Maximum tokens of a call's arguments.
const ARGUMENTS_CAP: usize = 100;

/// A message, a tool call or a tool result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utterance {
    pub seq: u64,
    pub turn: TurnId,
    pub at: Timestamp,
    pub speaker: String,
    pub spoken_by: MemorySpeaker,
    /// The label of the event.
    pub label: Label,
    pub text: String,
}

/// Returns the transcript of these events without the forgotten ones.
pub fn transcript(events: &[Arc<Event>], forgotten: &[u64]) -> Vec<Utterance> {
    let turns = memory_turns(events);
    let visible = events
        .iter()
        .filter(|event| !forgotten.contains(&event.seq));
    visible
        .filter_map(|event| utterance(event, turns.get(&event.turn)?))
        .collect()
}

/// Estimates the tokens that an event uses in a request.
pub fn event_tokens(event: &Event) -> usize {
    match &event.body {
        EventBody::User(Content { text, .. })
        | EventBody::Context { text, .. }
        | EventBody::Note { text }
        | EventBody::Report(Content { text, .. })
        | EventBody::Answer(Content { text, .. }) => token_estimate::estimate(text),
        EventBody::ToolResult { content, .. } => token_estimate::estimate(content),
        EventBody::ToolCall { args, .. } => token_estimate::estimate(&args.to_string()),
        _ => 0,
    }
}

/// Shortens a long text to its beginning and its end.
pub fn truncate_middle(text: &str, cap: usize) -> String {
    if token_estimate::estimate(text) <= cap {
        return text.to_owned();
    }
    let head = token_estimate::truncate(text, cap * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - (head.len() / 2).min(text.len() - head.len()));
    format!("{head} […] {}", &text[tail..])
}

/// The memory tools that a turn used.
#[derive(Default)]
struct MemoryTurn<'a> {
    uses_memory: bool,
    changes_memory: bool,
    tools: HashMap<&'a CallId, &'a str>,
}

fn memory_turns(events: &[Arc<Event>]) -> HashMap<&TurnId, MemoryTurn<'_>> {
    let mut turns: HashMap<&TurnId, MemoryTurn<'_>> = HashMap::new();
    for event in events {
        let turn = turns.entry(&event.turn).or_default();
        if let EventBody::ToolCall { id, tool, .. } = &event.body {
            turn.tools.insert(id, tool);
            turn.uses_memory |= is_memory_tool(tool);
            turn.changes_memory |= MEMORY_CHANGING_TOOLS.contains(&tool.as_str());
        }
    }
    turns
}

fn utterance(event: &Event, turn: &MemoryTurn<'_>) -> Option<Utterance> {
    let (spoken_by, text) = match &event.body {
        // Piped input is not the user's own wording.
        EventBody::User(Content { text, .. }) if !turn.changes_memory => {
            let spoken_by = if event.label.is_plain() {
                MemorySpeaker::User
            } else {
                MemorySpeaker::Others
            };
            (spoken_by, truncate_middle(text, MESSAGE_CAP))
        }
        EventBody::Answer(Content { text, .. })
        | EventBody::Report(Content { text, .. })
        | EventBody::Note { text }
            if !turn.uses_memory =>
        {
            (
                MemorySpeaker::Others,
                truncate_middle(text, MESSAGE_CAP / 2),
            )
        }
        EventBody::ToolCall { tool, args, .. } if !is_memory_tool(tool) => (
            MemorySpeaker::Others,
            format!(
                "calls {tool} {}",
                truncate_middle(&args.to_string(), ARGUMENTS_CAP)
            ),
        ),
        EventBody::ToolResult {
            id,
            ok,
            content,
            error,
            ..
        } => {
            let tool = turn
                .tools
                .get(id)
                .copied()
                .filter(|tool| !is_memory_tool(tool))?;
            let output = error.as_deref().filter(|_| !ok).unwrap_or(content);
            let verb = if *ok { "gave" } else { "failed" };
            (
                MemorySpeaker::Others,
                format!("{tool} {verb}: {}", truncate_middle(output, RESULT_CAP)),
            )
        }
        _ => return None,
    };
    let (speaker, label) = (event.author.to_string(), event.label().into_owned());
    Some(Utterance {
        seq: event.seq,
        turn: event.turn.clone(),
        at: event.at,
        speaker,
        spoken_by,
        label,
        text,
    })
}
