//! The offline model as a specialist: makes the calls that the phrases of its tools find in the
//! task.

use std::fmt::Write as _;

use lango_domain::markers::REJECT_MARKER;
use lango_domain::model::{ModelRequest, ToolCall, ToolCallResult, ToolDeclaration};
use serde_json::Value;

use super::features::RequestFeatures;
use super::reply::OfflineReply;
use super::router::softmax;
use super::task::OfflineTask;
use super::weights::{DIRECT, LABELS, ROUTING_WEIGHTS};
use super::{CONNECT_HINT, phrase_plan, small_talk};

/// Limits for rejecting a task: share of another agent, and own share.
const MIN_OTHER_SHARE: f32 = 0.9;
const MAX_OWN_SHARE: f32 = 0.05;
/// Prefix of an answer about something that was not done.
pub const NOT_DONE: &str = "Not done: ";
/// Maximum number of example phrases in an answer.
const MAX_EXAMPLES: usize = 8;
const MAX_REPORT_CHARS: usize = 20_000;

pub fn reply(assignment: &OfflineTask<'_>, request: &ModelRequest, is_alone: bool) -> OfflineReply {
    let planned = assignment
        .request_texts()
        .find_map(|text| phrase_plan::plan(text, &request.tools));
    let Some(planned) = planned else {
        return no_matching_phrase(assignment, request, is_alone);
    };
    let done = &assignment.completed_calls;
    let has_failed = done.last().is_some_and(|(_, result)| !result.ok);
    match planned.get(done.len()) {
        Some(step) if !has_failed => {
            let before = done
                .last()
                .map_or("", |(_, result)| result.content.text.as_str());
            OfflineReply::Call {
                name: step.tool.clone(),
                arguments: step.arguments(before),
                reason: None,
            }
        }
        _ if has_failed => OfflineReply::NotDone(report(done, &planned)),
        _ => OfflineReply::Text(report(done, &planned)),
    }
}

/// Handles a task that no phrase matches: rejects it, or explains which phrases work.
fn no_matching_phrase(
    assignment: &OfflineTask<'_>,
    request: &ModelRequest,
    is_alone: bool,
) -> OfflineReply {
    let agent = request.agent.as_str();
    let text = assignment.task.unwrap_or(assignment.request);
    let (best, best_share, own_share) = rate_fit(text, agent);
    if is_alone && best == DIRECT {
        return small_talk::answer(text, agent);
    }
    let belongs_to_another = best != agent
        && best != DIRECT
        && best_share >= MIN_OTHER_SHARE
        && own_share <= MAX_OWN_SHARE;
    if belongs_to_another && !is_alone && LABELS.contains(&agent) {
        return OfflineReply::Text(format!(
            "{REJECT_MARKER} this looks like work for the {best}"
        ));
    }
    OfflineReply::NotDone(explanation(agent, &request.tools))
}

fn rate_fit(text: &str, agent: &str) -> (&'static str, f32, f32) {
    let shares = softmax(&ROUTING_WEIGHTS.scores(&RequestFeatures::from_text(text).features));
    let best = (0..LABELS.len())
        .max_by(|a, b| shares[*a].total_cmp(&shares[*b]))
        .unwrap_or_default();
    let own = LABELS
        .iter()
        .position(|label| *label == agent)
        .map_or(0.0, |label| shares[label]);
    (LABELS[best], shares[best], own)
}

fn explanation(agent: &str, tools: &[ToolDeclaration]) -> String {
    let examples: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool.phrases.first())
        .map(String::as_str)
        .take(MAX_EXAMPLES)
        .collect();
    let mut text = format!(
        "{NOT_DONE}this looks like work for the {agent}, but without a language model I only follow set phrases"
    );
    if examples.is_empty() {
        text.push_str(", and there are none for this work.");
    } else {
        text.push_str(". These would work:");
        examples
            .iter()
            .for_each(|example| _ = write!(text, "\n  {}", display_phrase(example)));
    }
    format!("{text}\n{CONNECT_HINT}")
}

/// Formats a phrase as a user would type it: without optional words, with the first of each choice.
fn display_phrase(phrase: &str) -> String {
    let mut output = String::new();
    let mut rest = phrase;
    while let Some(at) = rest.find(['[', '(', '{']) {
        output.push_str(&rest[..at]);
        let close = match rest.as_bytes()[at] {
            b'[' => ']',
            b'(' => ')',
            _ => '}',
        };
        let end = rest[at..]
            .find(close)
            .map_or(rest.len(), |length| at + length);
        let inside = &rest[at + 1..end];
        match close {
            ')' => output.push_str(inside.split('|').next().unwrap_or_default()),
            '}' if inside.starts_with('_') => output.push('…'),
            '}' if !inside.contains('=') => {
                _ = write!(output, "<{}>", inside.split(':').next().unwrap_or_default())
            }
            _ => {}
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    output.push_str(rest);
    output.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Formats the results of the calls. A result that the next step used is left out.
fn report(done: &[(&ToolCall, ToolCallResult)], planned: &[phrase_plan::PlannedCall]) -> String {
    let mut parts = Vec::new();
    for (at, (call, result)) in done.iter().enumerate() {
        let is_used = planned
            .get(at + 1)
            .is_some_and(phrase_plan::PlannedCall::needs_previous_result)
            && at + 1 < done.len();
        if !result.ok {
            parts.insert(
                0,
                format!(
                    "{NOT_DONE}{} did not work: {}",
                    call.name,
                    result.content.text.trim()
                ),
            );
        } else if !is_used {
            parts.push(format_result(&result.content.text));
        }
    }
    match planned.len() - done.len() {
        0 => {}
        1 => parts.push("The next step was not done.".to_owned()),
        more => parts.push(format!("The next {more} steps were not done.")),
    }
    let report: String = parts.join("\n\n").chars().take(MAX_REPORT_CHARS).collect();
    if report.trim().is_empty() {
        "Done; there was nothing to show.".to_owned()
    } else {
        report
    }
}

/// Formats JSON as lines; other content stays as it is.
fn format_result(content: &str) -> String {
    match serde_json::from_str::<Value>(content) {
        Ok(Value::Object(fields)) if result_items(&fields).is_some() => {
            let items = result_items(&fields).into_iter().flatten();
            let (facts, others): (Vec<_>, Vec<_>) = items
                .map(|item| format_fact(item).ok_or(item))
                .partition(Result::is_ok);
            let others = others
                .into_iter()
                .filter_map(Result::err)
                .map(format_passage);
            let facts = facts.into_iter().flatten().collect::<Vec<_>>().join("\n");
            let parts: Vec<String> = others
                .chain([facts])
                .filter(|part| !part.is_empty())
                .collect();
            if parts.is_empty() {
                "There is nothing.".to_owned()
            } else {
                parts.join("\n\n")
            }
        }
        Ok(Value::Object(fields)) => {
            let lines = fields.iter().filter(|(_, value)| !value.is_null());
            lines
                .map(|(key, value)| format!("{}: {}", key.replace('_', " "), format_value(value)))
                .collect::<Vec<_>>()
                .join("\n")
        }
        Ok(Value::Array(items)) if items.is_empty() => "There is nothing.".to_owned(),
        Ok(Value::Array(items)) => items
            .iter()
            .map(|item| format!("- {}", format_value(item)))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => content.trim_end().to_owned(),
    }
}

/// Returns the listed items of a result: passages or facts.
fn result_items(fields: &serde_json::Map<String, Value>) -> Option<&Vec<Value>> {
    ["items", "edges"]
        .into_iter()
        .find_map(|key| fields.get(key)?.as_array())
}

/// Formats a fact as a sentence with its source; none if `item` is not a fact.
fn format_fact(item: &Value) -> Option<String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let (subject, predicate, object) = (text("subject")?, text("predicate")?, text("object")?);
    let when = match (text("valid_from"), text("valid_to")) {
        (None, None) => String::new(),
        (Some(from), None) => format!(", from {from}"),
        (None, Some(to)) => format!(", until {to}"),
        (Some(from), Some(to)) => format!(", from {from} until {to}"),
    };
    let source = text("source")
        .map(|source| format!(" ({source})"))
        .unwrap_or_default();
    Some(format!(
        "- {subject} {} {object}{when}{source}",
        predicate.replace('_', " ")
    ))
}

/// Formats a passage with its source; other items as plain values.
fn format_passage(item: &Value) -> String {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("text").is_empty() || text("source").is_empty() {
        return format!("- {}", format_value(item));
    }
    let range = |key: &str| {
        let range = item.get(key)?.as_array()?;
        let (first, last) = (range.first()?.as_u64()?, range.get(1)?.as_u64()?);
        Some(if first == last {
            format!(", {key} {first}")
        } else {
            format!(", {key} {first}-{last}")
        })
    };
    let location = range("lines")
        .or_else(|| range("pages"))
        .unwrap_or_default();
    let heading = if text("heading").is_empty() {
        String::new()
    } else {
        format!(" ({})", text("heading"))
    };
    format!(
        "{}\n— {}{location}{heading}",
        text("text").trim(),
        text("source")
    )
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => format!("\n{}", text.trim_end()),
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| format!("{key} {}", format_value(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}
