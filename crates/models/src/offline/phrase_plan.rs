//! From a request to calls, by the phrases of the tools at hand: one, or several in order.

use lango_domain::model::ToolDeclaration;
use serde_json::{Map, Value as Json};

use super::lexer::{Token, tokens};
use super::phrase::{ArgumentValue, FillSource, PhraseMatch, PhrasePattern};

/// At most so many steps in one request.
const MAX_STEPS: usize = 5;
/// A longer request is none that phrases were written for.
const MAX_BYTES: usize = 4_000;
/// A request of more tokens is one step: looking for several takes too long.
const MAX_TOKENS_IN_STEPS: usize = 40;
/// How much of a result stands for it.
const SUMMARY_LINES: usize = 12;
const SUMMARY_CHARS: usize = 1_200;

/// Words around a request that change nothing about it.
const LEADING_FILLERS: [&[&str]; 20] = [
    &["please"],
    &["pls"],
    &["can", "you"],
    &["could", "you"],
    &["would", "you"],
    &["will", "you"],
    &["kindly"],
    &["hey"],
    &["hi"],
    &["lango"],
    &["now"],
    &["just"],
    &["i", "want", "you", "to"],
    &["i", "need", "you", "to"],
    &["id", "like", "you", "to"],
    &["go", "ahead", "and"],
    &["lets"],
    &["bitte"],
    &["por", "favor"],
    &["ok"],
];
const TRAILING_FILLERS: [&[&str]; 8] = [
    &["please"],
    &["pls"],
    &["for", "me"],
    &["now"],
    &["thanks"],
    &["thank", "you"],
    &["bitte"],
    &["right", "now"],
];
/// What stands between two steps.
const STEP_SEPARATORS: [&[&str]; 6] = [
    &["and", "then"],
    &["then"],
    &["and", "afterwards"],
    &["after", "that"],
    &["and"],
    &[],
];

/// One call to make; arguments may wait for the result before.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCall {
    pub tool: String,
    arguments: Map<String, Json>,
    pending_arguments: Vec<(String, FillSource)>,
}

impl PlannedCall {
    /// Whether it is made of what the step before gave.
    pub fn needs_previous_result(&self) -> bool {
        !self.pending_arguments.is_empty()
    }

    /// The arguments, with what the step before gave.
    pub fn arguments(&self, before: &str) -> Json {
        let mut arguments = self.arguments.clone();
        for (argument, filling) in &self.pending_arguments {
            let text = match filling {
                FillSource::Result => before.to_owned(),
                FillSource::Summary => summary(before),
            };
            arguments.insert(argument.clone(), Json::from(text));
        }
        Json::Object(arguments)
    }
}

/// The steps that a request asks for; none when it has no phrase's form.
pub fn plan(request: &str, tools: &[ToolDeclaration]) -> Option<Vec<PlannedCall>> {
    if request.len() > MAX_BYTES {
        return None;
    }
    let all = tokens(request);
    let known: Vec<(&ToolDeclaration, Vec<PhrasePattern>)> = tools
        .iter()
        .map(|tool| {
            (
                tool,
                tool.phrases
                    .iter()
                    .map(|phrase| PhrasePattern::parse(phrase))
                    .collect(),
            )
        })
        .collect();
    let planned = plan_from(strip_fillers(&all), &known, 1)?;
    Some(planned.1)
}

type ToolPatterns<'a> = [(&'a ToolDeclaration, Vec<PhrasePattern>)];

/// The best reading of these tokens, and how much speaks for it.
fn plan_from(
    tokens: &[Token<'_>],
    known: &ToolPatterns<'_>,
    number: usize,
) -> Option<(f32, Vec<PlannedCall>)> {
    let mut best = plan_one_step(tokens, known, number).map(|(weight, step)| (weight, vec![step]));
    if number == MAX_STEPS || tokens.len() > MAX_TOKENS_IN_STEPS {
        return best;
    }
    for at in 1..tokens.len() {
        let Some(rest) = STEP_SEPARATORS
            .iter()
            .find_map(|words| strip_separator(tokens, at, words))
        else {
            continue;
        };
        let Some((weight, step)) = plan_one_step(strip_fillers(&tokens[..at]), known, number)
        else {
            continue;
        };
        let Some((others, mut steps)) = plan_from(strip_fillers(rest), known, number + 1) else {
            continue;
        };
        if best
            .as_ref()
            .is_none_or(|(found, _)| weight + others > *found)
        {
            steps.insert(0, step);
            best = Some((weight + others, steps));
        }
    }
    best
}

/// What follows `words` at that place; without words a comma or semicolon must stand before it.
fn strip_separator<'a, 't>(
    tokens: &'a [Token<'t>],
    at: usize,
    words: &[&str],
) -> Option<&'a [Token<'t>]> {
    if words.is_empty() {
        return tokens[at - 1].ends_clause.then_some(&tokens[at..]);
    }
    strip_words(&tokens[at..], words)
}

fn strip_words<'a, 't>(tokens: &'a [Token<'t>], words: &[&str]) -> Option<&'a [Token<'t>]> {
    let (head, rest) = tokens.split_at_checked(words.len())?;
    let same = head
        .iter()
        .zip(words)
        .all(|(token, word)| !token.is_quoted && token.normalized == *word);
    (same && !rest.is_empty()).then_some(rest)
}

fn strip_fillers<'a, 't>(mut tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    while let Some(rest) = LEADING_FILLERS
        .iter()
        .find_map(|words| strip_words(tokens, words))
    {
        tokens = rest;
    }
    while let Some(rest) = TRAILING_FILLERS.iter().find_map(|words| {
        let at = tokens.len().checked_sub(words.len()).filter(|at| *at > 0)?;
        let tail = &tokens[at..];
        tail.iter()
            .zip(*words)
            .all(|(token, word)| !token.is_quoted && token.normalized == *word)
            .then(|| &tokens[..at])
    }) {
        tokens = rest;
    }
    tokens
}

/// The phrase with most words of its own; what goes into arguments counts against it.
fn plan_one_step(
    tokens: &[Token<'_>],
    known: &ToolPatterns<'_>,
    number: usize,
) -> Option<(f32, PlannedCall)> {
    let mut best: Option<(f32, PlannedCall)> = None;
    for (tool, patterns) in known {
        for taken in patterns
            .iter()
            .filter_map(|pattern| pattern.match_tokens(tokens))
        {
            let weight = taken.literal as f32 - 0.4 * taken.captured as f32;
            if best.as_ref().is_none_or(|(found, _)| weight > *found)
                && let Some(step) = build_call(tool, taken, number)
            {
                best = Some((weight, step));
            }
        }
    }
    best
}

/// A call, if the arguments fit the tool's schema.
fn build_call(tool: &ToolDeclaration, taken: PhraseMatch, number: usize) -> Option<PlannedCall> {
    let mut step = PlannedCall {
        tool: tool.name.clone(),
        arguments: Map::new(),
        pending_arguments: Vec::new(),
    };
    for (argument, value) in taken.arguments {
        let schema = tool.parameters.get("properties")?.get(&argument)?;
        match value {
            ArgumentValue::Text(text) => {
                _ = step
                    .arguments
                    .insert(argument, parse_argument(&text, schema)?)
            }
            ArgumentValue::FromPrevious(filling) if number > 1 => {
                step.pending_arguments.push((argument, filling))
            }
            ArgumentValue::FromPrevious(_) => return None,
        }
    }
    let required = tool
        .parameters
        .get("required")
        .and_then(Json::as_array)
        .cloned()
        .unwrap_or_default();
    let is_given = |name: &str| {
        step.arguments.contains_key(name)
            || step
                .pending_arguments
                .iter()
                .any(|(argument, _)| argument == name)
    };
    required
        .iter()
        .filter_map(Json::as_str)
        .all(is_given)
        .then_some(step)
}

/// What was typed, as the schema wants it.
fn parse_argument(text: &str, schema: &Json) -> Option<Json> {
    if let Some(allowed) = schema.get("enum").and_then(Json::as_array) {
        return allowed
            .iter()
            .find(|value| {
                value
                    .as_str()
                    .is_some_and(|value| value.eq_ignore_ascii_case(text))
            })
            .cloned();
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => vec!["string"],
    };
    kinds.iter().find_map(|kind| match *kind {
        "string" => Some(Json::from(text)),
        "integer" => text.parse::<i64>().ok().map(Json::from),
        "number" => text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(Json::from),
        "boolean" => text.parse::<bool>().ok().map(Json::from),
        "array" => Some(Json::from(
            text.split(',').map(str::trim).collect::<Vec<_>>(),
        )),
        _ => None,
    })
}

/// The beginning: whoever wants to have it understood needs a language model.
fn summary(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(SUMMARY_LINES)
        .collect();
    let cut: String = lines.join("\n").chars().take(SUMMARY_CHARS).collect();
    let all = cut.len() >= text.trim().len();
    if all {
        cut
    } else {
        format!("{cut}\n[the beginning; the offline model cannot summarise]")
    }
}
