//! Asking a language model to put a conversation into words, and making the most of whatever it says.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use lango_domain::AgentName;
use lango_domain::event::Usage;
use lango_domain::fence::escape_fences;
use lango_domain::memory::{MemoryKind, MemoryPriority};
use lango_domain::model::{Fragment, Message, Model, ModelRequest};
use lango_domain::text::one_line;
use lango_domain::token_estimate;

const OBSERVER_PROMPT: &str = include_str!("observer.md");
const REFLECTOR_PROMPT: &str = include_str!("reflector.md");
/// Whose call it is, in the models' eyes.
const AGENT_NAME: &str = "chronicler";
/// What takes longer is given up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
/// Nobody writes more for good reasons.
const MAX_BYTES: usize = 64 * 1024;
const MAX_LINES: usize = 80;
/// No line of memory is longer (B41).
const LINE_CAP: usize = 90;
/// One request reads no more than this, and no more than this share of the model's window.
const REQUEST_CAP: usize = 12_000;
const WINDOW_DIVISOR: usize = 3;
const MIN_REQUEST_TOKENS: usize = 500;

#[derive(Clone, Copy)]
pub enum WriteTask {
    Observe,
    Reflect,
}

/// One line that a model wrote and that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenMemory {
    pub priority: MemoryPriority,
    pub kind: MemoryKind,
    /// What it says to come from, as far as that was in the request.
    pub cites: Vec<String>,
    pub text: String,
}

/// Why there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryWriteError {
    #[error("the model gave no answer: {0}")]
    Failed(String),
    /// It answered, and not in the form that it was asked for.
    #[error("the model's answer is of no use")]
    Unusable,
}

/// How much one request may read.
pub fn request_budget(model: &dyn Model) -> usize {
    (model.window() / WINDOW_DIVISOR).clamp(MIN_REQUEST_TOKENS, REQUEST_CAP)
}

/// What a model makes of these lines, each with the mark that it is cited by; and what the call took.
pub async fn write_memories(
    model: &dyn Model,
    task: WriteTask,
    lines: &[(String, String)],
) -> (Result<Vec<WrittenMemory>, MemoryWriteError>, Option<Usage>) {
    let (said, usage) = ask_model(model, task, lines).await;
    let read = said.and_then(|said| {
        let known: BTreeSet<&str> = lines.iter().map(|(mark, _)| mark.as_str()).collect();
        parse_reply(&said, &known).ok_or(MemoryWriteError::Unusable)
    });
    (read, usage)
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
        .map(|(mark, text)| format!("[{mark}] {}", one_line(text)))
        .collect();
    let fenced = format!(
        "<context source=\"conversation\">\n{}\n</context>",
        escape_fences(&body.join("\n"))
    );
    let Ok(agent) = AgentName::new(AGENT_NAME.to_owned()) else {
        return (
            Err(MemoryWriteError::Failed(
                "there is no such agent".to_owned(),
            )),
            None,
        );
    };
    let messages = vec![Message::User(fenced)];
    let mut reply = model.stream(ModelRequest {
        agent,
        system: system.into(),
        tools: [].into(),
        messages,
    });
    let (mut said, mut usage) = (String::new(), None);
    let listening = async {
        while let Some(fragment) = reply.next().await {
            match fragment.map_err(|error| MemoryWriteError::Failed(error.to_string()))? {
                Fragment::Text(text) => said.push_str(&text),
                Fragment::Usage(taken) => usage = Some(taken),
                Fragment::Done => return Ok(()),
                Fragment::Thought(_) | Fragment::Call(_) => {}
            }
            if said.len() > MAX_BYTES {
                return Ok(());
            }
        }
        Err(MemoryWriteError::Failed("it broke off".to_owned()))
    };
    let heard = tokio::time::timeout(WRITE_TIMEOUT, listening).await;
    let heard =
        heard.unwrap_or_else(|_| Err(MemoryWriteError::Failed("it took too long".to_owned())));
    (heard.map(|()| said), usage)
}

/// The lines that can be used; nothing where there is none and it does not say so.
fn parse_reply(said: &str, known: &BTreeSet<&str>) -> Option<Vec<WrittenMemory>> {
    let mut written: Vec<WrittenMemory> = Vec::new();
    for line in said.lines().filter_map(|line| parse_line(line, known)) {
        if written.len() < MAX_LINES && !written.iter().any(|other| other.text == line.text) {
            written.push(line);
        }
    }
    let says_nothing = || {
        said.trim()
            .trim_matches(|c: char| !c.is_alphabetic())
            .eq_ignore_ascii_case("nothing")
    };
    (!written.is_empty() || says_nothing()).then_some(written)
}

/// Models decorate: list marks, tables, bold letters. What cites nothing that was in the request is no observation.
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
    let named = |priority: &str, kind: &str| {
        Some((
            MemoryPriority::from_name(priority)?,
            MemoryKind::from_name(kind)?,
        ))
    };
    let (priority, kind) = named(first, second).or_else(|| named(second, first))?;
    let mut cited: Vec<String> = Vec::new();
    for mark in cites.split(|c: char| !c.is_ascii_alphanumeric()) {
        if known.contains(mark) && !cited.iter().any(|other| other == mark) {
            cited.push(mark.to_owned());
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

    fn of(said: &str) -> Option<Vec<(String, Vec<String>)>> {
        let known = BTreeSet::from(["3", "4", "o7"]);
        let written = parse_reply(said, &known)?;
        Some(
            written
                .into_iter()
                .map(|line| (line.text, line.cites))
                .collect(),
        )
    }

    #[test]
    fn whatever_a_model_says_is_read_as_well_as_it_can_be() {
        let tea = || {
            Some(vec![(
                "The user prefers tea.".to_owned(),
                vec!["3".to_owned()],
            )])
        };
        for said in [
            "high | preference | 3 | The user prefers tea.",
            "- **high** | preference | [3] | The user prefers tea.",
            "| priority | kind | numbers | text |\n|---|---|---|---|\n| High | Preference | 3, 99 | The user prefers tea. |",
            "Here is what matters:\n\npreference | medium | #3 | The user prefers tea.\nThat is all.",
            "high | preference | 3 | The user prefers tea.\nlow | preference | 3 | The user prefers tea.",
        ] {
            assert_eq!(of(said), tea(), "{said}");
        }
        assert_eq!(of("NOTHING."), Some(Vec::new()));
        for garbage in [
            "",
            "I cannot help with that.",
            "high | preference | 99 | Invented.",
            "high|preference|3|",
            "{}",
            "\u{0}",
        ] {
            assert_eq!(of(garbage), None, "{garbage}");
        }
        let long = format!("high | fact | 3 | {}", "word ".repeat(5_000));
        assert!(token_estimate::estimate(&of(&long).unwrap()[0].0) <= LINE_CAP);
        assert_eq!(
            of(&"high | fact | 4 | a line 가\n".repeat(500))
                .unwrap()
                .len(),
            1
        );
    }
}
