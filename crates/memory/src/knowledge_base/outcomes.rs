//! Computes the outcomes of learnings from the events of finished turns. Pure.

use std::collections::HashSet;
use std::sync::Arc;

use lango_domain::event::{CallId, Event, EventBody, ToolCode, TurnId};
use lango_domain::knowledge::{Effect, LearningOutcome};
use serde_json::Value;

use lango_text::analyze;

/// Prefix of advice; the learning's id follows.
pub(super) const ADVICE_PREFIX: &str = "[learning ";

/// Returns at most one outcome for each time a learning was shown. The next related call of the same
/// tool in the same turn decides: success means it helped, the same failure means it did not. A
/// different failure decides nothing.
pub(super) fn outcomes_in(events: &[Arc<Event>]) -> Vec<LearningOutcome> {
    let calls = completed_calls(events);
    let mut outcomes = Vec::new();
    for (at, shown) in calls.iter().enumerate() {
        let Some((learning, advice)) = shown.advice else {
            continue;
        };
        let later = calls[at + 1..]
            .iter()
            .filter(|call| call.turn == shown.turn && call.tool == shown.tool);
        let effect = later
            .into_iter()
            .find_map(|call| effect(shown, call, advice));
        outcomes.extend(effect.map(|effect| LearningOutcome { learning, effect }));
    }
    outcomes
}

/// A call with its result.
struct CompletedCall<'a> {
    turn: &'a TurnId,
    tool: &'a str,
    args: &'a Value,
    /// The error, if the call failed.
    error: Option<&'a str>,
    advice: Option<(u64, &'a str)>,
}

fn completed_calls(events: &[Arc<Event>]) -> Vec<CompletedCall<'_>> {
    let mut open: Vec<(&TurnId, &CallId, &str, &Value)> = Vec::new();
    let mut completed = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ToolCall { id, tool, args } => open.push((&event.turn, id, tool, args)),
            EventBody::ToolResult {
                id,
                ok,
                error,
                code,
                advice,
                ..
            } => {
                let at = open
                    .iter()
                    .rposition(|(turn, call, ..)| **turn == event.turn && *call == id);
                let Some((turn, _, tool, args)) = at.map(|at| open.swap_remove(at)) else {
                    continue;
                };
                // A denied call or one that never ran does not count.
                if !ok && !matches!(code, Some(ToolCode::Failed | ToolCode::Timeout)) {
                    continue;
                }
                let error = if *ok {
                    None
                } else {
                    Some(error.as_deref().unwrap_or_default())
                };
                let advice = advice
                    .as_deref()
                    .and_then(|advice| Some((parse_learning_id(advice)?, advice)));
                completed.push(CompletedCall {
                    turn,
                    tool,
                    args,
                    error,
                    advice,
                });
            }
            _ => {}
        }
    }
    completed
}

fn parse_learning_id(advice: &str) -> Option<u64> {
    advice
        .strip_prefix(ADVICE_PREFIX)?
        .split_once(']')?
        .0
        .parse()
        .ok()
}

fn effect(shown: &CompletedCall<'_>, later: &CompletedCall<'_>, advice: &str) -> Option<Effect> {
    match (shown.error, later.error) {
        (_, None) if is_related_call(shown, later, advice) => Some(Effect::Helped),
        (Some(before), Some(now)) if is_same_failure(before, now) => Some(Effect::Failed),
        _ => None,
    }
}

/// Returns true if a call shares a term with an earlier call or with the advice for it.
fn is_related_call(shown: &CompletedCall<'_>, later: &CompletedCall<'_>, advice: &str) -> bool {
    let mut relevant_terms = argument_terms(shown.args);
    if relevant_terms.is_empty() {
        return true;
    }
    relevant_terms.extend(analyze(advice));
    argument_terms(later.args)
        .iter()
        .any(|word| relevant_terms.contains(word))
}

fn argument_terms(args: &Value) -> HashSet<String> {
    let mut text = String::new();
    let mut open = vec![args];
    while let Some(value) = open.pop() {
        match value {
            Value::String(string) => {
                text.push_str(string);
                text.push(' ');
            }
            Value::Number(number) => text.push_str(&format!("{number} ")),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            Value::Bool(_) | Value::Null => {}
        }
    }
    analyze(&text)
        .into_iter()
        .filter(|word| word.chars().count() > 1)
        .collect()
}

/// Returns true if the terms are equal, ignoring numbers, times and ids.
fn is_same_failure(before: &str, now: &str) -> bool {
    let plain = |text: &str| -> Vec<String> {
        analyze(text)
            .into_iter()
            .filter(|word| !word.contains(|c: char| c.is_numeric()))
            .take(60)
            .collect()
    };
    plain(before) == plain(now)
}

#[cfg(test)]
mod tests {
    use lango_domain::AgentName;
    use lango_domain::event::{Author, Branch, NewEvent, SessionId};
    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Log(Vec<Arc<Event>>);

    impl Log {
        fn add(&mut self, turn: &str, body: EventBody) {
            let agent = AgentName::new("operator").unwrap();
            let draft = NewEvent {
                turn: TurnId::new(turn),
                author: Author::Agent(agent.clone()),
                branch: Branch::root(&agent),
                at: jiff::Timestamp::UNIX_EPOCH,
                label: Default::default(),
                body,
            };
            let seq = self.0.len() as u64 + 1;
            self.0
                .push(Arc::new(draft.into_event(SessionId::new("s"), seq)));
        }

        fn call(&mut self, turn: &str, command: &str, result: Result<(), (&str, Option<&str>)>) {
            let id = CallId::new(format!("c{}", self.0.len()));
            let args = json!({ "command": command });
            self.add(
                turn,
                EventBody::ToolCall {
                    id: id.clone(),
                    tool: "exec_shell".into(),
                    args,
                },
            );
            let (ok, error, advice) = match result {
                Ok(()) => (true, None, None),
                Err((error, advice)) => (false, Some(error.to_owned()), advice.map(str::to_owned)),
            };
            let code = (!ok).then_some(ToolCode::Failed);
            let content = String::new();
            self.add(
                turn,
                EventBody::ToolResult {
                    id,
                    ok,
                    content,
                    attachments: Vec::new(),
                    error,
                    code,
                    untrusted: false,
                    advice,
                },
            );
        }

        fn outcomes(&self) -> Vec<(u64, Effect)> {
            outcomes_in(&self.0)
                .into_iter()
                .map(|outcome| (outcome.learning, outcome.effect))
                .collect()
        }
    }

    const ADVICE: Option<&str> =
        Some("[learning 7] When cargo cannot reach the registry: use --offline");

    #[test]
    fn success_counts_as_helped_and_the_same_failure_as_failed() {
        let mut log = Log::default();
        log.call("t1", "cargo build", Err(("no registry, attempt 1", ADVICE)));
        log.call("t1", "cargo build", Err(("no registry, attempt 2", ADVICE)));
        log.call("t1", "cargo build --offline", Ok(()));
        assert_eq!(log.outcomes(), [(7, Effect::Failed), (7, Effect::Helped)]);
    }

    #[test]
    fn unrelated_calls_decide_nothing() {
        let mut log = Log::default();
        log.call("t1", "cargo build", Err(("no registry", ADVICE)));
        log.call("t1", "ls", Ok(()));
        log.call(
            "t1",
            "cargo build --offline",
            Err(("the lock file needs an update", None)),
        );
        log.call("t2", "cargo build", Ok(()));
        assert_eq!(log.outcomes(), []);
        log.call(
            "t3",
            "cargo build",
            Err(("no registry", Some("use --offline"))),
        );
        log.call("t3", "cargo build", Ok(()));
        log.call(
            "t4",
            "cargo build",
            Err(("no registry", Some("[learning x] nonsense"))),
        );
        log.call("t4", "cargo build", Ok(()));
        assert_eq!(log.outcomes(), []);
    }

    #[test]
    fn a_later_call_decides_if_the_next_one_does_not() {
        let mut log = Log::default();
        log.call("t1", "cargo build", Err(("no registry", ADVICE)));
        log.call("t1", "cargo update", Err(("something else entirely", None)));
        log.call("t1", "cargo build --offline", Ok(()));
        assert_eq!(log.outcomes(), [(7, Effect::Helped)]);
    }

    #[test]
    fn ignores_results_without_calls() {
        let mut log = Log::default();
        let (content, error) = (String::new(), Some("x".to_owned()));
        let (code, advice) = (Some(ToolCode::Failed), ADVICE.map(str::to_owned));
        let id = CallId::new("unknown");
        log.add(
            "t",
            EventBody::ToolResult {
                id,
                ok: false,
                content,
                attachments: Vec::new(),
                error,
                code,
                untrusted: false,
                advice,
            },
        );
        assert_eq!(log.outcomes(), []);
    }
}
