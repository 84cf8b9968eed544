//! Agent files: a markdown file defines one agent, with facts in the front matter and the instruction in
//! the body.

use std::path::{Path, PathBuf};

use lango_domain::spanned::{SpannedError, SpannedValue, parse_yaml};
use lango_domain::{AgentName, AgentSpec, Prefix, Section, SpecOrigin};
use lango_text::{sanitize, token_estimate};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::embedded;

/// The cap for the facts of one agent in the routing table, in tokens (B41).
const MAX_ROUTING_TOKENS: usize = 400;

/// An error in a definition, with its file and line.
#[derive(Debug, thiserror::Error)]
#[error("{}:{}: {}", file.display(), error.line, error.message)]
pub struct AgentFileError {
    pub file: PathBuf,
    pub error: SpannedError,
}

/// The keys of the front matter.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FrontMatter {
    description: String,
    /// A list of prefixes, or a map from prefix to capability.
    #[serde(default)]
    prefixes: Value,
    #[serde(default)]
    keywords: Vec<String>,
    /// The keywords that are decisive on their own.
    #[serde(default)]
    decisive: Vec<String>,
    #[serde(default)]
    accepts: String,
    #[serde(default)]
    returns: String,
    #[serde(default)]
    cannot: Vec<String>,
    #[serde(default)]
    examples: Vec<String>,
    #[serde(default)]
    always_include: bool,
    order: Option<u32>,
}

/// Parses the definition in `text`. The file stem is the agent's name.
pub fn parse_agent_file(
    file: &Path,
    text: &str,
    origin: SpecOrigin,
) -> Result<AgentSpec, AgentFileError> {
    parse(file, text, origin).map_err(|error| AgentFileError {
        file: file.to_owned(),
        error,
    })
}

fn parse(file: &Path, text: &str, origin: SpecOrigin) -> Result<AgentSpec, SpannedError> {
    let name = agent_name(file)?;
    let (front, body) = split_front_matter(text)?;
    let in_file = |error: SpannedError| SpannedError::new(error.line + 1, error.message);
    let node = parse_yaml(&front).map_err(in_file)?;
    let facts: FrontMatter = node.deserialize().map_err(in_file)?;
    let line_of = |key: &str| node.line_of(&[key]) + 1;
    let prefixes = parse_prefixes(&facts.prefixes)
        .map_err(|message| SpannedError::new(line_of("prefixes"), message))?;
    if name == *AgentSpec::PLANNER && !prefixes.is_empty() {
        return Err(SpannedError::new(
            line_of("prefixes"),
            "the planner cannot have tools; use another agent name",
        ));
    }
    if facts.description.trim().is_empty() {
        return Err(SpannedError::new(
            line_of("description"),
            "`description` must not be empty",
        ));
    }
    let instruction = instruction(body)
        .map_err(|message| SpannedError::new(front.lines().count() + 3, message))?;
    let spec = AgentSpec {
        order: facts.order,
        description: sanitize::one_line(&facts.description),
        instruction,
        prefixes,
        keywords: one_line_each(&facts.keywords),
        decisive: one_line_each(&facts.decisive),
        accepts: sanitize::one_line(&facts.accepts),
        returns: sanitize::one_line(&facts.returns),
        cannot: one_line_each(&facts.cannot),
        examples: one_line_each(&facts.examples),
        always_include: facts.always_include || name == *AgentSpec::PLANNER,
        name,
        origin,
    };
    let is_keyword = |word: &&String| spec.keywords.contains(word);
    if let Some(word) = spec.decisive.iter().find(|word| !is_keyword(word)) {
        return Err(SpannedError::new(
            line_of("decisive"),
            format!("`{word}` is not one of the keywords"),
        ));
    }
    check_token_limit(&spec, &node)?;
    Ok(spec)
}

/// Returns the body with the shared text about rejecting a task.
fn instruction(body: &str) -> Result<String, String> {
    if body.trim().is_empty() {
        return Err("the instruction below the front matter is missing".to_owned());
    }
    let instruction = with_hand_back(body);
    match token_estimate::estimate(&instruction) {
        tokens if tokens > Section::MAX_TOKENS => Err(format!(
            "the instruction has about {tokens} tokens; the limit is {}",
            Section::MAX_TOKENS
        )),
        _ => Ok(instruction),
    }
}

/// Appends the text about rejecting a task, unless the instruction already contains the marker (S36).
pub fn with_hand_back(instruction: &str) -> String {
    let instruction = sanitize::strip_control_chars(instruction);
    if instruction.contains(lango_domain::markers::REJECT_MARKER) {
        return instruction.trim().to_owned();
    }
    format!(
        "{}\n\n{}",
        instruction.trim(),
        embedded::prompt("HANDING_BACK.md").trim()
    )
}

fn agent_name(file: &Path) -> Result<AgentName, SpannedError> {
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name = AgentName::new(stem)
        .map_err(|error| SpannedError::new(1, format!("the file's name: {error}")))?;
    if AgentName::RESERVED.contains(&name.as_str()) {
        return Err(SpannedError::new(
            1,
            format!("the name `{name}` is reserved"),
        ));
    }
    Ok(name)
}

/// Splits a file into front matter and body, without the `---` lines.
fn split_front_matter(text: &str) -> Result<(String, &str), SpannedError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rest = text;
    let mut front: Option<String> = None;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        match (&mut front, line.trim_end() == "---") {
            (None, true) => front = Some(String::new()),
            (None, false) => break,
            (Some(front), true) => return Ok((std::mem::take(front), after)),
            (Some(front), false) => front.push_str(line),
        }
        rest = after;
    }
    Err(match front {
        None => SpannedError::new(1, "the file must begin with a line `---`"),
        Some(_) => SpannedError::new(
            text.lines().count(),
            "the front matter is not closed by a line `---`",
        ),
    })
}

fn parse_prefixes(value: &Value) -> Result<Vec<Prefix>, String> {
    let prefix = |name: &str, capability: Option<&str>| match name.trim() {
        "" => Err(
            "a prefix must not be empty; use `*` to claim tools that no other agent claims"
                .to_owned(),
        ),
        name => Ok(Prefix {
            text: name.to_owned(),
            capability: capability.map(sanitize::one_line),
        }),
    };
    let invalid =
        || "`prefixes` must be a list of prefixes, or a map from prefix to capability".to_owned();
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .ok_or_else(invalid)
                    .and_then(|text| prefix(text, None))
            })
            .collect(),
        Value::Object(map) => map
            .iter()
            .map(|(text, capability)| {
                capability
                    .as_str()
                    .ok_or_else(invalid)
                    .and_then(|capability| prefix(text, Some(capability)))
            })
            .collect(),
        _ => Err(invalid()),
    }
}

fn one_line_each(texts: &[String]) -> Vec<String> {
    texts
        .iter()
        .map(|text| sanitize::one_line(text))
        .filter(|text| !text.is_empty())
        .collect()
}

fn check_token_limit(spec: &AgentSpec, node: &SpannedValue) -> Result<(), SpannedError> {
    let capabilities: Vec<String> = spec
        .prefixes
        .iter()
        .filter_map(|p| p.capability.clone())
        .collect();
    let facts = [
        ("description", spec.description.clone()),
        ("prefixes", capabilities.join(", ")),
        ("keywords", spec.keywords.join(", ")),
        ("accepts", spec.accepts.clone()),
        ("returns", spec.returns.clone()),
        ("cannot", spec.cannot.join("; ")),
        ("examples", spec.examples.join("; ")),
    ];
    let tokens = facts.map(|(key, text)| (key, token_estimate::estimate(&text)));
    let total: usize = tokens.iter().map(|(_, tokens)| tokens).sum();
    match tokens.iter().max_by_key(|(_, tokens)| *tokens) {
        Some((largest, tokens)) if total > MAX_ROUTING_TOKENS => Err(SpannedError::new(
            node.line_of(&[largest]) + 1,
            format!(
                "the front matter has about {total} tokens, but the routing table allows {MAX_ROUTING_TOKENS}; `{largest}` alone has {tokens}"
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, text: &str) -> Result<AgentSpec, String> {
        let file = PathBuf::from(name);
        parse_agent_file(&file, text, SpecOrigin::User(file.clone()))
            .map_err(|error| error.to_string())
    }

    const GOOD: &str = "---\ndescription: Reviews\n  changes.\nprefixes: [review_, 'lint_']\n---\n## What You Do\nReview.\n";

    /// S03
    #[test]
    fn a_file_defines_an_agent() {
        let spec = parse("reviewer.md", GOOD).unwrap();
        assert_eq!(spec.name.as_str(), "reviewer");
        assert_eq!(spec.description, "Reviews changes.");
        assert_eq!(
            spec.prefixes
                .iter()
                .map(|p| p.text.as_str())
                .collect::<Vec<_>>(),
            ["review_", "lint_"]
        );
        assert!(
            spec.instruction.starts_with("## What You Do\nReview.")
                && spec.instruction.contains("[REJECT]")
        );
    }

    #[test]
    fn accepts_windows_line_ends_and_a_byte_order_mark() {
        let text = format!("\u{feff}{}", GOOD.replace('\n', "\r\n"));
        assert_eq!(parse("reviewer.md", &text).unwrap().prefixes.len(), 2);
    }

    fn assert_error(name: &str, text: &str, expected: &str) {
        let error = parse(name, text).unwrap_err();
        assert!(
            error.contains(expected),
            "{error}\n  should contain\n{expected}"
        );
    }

    #[test]
    fn errors_in_the_front_matter_have_a_file_and_a_line() {
        for (front_matter, expected) in [
            ("- x", "a.md:2: expected a table"),
            ("description: [x", "a.md:"),
            ("keywords: [y]", "missing field `description`"),
            (
                "description: ' '",
                "a.md:2: `description` must not be empty",
            ),
            (
                "description: x\nkeyword: [y]",
                "a.md:3: unknown key `keyword`; did you mean `keywords`?",
            ),
            (
                "description: x\nalwaysInclude: maybe",
                "a.md:3: `alwaysInclude`",
            ),
            (
                "description: x\nprefixes: 7",
                "a.md:3: `prefixes` must be a list",
            ),
            (
                "description: x\nprefixes: ['']",
                "a.md:3: a prefix must not be empty",
            ),
            (
                "description: x\nkeywords: [a]\ndecisive: [b]",
                "a.md:4: `b` is not one of the keywords",
            ),
        ] {
            assert_error("a.md", &format!("---\n{front_matter}\n---\nbody"), expected);
        }
    }

    #[test]
    fn errors_in_names_and_parts_have_a_file_and_a_line() {
        let phrases = vec!["some phrase"; 300].join(", ");
        let long_facts = format!("---\ndescription: x\nkeywords: [{phrases}]\n---\nbody");
        let long_body = format!("---\ndescription: x\n---\n{}", "word ".repeat(9_000));
        let unclosed = "---\ndescription: x\nbody";
        let no_body = "---\ndescription: x\n---\n \n";
        for (name, text, expected) in [
            ("a.md", "no front matter", "a.md:1: the file must begin"),
            ("a.md", unclosed, "a.md:3: the front matter is not closed"),
            ("a.md", no_body, "the instruction below the front matter is"),
            ("a.md", &long_facts, "a.md:3: the front matter has about"),
            ("a.md", &long_body, "a.md:4: the instruction has about"),
            ("A B.md", GOOD, "A B.md:1: the file's name"),
            ("user.md", GOOD, "user.md:1: the name `user` is reserved"),
            (
                "planner.md",
                GOOD,
                "planner.md:4: the planner cannot have tools",
            ),
        ] {
            assert_error(name, text, expected);
        }
    }
}
