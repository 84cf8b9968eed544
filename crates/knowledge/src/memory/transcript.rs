//! What the observer reads of a conversation: who said what, and what was done. Never what was recalled, looked up or
//! digested, nor the memory's own work: memory is not made of memory.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::event::{Body, CallId, Event, TurnId};
use lango_domain::memory::Words;
use lango_domain::{Label, tokens};

use super::tools::{CHANGES_MEMORY, is_memory_tool};

/// So much is read of one message, and of one result.
const MESSAGE_CAP: usize = 4_000;
const RESULT_CAP: usize = 300;
const ARGUMENTS_CAP: usize = 100;

/// Something that was said or done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utterance {
    pub seq: u64,
    pub turn: TurnId,
    pub at: Timestamp,
    pub speaker: String,
    pub words: Words,
    /// What it was made from.
    pub label: Label,
    pub text: String,
}

/// What is to be observed of these events, without those that are forgotten.
pub fn transcript(events: &[Arc<Event>], forgotten: &[u64]) -> Vec<Utterance> {
    let turns = turns(events);
    let seen = events.iter().filter(|event| !forgotten.contains(&event.seq));
    seen.filter_map(|event| utterance(event, turns.get(&event.turn)?)).collect()
}

/// What an event takes in a request, about.
pub fn weight(event: &Event) -> usize {
    match &event.body {
        Body::User { text }
        | Body::Context { text, .. }
        | Body::Note { text }
        | Body::Report { text }
        | Body::Answer { text } => tokens::estimate(text),
        Body::ToolResult { content, .. } => tokens::estimate(content),
        Body::ToolCall { args, .. } => tokens::estimate(&args.to_string()),
        _ => 0,
    }
}

/// The beginning and the end of a long text.
pub fn clipped(text: &str, cap: usize) -> String {
    if tokens::estimate(text) <= cap {
        return text.to_owned();
    }
    let head = tokens::cut(text, cap * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - (head.len() / 2).min(text.len() - head.len()));
    format!("{head} […] {}", &text[tail..])
}

/// What a turn had to do with memory.
#[derive(Default)]
struct Turn<'a> {
    recalls: bool,
    changes_memory: bool,
    tools: HashMap<&'a CallId, &'a str>,
}

fn turns(events: &[Arc<Event>]) -> HashMap<&TurnId, Turn<'_>> {
    let mut turns: HashMap<&TurnId, Turn<'_>> = HashMap::new();
    for event in events {
        let turn = turns.entry(&event.turn).or_default();
        if let Body::ToolCall { id, tool, .. } = &event.body {
            turn.tools.insert(id, tool);
            turn.recalls |= is_memory_tool(tool);
            turn.changes_memory |= CHANGES_MEMORY.contains(&tool.as_str());
        }
    }
    turns
}

fn utterance(event: &Event, turn: &Turn<'_>) -> Option<Utterance> {
    let (words, text) = match &event.body {
        // What was piped in is not in the user's own words.
        Body::User { text } if !turn.changes_memory => {
            let words = if event.label.is_plain() { Words::User } else { Words::Others };
            (words, clipped(text, MESSAGE_CAP))
        }
        Body::Answer { text } | Body::Report { text } | Body::Note { text } if !turn.recalls => {
            (Words::Others, clipped(text, MESSAGE_CAP / 2))
        }
        Body::ToolCall { tool, args, .. } if !is_memory_tool(tool) => {
            (Words::Others, format!("calls {tool} {}", clipped(&args.to_string(), ARGUMENTS_CAP)))
        }
        Body::ToolResult { id, ok, content, error, .. } => {
            let tool = turn.tools.get(id).copied().filter(|tool| !is_memory_tool(tool))?;
            let said = error.as_deref().filter(|_| !ok).unwrap_or(content);
            let ended = if *ok { "gave" } else { "failed" };
            (Words::Others, format!("{tool} {ended}: {}", clipped(said, RESULT_CAP)))
        }
        _ => return None,
    };
    let (speaker, label) = (event.author.to_string(), event.label().into_owned());
    Some(Utterance { seq: event.seq, turn: event.turn.clone(), at: event.at, speaker, words, label, text })
}
