//! Writes observations and reflections with a language model, and parses its replies leniently.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use lango_domain::AgentName;
use lango_domain::event::Usage;
use lango_domain::fence::escape_fences;
use lango_domain::memory::{MemoryKind, MemoryPriority};
use lango_domain::model::{Fragment, Message, Model, ModelRequest};
use lango_text::sanitize::one_line;
use lango_text::token_estimate;

const OBSERVER_PROMPT: &str = include_str!("observer.md");
const REFLECTOR_PROMPT: &str = include_str!("reflector.md");
/// The agent in whose name the model is called.
const AGENT_NAME: &str = "chronicler";
/// Timeout of a model call.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum length of a reply in bytes.
const MAX_BYTES: usize = 64 * 1024;
const MAX_LINES: usize = 80;
/// Maximum tokens of one memory (B41).
const LINE_CAP: usize = 90;
/// Maximum tokens of one request. A request also uses at most a share of the model's window.
const REQUEST_CAP: usize = 12_000;
const WINDOW_DIVISOR: usize = 3;
const MIN_REQUEST_TOKENS: usize = 500;

#[derive(Clone, Copy)]
pub enum WriteTask {
    Observe,
    Reflect,
}

/// A usable line of a model's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenMemory {
    pub priority: MemoryPriority,
    pub kind: MemoryKind,
    /// The cited ids that were in the request.
    pub cites: Vec<String>,
    pub text: String,
}

/// Error from writing memories with a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryWriteError {
    #[error("the model did not answer: {0}")]
    Failed(String),
    /// The answer does not have the requested form.
    #[error("the model's answer does not have the requested form")]
    Unusable,
}

/// Returns the token budget of one request.
pub fn request_budget(model: &dyn Model) -> usize {
    (model.window() / WINDOW_DIVISOR).clamp(MIN_REQUEST_TOKENS, REQUEST_CAP)
}

/// Lets a model write memories from lines, each with the id that it is cited by. Also returns the
/// usage of the call.
pub async fn write_memories(
    model: &dyn Model,
    task: WriteTask,
    lines: &[(String, String)],
) -> (Result<Vec<WrittenMemory>, MemoryWriteError>, Option<Usage>) {
    let (reply, usage) = ask_model(model, task, lines).await;
    let memories = reply.and_then(|reply| {
        let known: BTreeSet<&str> = lines.iter().map(|(id, _)| id.as_str()).collect();
        parse_reply(&reply, &known).ok_or(MemoryWriteError::Unusable)
    });
    (memories, usage)
}

async fn ask_model(
    model: &dyn Model,
    task: WriteTask,
    lines: &[(String, String)],
) -> (Result<String, MemoryWriteError>, Option<Usage>) {
    let system = match task {
        WriteTask::Observe => OBSERVER_PROMPT,
        WriteTask::Reflect => REFLECTOR_PROMPT,
    };
    let body: Vec<String> = lines
        .iter()
        .map(|(id, text)| format!("[{id}] {}", one_line(text)))
        .collect();
    let fenced = format!(
        "<context source=\"conversation\">\n{}\n</context>",
        escape_fences(&body.join("\n"))
    );
    let Ok(agent) = AgentName::new(AGENT_NAME.to_owned()) else {
        let error = MemoryWriteError::Failed(format!("invalid agent name {AGENT_NAME}"));
        return (Err(error), None);
    };
    let messages = vec![Message::User(fenced.into())];
    let mut stream = model.stream(ModelRequest {
        agent,
        system: system.into(),
        tools: [].into(),
        messages,
    });
    let (mut reply, mut usage) = (String::new(), None);
    let read_reply = async {
        while let Some(fragment) = stream.next().await {
            match fragment.map_err(|error| MemoryWriteError::Failed(error.to_string()))? {
                Fragment::Text(text) => reply.push_str(&text),
                Fragment::Usage(reported) => usage = Some(reported),
                Fragment::Done => return Ok(()),
                Fragment::Thought(_) | Fragment::Call(_) | Fragment::NotDone => {}
            }
            if reply.len() > MAX_BYTES {
                return Ok(());
            }
        }
        Err(MemoryWriteError::Failed(
            "the reply is incomplete".to_owned(),
        ))
    };
    let result = tokio::time::timeout(WRITE_TIMEOUT, read_reply).await;
    let result = result.unwrap_or_else(|_| Err(MemoryWriteError::Failed("timed out".to_owned())));
    (result.map(|()| reply), usage)
}

/// Returns the usable lines. Returns `None` if there are none, unless the reply says "nothing".
fn parse_reply(reply: &str, known: &BTreeSet<&str>) -> Option<Vec<WrittenMemory>> {
    let mut written: Vec<WrittenMemory> = Vec::new();
    for line in reply.lines().filter_map(|line| parse_line(line, known)) {
        if written.len() < MAX_LINES && !written.iter().any(|other| other.text == line.text) {
            written.push(line);
        }
    }
    let says_nothing = || {
        reply
            .trim()
            .trim_matches(|c: char| !c.is_alphabetic())
            .eq_ignore_ascii_case("nothing")
    };
    (!written.is_empty() || says_nothing()).then_some(written)
}

/// Parses one line, ignoring list markers, table borders and bold text. Rejects a line that cites
/// nothing from the request.
fn parse_line(line: &str, known: &BTreeSet<&str>) -> Option<WrittenMemory> {
    let line = line
        .trim()
        .trim_start_matches(['-', '*', '•', '|', '`', ' '])
        .trim_end_matches(['|', '`', ' ']);
    let mut fields = line
        .splitn(4, '|')
        .map(|field| field.trim().trim_matches('*').trim());
    let (first, second, cites, text) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let parse = |priority: &str, kind: &str| {
        Some((
            MemoryPriority::from_name(priority)?,
            MemoryKind::from_name(kind)?,
        ))
    };
    let (priority, kind) = parse(first, second).or_else(|| parse(second, first))?;
    let mut cited: Vec<String> = Vec::new();
    for id in cites.split(|c: char| !c.is_ascii_alphanumeric()) {
        if known.contains(id) && !cited.iter().any(|other| other == id) {
            cited.push(id.to_owned());
        }
    }
    let text = one_line(text);
    let text = token_estimate::truncate(&text, LINE_CAP).trim().to_owned();
    let is_usable = !cited.is_empty() && text.chars().filter(|c| c.is_alphanumeric()).count() >= 2;
    is_usable.then_some(WrittenMemory {
        priority,
        kind,
        cites: cited,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_and_cites(reply: &str) -> Option<Vec<(String, Vec<String>)>> {
        let known = BTreeSet::from(["3", "4", "o7"]);
        let written = parse_reply(reply, &known)?;
        Some(
            written
                .into_iter()
                .map(|line| (line.text, line.cites))
                .collect(),
        )
    }

    #[test]
    fn parses_replies_leniently() {
        let tea = || {
            Some(vec![(
                "The user prefers tea.".to_owned(),
                vec!["3".to_owned()],
            )])
        };
        for reply in [
            "high | preference | 3 | The user prefers tea.",
            "- **high** | preference | [3] | The user prefers tea.",
            "| priority | kind | numbers | text |\n|---|---|---|---|\n| High | Preference | 3, 99 | The user prefers tea. |",
            "Here is what matters:\n\npreference | medium | #3 | The user prefers tea.\nThat is all.",
            "high | preference | 3 | The user prefers tea.\nlow | preference | 3 | The user prefers tea.",
        ] {
            assert_eq!(texts_and_cites(reply), tea(), "{reply}");
        }
        assert_eq!(texts_and_cites("NOTHING."), Some(Vec::new()));
        for garbage in [
            "",
            "I cannot help with that.",
            "high | preference | 99 | Invented.",
            "high|preference|3|",
            "{}",
            "\u{0}",
        ] {
            assert_eq!(texts_and_cites(garbage), None, "{garbage}");
        }
        let long = format!("high | fact | 3 | {}", "word ".repeat(5_000));
        assert!(token_estimate::estimate(&texts_and_cites(&long).unwrap()[0].0) <= LINE_CAP);
        let repeated = "high | fact | 4 | a line 가\n".repeat(500);
        assert_eq!(texts_and_cites(&repeated).unwrap().len(), 1);
    }
}
