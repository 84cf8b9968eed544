//! Whether what was learned is about a failure: decided by words, not by exact text.

use std::collections::HashSet;

use lango_domain::hooks::FailedCall;
use serde_json::Value;

use crate::lexical::{analyze, analyze_query};

/// A trigger fits when so much of it is found in the failure.
const MIN_SHARE: f32 = 0.6;
/// What a word counts that says little about a failure.
const FREQUENT_WORD_WEIGHT: f32 = 0.3;
/// A single word is enough when it is at least so long.
const MIN_EVIDENCE_LETTERS: usize = 4;
/// So much of an error and of arguments is read.
const MAX_BYTES: usize = 8_000;

/// Words that nearly every failure has, without their endings.
const FREQUENT_WORDS: [&str; 27] = [
    "error", "fail", "failur", "tool", "call", "command", "problem", "issu", "wrong", "work",
    "code", "exit", "run", "use", "tri", "file", "cannot", "can", "could", "not", "no", "invalid",
    "messag", "say", "return", "doe", "happen",
];

/// How well a trigger fits, from 0 to 1; nothing when it is about something else.
pub(super) fn match_score(trigger: &str, failure: &FailureText) -> Option<f32> {
    if names_another_tool(trigger, failure) {
        return None;
    }
    let (mut found, mut all) = (0.0, 0.0);
    // Words that say something beside the tool's name, and those of them that are found.
    let (mut telling, mut evidence) = (0, Vec::new());
    for alternatives in analyze_query(trigger) {
        let is_common = alternatives
            .first()
            .is_some_and(|word| FREQUENT_WORDS.contains(&word.as_str()));
        let is_of_tool = failure.has_tool_term(&alternatives);
        let is_said = failure.has_term(&alternatives);
        let weight = if is_common { FREQUENT_WORD_WEIGHT } else { 1.0 };
        all += weight;
        found += if is_said || is_of_tool { weight } else { 0.0 };
        if !is_common && !is_of_tool {
            telling += 1;
            evidence.extend(is_said.then_some(alternatives));
        }
    }
    let is_long = |word: &String| word.chars().count() >= MIN_EVIDENCE_LETTERS;
    let is_enough = match &evidence[..] {
        [] => false,
        [one] => telling <= 2 && one.iter().any(is_long),
        _ => true,
    };
    let share = found / all;
    (share >= MIN_SHARE && is_enough).then_some(share)
}

/// The words of a failed call.
pub(super) struct FailureText {
    tool: String,
    tool_terms: HashSet<String>,
    /// Of the error and the arguments.
    terms: HashSet<String>,
    /// The same as they stand there, in small letters.
    text: String,
}

impl FailureText {
    pub fn from_call(call: &FailedCall) -> Self {
        let mut text = String::new();
        push_truncated(&mut text, &call.error);
        push_values(&mut text, &call.args);
        let said = analyze(&text).into_iter().collect();
        let of_tool = analyze(&call.tool).into_iter().collect();
        Self {
            tool: call.tool.to_lowercase(),
            tool_terms: of_tool,
            terms: said,
            text: text.to_lowercase(),
        }
    }

    fn has_tool_term(&self, alternatives: &[String]) -> bool {
        alternatives
            .iter()
            .any(|word| self.tool_terms.contains(word))
    }

    fn has_term(&self, alternatives: &[String]) -> bool {
        alternatives.iter().any(|word| self.terms.contains(word))
    }
}

fn push_truncated(text: &mut String, more: &str) {
    let room = MAX_BYTES.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room.min(more.len()))]);
    text.push(' ');
}

fn push_values(text: &mut String, value: &Value) {
    match value {
        Value::String(words) => push_truncated(text, words),
        Value::Number(number) => push_truncated(text, &number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| push_values(text, item)),
        Value::Object(fields) => fields.values().for_each(|value| push_values(text, value)),
        Value::Bool(_) | Value::Null => {}
    }
}

/// A trigger that names a tool is about that tool.
fn names_another_tool(trigger: &str, failure: &FailureText) -> bool {
    let trigger = trigger.to_lowercase();
    let names = trigger
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| {
            let (first, rest) = word.split_once('_').unwrap_or_default();
            !first.is_empty() && !rest.is_empty()
        });
    let mut names = names.peekable();
    let has_names = names.peek().is_some();
    has_names && !names.any(|name| name == failure.tool || failure.text.contains(name))
}

#[cfg(test)]
mod tests {
    use lango_domain::event::{Principal, SessionId};
    use serde_json::json;

    use super::*;

    fn fits(trigger: &str, tool: &str, args: Value, error: &str) -> bool {
        let (session, principal) = (SessionId::new("s"), Principal::local());
        let call = FailedCall {
            session,
            principal,
            tool: tool.to_owned(),
            args,
            error: error.to_owned(),
        };
        match_score(trigger, &FailureText::from_call(&call)).is_some()
    }

    #[test]
    fn a_trigger_fits_the_failure_that_it_is_about() {
        let cargo = || json!({ "command": "cargo build" });
        for trigger in [
            "exec_shell: cargo cannot reach the registry",
            "cargo build fails to reach the registry index",
            "cargo registry",
            "registry unreachable with cargo",
        ] {
            let error =
                "exit code 101\nerror: failed to get `serde`: could not reach the registry index";
            assert!(fits(trigger, "exec_shell", cargo(), error), "{trigger}");
        }
        let missing = "no file or folder `notes.txt` in the workspace /home/ann/project";
        for trigger in [
            "fs_read no file notes",
            "reading notes.txt",
            "no notes.txt in the workspace",
        ] {
            assert!(
                fits(trigger, "fs_read", json!({ "path": "notes.txt" }), missing),
                "{trigger}"
            );
        }
        assert!(fits(
            "timeout",
            "search_web",
            json!({}),
            "the request hit a timeout"
        ));
        assert!(fits(
            "한글 파일 이름",
            "fs_read",
            json!({ "path": "한글 이름.txt" }),
            "그런 파일 없음"
        ));
        assert!(fits(
            "Größe der Übertragung überschritten",
            "x_send",
            json!({}),
            "Übertragung abgelehnt: Größe überschritten"
        ));
    }

    #[test]
    fn nothing_unrelated_is_said() {
        let args = || json!({ "path": "notes.txt" });
        for trigger in [
            "fs_write: permission denied",
            "exec_shell",
            "fs_read",
            "it fails",
            "error",
            "the tool call fails with an error",
            "cargo cannot reach the registry",
            "permission denied when reading the ssh key of the deployment server",
            "",
            "🦀",
        ] {
            let error = "no file notes.txt; did you mean note.txt? permission is fine";
            assert!(!fits(trigger, "fs_read", args(), error), "{trigger}");
        }
        assert!(!fits(
            "no such file",
            "exec_shell",
            json!({}),
            &"x".repeat(1_000_000)
        ));
    }
}
