//! The chronicler's tools.

mod forget;
mod recall;
mod remember;

use std::sync::Arc;

use lango_domain::memory::{Memory, MemoryId};
use lango_domain::{LabeledText, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};

use super::{ObservationalMemory, digest};
use lango_domain::lazy::Lazy;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

/// Tools after which the user's message of the turn is not observed.
pub(super) const MEMORY_CHANGING_TOOLS: [&str; 3] =
    ["memory_store", "memory_forget", "observe_event"];

pub(super) fn is_memory_tool(name: &str) -> bool {
    ["memory_", "observe_", "reflect_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// The memory that all tools share. It is opened at first use; the error says why that failed.
type LazyMemory = Lazy<ObservationalMemory, String>;

async fn open_memory(memory: &LazyMemory) -> Result<Arc<ObservationalMemory>, ToolError> {
    memory.get().await.cloned().map_err(tool_error)
}

fn tool_error(error: impl std::fmt::Display) -> ToolError {
    ToolError(format!("memory is not available: {error}"))
}

pub fn tools(memory: Lazy<ObservationalMemory, String>) -> Vec<Tool> {
    vec![
        remember::memory_store(memory.clone()),
        recall::memory_recall(memory.clone()),
        recall::memory_list_observations(memory.clone()),
        recall::memory_list_reflections(memory.clone()),
        forget::memory_forget(memory.clone()),
        remember::observe_event(memory.clone()),
        recall::reflect_summary(memory),
    ]
}

/// Formats memories line by line, labeled with what they come from.
fn memories_output(memories: &[Memory], empty_text: &str) -> ToolOutput {
    let lines: Vec<String> = memories.iter().map(digest::memory_line).collect();
    let text = if lines.is_empty() {
        empty_text.to_owned()
    } else {
        lines.join("\n")
    };
    ToolOutput::from_labeled(LabeledText {
        text,
        label: digest::joined_label(memories),
    })
}

fn check_limit(limit: Option<usize>) -> Result<usize, ToolError> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let is_valid = (1..=MAX_LIMIT).contains(&limit);
    is_valid
        .then_some(limit)
        .ok_or_else(|| ToolError(format!("`limit` must be from 1 to {MAX_LIMIT}")))
}

/// Returns a memory in the JSON form that every command uses.
pub fn memory_json(memory: &Memory) -> Value {
    let sources: Vec<Value> = memory
        .sources
        .iter()
        .map(|seq| json!({ "session": memory.session, "seq": seq }))
        .collect();
    let condenses: Vec<String> = memory
        .condenses
        .iter()
        .map(|id| MemoryId::Observation(*id).to_string())
        .collect();
    let mut item = json!({
        "id": memory.id.to_string(),
        "text": memory.note.text,
        "kind": memory.note.kind,
        "priority": memory.note.priority,
        "at": memory.note.at.to_string(),
        "session": memory.session,
        "sources": sources,
        "condenses": condenses,
        "generation": memory.generation,
        "words": memory.note.speaker,
        "origin": memory.origin,
    });
    if !memory.note.label.is_plain() {
        item["label"] = json!(memory.note.label);
    }
    item
}
