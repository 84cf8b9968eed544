//! Plans the calls of a request by the phrases of the available tools: one call, or several in
//! order.

use lango_domain::model::ToolDeclaration;
use serde_json::{Map, Value as Json};

use super::lexer::{Token, tokens};
use super::phrase::{ArgumentValue, FillSource, PhraseMatch, PhrasePattern};

/// Maximum number of steps in one request.
const MAX_STEPS: usize = 5;
/// Longer requests do not match phrases.
const MAX_BYTES: usize = 4_000;
/// Longer requests are planned as one step: trying all splits takes too long.
const MAX_TOKENS_IN_STEPS: usize = 40;
/// Length of the summary of a result.
const SUMMARY_LINES: usize = 12;
const SUMMARY_CHARS: usize = 1_200;

/// Filler words around a request.
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
/// Separators between two steps. The empty one is a comma or semicolon.
const STEP_SEPARATORS: [&[&str]; 6] = [
    &["and", "then"],
    &["then"],
    &["and", "afterwards"],
    &["after", "that"],
    &["and"],
    &[],
];

/// A planned call. Arguments may depend on the result of the step before.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCall {
    pub tool: String,
    arguments: Map<String, Json>,
    pending_arguments: Vec<(String, FillSource)>,
}

impl PlannedCall {
    /// Returns true if an argument is the result of the step before.
    pub fn needs_previous_result(&self) -> bool {
        !self.pending_arguments.is_empty()
    }

    /// Returns the arguments, filled in with the result of the step before.
    pub fn arguments(&self, previous_result: &str) -> Json {
        let mut arguments = self.arguments.clone();
        for (argument, source) in &self.pending_arguments {
            let text = match source {
                FillSource::Result => previous_result.to_owned(),
                FillSource::Summary => summary(previous_result),
            };
            arguments.insert(argument.clone(), Json::from(text));
        }
        Json::Object(arguments)
    }
}

/// Returns the calls that a request asks for; none if no phrase matches.
pub fn plan(request: &str, tools: &[ToolDeclaration]) -> Option<Vec<PlannedCall>> {
    if request.len() > MAX_BYTES {
        return None;
    }
    let all = tokens(request);
    let with_patterns = |tool| (tool, parse_phrases(tool));
    let patterns: Vec<_> = tools.iter().map(with_patterns).collect();
    let (_, calls) = plan_from(strip_fillers(strip_end(&all)), &patterns, 1)?;
    Some(calls)
}

fn parse_phrases(tool: &ToolDeclaration) -> Vec<PhrasePattern> {
    let phrases = tool.phrases.iter();
    phrases.map(|phrase| PhrasePattern::parse(phrase)).collect()
}

type ToolPatterns<'a> = [(&'a ToolDeclaration, Vec<PhrasePattern>)];

/// Returns the best plan for these tokens, with its weight. `number` is the step number.
fn plan_from(
    tokens: &[Token<'_>],
    patterns: &ToolPatterns<'_>,
    number: usize,
) -> Option<(f32, Vec<PlannedCall>)> {
    let mut best =
        plan_one_step(tokens, patterns, number).map(|(weight, step)| (weight, vec![step]));
    let is_one_step = number == MAX_STEPS
        || tokens.len() > MAX_TOKENS_IN_STEPS
        || best.is_some() && takes_all(tokens, patterns);
    if is_one_step {
        return best;
    }
    for at in 1..tokens.len() {
        let Some(rest) = STEP_SEPARATORS
            .iter()
            .find_map(|words| strip_separator(tokens, at, words))
        else {
            continue;
        };
        let Some((weight, step)) = plan_one_step(strip_fillers(&tokens[..at]), patterns, number)
        else {
            continue;
        };
        let Some((others, mut steps)) = plan_from(strip_fillers(rest), patterns, number + 1) else {
            continue;
        };
        if best
            .as_ref()
            .is_none_or(|(best_weight, _)| weight + others > *best_weight)
        {
            steps.insert(0, step);
            best = Some((weight + others, steps));
        }
    }
    best
}

/// Returns true if a phrase takes the whole request, such as "remind me to …": its parts are no steps.
fn takes_all(tokens: &[Token<'_>], patterns: &ToolPatterns<'_>) -> bool {
    let mut phrases = patterns.iter().flat_map(|(_, patterns)| patterns);
    phrases.any(|phrase| phrase.takes_all() && phrase.match_tokens(tokens).is_some())
}

/// Returns the tokens after the separator `words` at `at`. An empty separator requires a comma or
/// semicolon before `at`.
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

/// Strips a question mark that stands alone, as after French questions.
fn strip_end<'a, 't>(mut tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    while let Some((last, rest)) = tokens.split_last()
        && !last.is_quoted
        && Token::join(std::slice::from_ref(last)).is_empty()
    {
        tokens = rest;
    }
    tokens
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

/// Returns the call of the phrase with the most words of its own; captured words count against it.
fn plan_one_step(
    tokens: &[Token<'_>],
    patterns: &ToolPatterns<'_>,
    number: usize,
) -> Option<(f32, PlannedCall)> {
    let mut best: Option<(f32, PlannedCall)> = None;
    for (tool, tool_patterns) in patterns {
        for matched in tool_patterns
            .iter()
            .filter_map(|pattern| pattern.match_tokens(tokens))
        {
            let weight = matched.literal as f32 - 0.4 * matched.captured as f32;
            if best
                .as_ref()
                .is_none_or(|(best_weight, _)| weight > *best_weight)
                && let Some(step) = build_call(tool, matched, number)
            {
                best = Some((weight, step));
            }
        }
    }
    best
}

/// Builds a call if the arguments fit the tool's schema.
fn build_call(tool: &ToolDeclaration, matched: PhraseMatch, number: usize) -> Option<PlannedCall> {
    let mut step = PlannedCall {
        tool: tool.name.clone(),
        arguments: Map::new(),
        pending_arguments: Vec::new(),
    };
    for (argument, value) in matched.arguments {
        let schema = tool.parameters.get("properties")?.get(&argument)?;
        match value {
            ArgumentValue::Text(text) => {
                _ = step
                    .arguments
                    .insert(argument, parse_argument(&text, schema)?)
            }
            ArgumentValue::FromPrevious(source) if number > 1 => {
                step.pending_arguments.push((argument, source))
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

/// Converts the typed text to the type of the schema.
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

/// Returns the start of a text: a real summary needs a language model.
fn summary(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(SUMMARY_LINES)
        .collect();
    let truncated: String = lines.join("\n").chars().take(SUMMARY_CHARS).collect();
    let is_whole = truncated.len() >= text.trim().len();
    if is_whole {
        truncated
    } else {
        format!("{truncated}\n[the beginning; the offline model cannot summarise]")
    }
}
