//! Decides if a learning matches a failure, by terms and not by exact text.

use std::collections::HashSet;

use lango_domain::hooks::FailedCall;
use serde_json::Value;

use lango_text::{analyze, analyze_query};

/// Minimum share of a trigger's weight that has to occur in the failure.
const MIN_SHARE: f32 = 0.6;
/// Weight of a word that occurs in most failures.
const FREQUENT_WORD_WEIGHT: f32 = 0.3;
/// Minimum length of a word that is enough evidence alone.
const MIN_EVIDENCE_LETTERS: usize = 4;
/// Most bytes of the error and the arguments that are analyzed.
const MAX_BYTES: usize = 8_000;

/// Stems of words that occur in most failures.
const FREQUENT_WORDS: [&str; 27] = [
    "error", "fail", "failur", "tool", "call", "command", "problem", "issu", "wrong", "work",
    "code", "exit", "run", "use", "tri", "file", "cannot", "can", "could", "not", "no", "invalid",
    "messag", "say", "return", "doe", "happen",
];

/// Returns how well a trigger matches, from 0 to 1, or `None` if it is about something else.
pub(super) fn match_score(trigger: &str, failure: &FailureText) -> Option<f32> {
    if names_another_tool(trigger, failure) {
        return None;
    }
    let (mut found, mut total) = (0.0, 0.0);
    // Words that are neither frequent nor part of the tool's name, and those found in the failure.
    let (mut specific_count, mut evidence) = (0, Vec::new());
    for alternatives in analyze_query(trigger) {
        let is_common = alternatives
            .first()
            .is_some_and(|word| FREQUENT_WORDS.contains(&word.as_str()));
        let is_tool_term = failure.has_tool_term(&alternatives);
        let is_in_failure = failure.has_term(&alternatives);
        let weight = if is_common { FREQUENT_WORD_WEIGHT } else { 1.0 };
        total += weight;
        found += if is_in_failure || is_tool_term {
            weight
        } else {
            0.0
        };
        if !is_common && !is_tool_term {
            specific_count += 1;
            evidence.extend(is_in_failure.then_some(alternatives));
        }
    }
    let is_long = |word: &String| word.chars().count() >= MIN_EVIDENCE_LETTERS;
    let is_enough = match &evidence[..] {
        [] => false,
        [one] => specific_count <= 2 && one.iter().any(is_long),
        _ => true,
    };
    let share = found / total;
    (share >= MIN_SHARE && is_enough).then_some(share)
}

/// The terms of a failed call.
pub(super) struct FailureText {
    tool: String,
    tool_terms: HashSet<String>,
    /// Terms of the error and the arguments.
    terms: HashSet<String>,
    /// The error and the arguments in lower case.
    text: String,
}

impl FailureText {
    pub fn from_call(call: &FailedCall) -> Self {
        let mut text = String::new();
        push_truncated(&mut text, &call.error);
        push_values(&mut text, &call.args);
        Self {
            tool: call.tool.to_lowercase(),
            tool_terms: analyze(&call.tool).into_iter().collect(),
            terms: analyze(&text).into_iter().collect(),
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
    let remaining = MAX_BYTES.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(remaining.min(more.len()))]);
    text.push(' ');
}

fn push_values(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => push_truncated(text, string),
        Value::Number(number) => push_truncated(text, &number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| push_values(text, item)),
        Value::Object(fields) => fields.values().for_each(|value| push_values(text, value)),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Returns true if the trigger names tools, and none of them occurs in the failure.
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

    fn matches(trigger: &str, tool: &str, args: Value, error: &str) -> bool {
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
    fn matches_related_failures() {
        let cargo = || json!({ "command": "cargo build" });
        for trigger in [
            "exec_shell: cargo cannot reach the registry",
            "cargo build fails to reach the registry index",
            "cargo registry",
            "registry unreachable with cargo",
        ] {
            let error =
                "exit code 101\nerror: failed to get `serde`: could not reach the registry index";
            assert!(matches(trigger, "exec_shell", cargo(), error), "{trigger}");
        }
        let missing = "no file or folder `notes.txt` in the workspace /home/ann/project";
        for trigger in [
            "fs_read no file notes",
            "reading notes.txt",
            "no notes.txt in the workspace",
        ] {
            assert!(
                matches(trigger, "fs_read", json!({ "path": "notes.txt" }), missing),
                "{trigger}"
            );
        }
        assert!(matches(
            "timeout",
            "search_web",
            json!({}),
            "the request hit a timeout"
        ));
        assert!(matches(
            "한글 파일 이름",
            "fs_read",
            json!({ "path": "한글 이름.txt" }),
            "그런 파일 없음"
        ));
        assert!(matches(
            "Größe der Übertragung überschritten",
            "x_send",
            json!({}),
            "Übertragung abgelehnt: Größe überschritten"
        ));
    }

    #[test]
    fn ignores_unrelated_failures() {
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
            assert!(!matches(trigger, "fs_read", args(), error), "{trigger}");
        }
        assert!(!matches(
            "no such file",
            "exec_shell",
            json!({}),
            &"x".repeat(1_000_000)
        ));
    }
}
