//! What came of advice, read out of the events of turns that ended. Pure.

use std::collections::HashSet;
use std::sync::Arc;

use lango_domain::event::{CallId, Event, EventBody, ToolCode, TurnId};
use lango_domain::knowledge::{Effect, LearningOutcome};
use serde_json::Value;

use crate::lexical::analyze;

/// How advice begins; the learning's number follows.
pub(super) const ADVICE_PREFIX: &str = "[learning ";

/// One outcome at most for each time that a learning was shown: the next call of the same tool in the same turn, on the
/// same matter, decides. Another failure than before decides nothing.
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
    /// Why it did not work.
    error: Option<&'a str>,
    advice: Option<(u64, &'a str)>,
}

fn completed_calls(events: &[Arc<Event>]) -> Vec<CompletedCall<'_>> {
    let mut open: Vec<(&TurnId, &CallId, &str, &Value)> = Vec::new();
    let mut answered = Vec::new();
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
                // What was denied or never ran says nothing about the tool.
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
                answered.push(CompletedCall {
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
    answered
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

/// Whether a call has to do with an earlier one, or with what was advised about it: some word of it is the same.
fn is_related_call(shown: &CompletedCall<'_>, later: &CompletedCall<'_>, advice: &str) -> bool {
    let mut wanted = argument_terms(shown.args);
    if wanted.is_empty() {
        return true;
    }
    wanted.extend(analyze(advice));
    argument_terms(later.args)
        .iter()
        .any(|word| wanted.contains(word))
}

fn argument_terms(args: &Value) -> HashSet<String> {
    let mut text = String::new();
    let mut open = vec![args];
    while let Some(value) = open.pop() {
        match value {
            Value::String(words) => {
                text.push_str(words);
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

/// The same words, whatever numbers, times and ids stand in them.
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
    fn working_afterwards_helps_and_failing_again_does_not() {
        let mut log = Log::default();
        log.call("t1", "cargo build", Err(("no registry, attempt 1", ADVICE)));
        log.call("t1", "cargo build", Err(("no registry, attempt 2", ADVICE)));
        log.call("t1", "cargo build --offline", Ok(()));
        assert_eq!(log.outcomes(), [(7, Effect::Failed), (7, Effect::Helped)]);
    }

    #[test]
    fn what_has_nothing_to_do_with_it_decides_nothing() {
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
    fn a_later_call_decides_where_the_next_one_does_not() {
        let mut log = Log::default();
        log.call("t1", "cargo build", Err(("no registry", ADVICE)));
        log.call("t1", "cargo update", Err(("something else entirely", None)));
        log.call("t1", "cargo build --offline", Ok(()));
        assert_eq!(log.outcomes(), [(7, Effect::Helped)]);
    }

    #[test]
    fn results_without_calls_are_survived() {
        let mut log = Log::default();
        let (content, error) = (String::new(), Some("x".to_owned()));
        let (code, advice) = (Some(ToolCode::Failed), ADVICE.map(str::to_owned));
        let id = CallId::new("nobody");
        log.add(
            "t",
            EventBody::ToolResult {
                id,
                ok: false,
                content,
                error,
                code,
                untrusted: false,
                advice,
            },
        );
        assert_eq!(log.outcomes(), []);
    }
}
