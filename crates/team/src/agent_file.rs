//! One markdown file is one agent: front matter with the facts, a body with the instruction.

use std::path::{Path, PathBuf};

use lango_domain::spanned::{SpannedError, SpannedValue, parse_yaml};
use lango_domain::{AgentName, AgentSpec, Prefix, Section, SpecOrigin, text, token_estimate};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::embedded;

/// The most that the facts of one agent may weigh in the routing table, in tokens (B41).
const MAX_ROUTING_TOKENS: usize = 400;

/// What is wrong with a definition, and where.
#[derive(Debug, thiserror::Error)]
#[error("{}:{}: {}", file.display(), error.line, error.message)]
pub struct AgentFileError {
    pub file: PathBuf,
    pub error: SpannedError,
}

/// What the front matter may say.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FrontMatter {
    description: String,
    /// A list of prefixes, or a map from prefix to what its tools can do.
    #[serde(default)]
    prefixes: Value,
    #[serde(default)]
    keywords: Vec<String>,
    /// Those keywords that decide by themselves.
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

/// Reads the definition in `text`; the file's stem is the agent's name.
pub fn parse_agent_file(
    file: &Path,
    text: &str,
    origin: SpecOrigin,
) -> Result<AgentSpec, AgentFileError> {
    parse(file, text, origin).map_err(|mistake| AgentFileError {
        file: file.to_owned(),
        error: mistake,
    })
}

fn parse(file: &Path, text: &str, origin: SpecOrigin) -> Result<AgentSpec, SpannedError> {
    let name = agent_name(file)?;
    let (front, body) = split_front_matter(text)?;
    let node = parse_yaml(&front).map_err(|m| SpannedError::new(m.line + 1, m.message))?;
    let facts: FrontMatter = node
        .deserialize()
        .map_err(|m| SpannedError::new(m.line + 1, m.message))?;
    let line_of = |key: &str| node.line_of(&[key]) + 1;
    let prefixes = parse_prefixes(&facts.prefixes)
        .map_err(|why| SpannedError::new(line_of("prefixes"), why))?;
    if name == *AgentSpec::PLANNER && !prefixes.is_empty() {
        return Err(SpannedError::new(
            line_of("prefixes"),
            "the planner never holds tools; give this agent another name",
        ));
    }
    if facts.description.trim().is_empty() {
        return Err(SpannedError::new(
            line_of("description"),
            "`description` must not be empty",
        ));
    }
    let instruction =
        instruction(body).map_err(|why| SpannedError::new(front.lines().count() + 3, why))?;
    let spec = AgentSpec {
        order: facts.order,
        description: text::one_line(&facts.description),
        instruction,
        prefixes,
        keywords: one_line_each(&facts.keywords),
        decisive: one_line_each(&facts.decisive),
        accepts: text::one_line(&facts.accepts),
        returns: text::one_line(&facts.returns),
        cannot: one_line_each(&facts.cannot),
        examples: one_line_each(&facts.examples),
        always_include: facts.always_include || name == *AgentSpec::PLANNER,
        name,
        origin,
    };
    if let Some(stray) = spec
        .decisive
        .iter()
        .find(|word| !spec.keywords.contains(word))
    {
        return Err(SpannedError::new(
            line_of("decisive"),
            format!("`{stray}` is not one of the keywords"),
        ));
    }
    check_token_limit(&spec, &node)?;
    Ok(spec)
}

/// The body, with the words for handing a task back that every specialist shares.
fn instruction(body: &str) -> Result<String, String> {
    if body.trim().is_empty() {
        return Err("the instruction below the front matter is missing".to_owned());
    }
    let whole = with_hand_back(body);
    match token_estimate::estimate(&whole) {
        weight if weight > Section::MAX_TOKENS => Err(format!(
            "the instruction weighs about {weight} tokens; at most {} fit",
            Section::MAX_TOKENS
        )),
        _ => Ok(whole),
    }
}

/// An instruction always says how a task is handed back, whoever wrote it (S36).
pub(crate) fn with_hand_back(instruction: &str) -> String {
    let instruction = text::strip_control_chars(instruction);
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

/// Front matter and body, each without its `---` lines.
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

fn parse_prefixes(written: &Value) -> Result<Vec<Prefix>, String> {
    let prefix = |name: &str, capability: Option<&str>| match name.trim() {
        "" => Err("a prefix must not be empty; `*` claims what nobody else does".to_owned()),
        name => Ok(Prefix {
            text: name.to_owned(),
            capability: capability.map(text::one_line),
        }),
    };
    let wrong = || {
        "`prefixes` is a list of prefixes, or a map from prefix to what its tools can do".to_owned()
    };
    match written {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .ok_or_else(wrong)
                    .and_then(|text| prefix(text, None))
            })
            .collect(),
        Value::Object(map) => map
            .iter()
            .map(|(text, phrase)| {
                phrase
                    .as_str()
                    .ok_or_else(wrong)
                    .and_then(|phrase| prefix(text, Some(phrase)))
            })
            .collect(),
        _ => Err(wrong()),
    }
}

fn one_line_each(texts: &[String]) -> Vec<String> {
    texts
        .iter()
        .map(|text| text::one_line(text))
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
    let weights = facts.map(|(key, text)| (key, token_estimate::estimate(&text)));
    let total: usize = weights.iter().map(|(_, weight)| weight).sum();
    match weights.iter().max_by_key(|(_, weight)| *weight) {
        Some((heaviest, weight)) if total > MAX_ROUTING_TOKENS => Err(SpannedError::new(
            node.line_of(&[heaviest]) + 1,
            format!(
                "the front matter weighs about {total} tokens, at most {MAX_ROUTING_TOKENS} fit the routing table; `{heaviest}` alone weighs {weight}"
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<AgentSpec, String> {
        let file = PathBuf::from(name);
        parse_agent_file(&file, text, SpecOrigin::User(file.clone()))
            .map_err(|mistake| mistake.to_string())
    }

    const GOOD: &str = "---\ndescription: Reviews\n  changes.\nprefixes: [review_, 'lint_']\n---\n## What You Do\nReview.\n";

    /// S03
    #[test]
    fn a_file_is_the_whole_definition() {
        let spec = read("reviewer.md", GOOD).unwrap();
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
    fn windows_line_ends_and_a_byte_order_mark_are_read() {
        let text = format!("\u{feff}{}", GOOD.replace('\n', "\r\n"));
        assert_eq!(read("reviewer.md", &text).unwrap().prefixes.len(), 2);
    }

    #[test]
    fn each_mistake_is_shown_with_file_and_line() {
        let long = format!(
            "---\ndescription: x\nkeywords: [{}]\n---\nbody",
            vec!["some phrase"; 300].join(", ")
        );
        for (name, text, expected) in [
            ("a.md", "no front matter", "a.md:1: the file must begin"),
            (
                "a.md",
                "---\ndescription: x\nbody",
                "a.md:3: the front matter is not closed",
            ),
            (
                "a.md",
                "---\ndescription: x\nkeyword: [y]\n---\nbody",
                "a.md:3: unknown key `keyword`; did you mean `keywords`?",
            ),
            (
                "a.md",
                "---\nkeywords: [y]\n---\nbody",
                "missing field `description`",
            ),
            (
                "a.md",
                "---\ndescription: ' '\n---\nbody",
                "a.md:2: `description` must not be empty",
            ),
            (
                "a.md",
                "---\ndescription: x\nalwaysInclude: maybe\n---\nbody",
                "a.md:3: `alwaysInclude`",
            ),
            (
                "a.md",
                "---\ndescription: x\nprefixes: 7\n---\nbody",
                "a.md:3: `prefixes` is a list",
            ),
            (
                "a.md",
                "---\ndescription: x\nprefixes: ['']\n---\nbody",
                "a.md:3: a prefix must not be empty",
            ),
            ("a.md", "---\ndescription: [x\n---\nbody", "a.md:"),
            (
                "a.md",
                "---\ndescription: x\n---\n \n",
                "the instruction below the front matter is missing",
            ),
            ("A B.md", GOOD, "A B.md:1: the file's name"),
            ("user.md", GOOD, "user.md:1: the name `user` is reserved"),
            (
                "a.md",
                "---\ndescription: x\nkeywords: [a]\ndecisive: [b]\n---\nbody",
                "a.md:4: `b` is not one of the keywords",
            ),
            (
                "a.md",
                "---\n- x\n---\nbody",
                "a.md:2: this must be a table",
            ),
            (
                "planner.md",
                GOOD,
                "planner.md:4: the planner never holds tools",
            ),
            ("a.md", &long, "a.md:3: the front matter weighs about"),
            (
                "a.md",
                &format!("---\ndescription: x\n---\n{}", "word ".repeat(9_000)),
                "a.md:4: the instruction weighs",
            ),
        ] {
            let mistake = read(name, text).unwrap_err();
            assert!(
                mistake.contains(expected),
                "{mistake}\n  should contain\n{expected}"
            );
        }
    }
}
