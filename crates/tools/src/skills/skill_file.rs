//! Parses a `SKILL.md`: front matter between two lines `---`, then instructions in markdown.

use lango_domain::spanned::{SpannedEntry, SpannedError, SpannedKind, SpannedValue, parse_yaml};
use lango_text::sanitize;
use serde_json::Value;

use super::quote;

const MAX_NAME_LEN: usize = 64;
const MAX_DESCRIPTION_LEN: usize = 1024;
const MAX_COMPATIBILITY_LEN: usize = 500;
const KNOWN_KEYS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// The content of a `SKILL.md`.
#[derive(Debug)]
pub(super) struct SkillFile {
    pub name: String,
    pub name_line: usize,
    pub description: String,
    pub allowed_tools: Vec<String>,
    pub body: String,
    /// The first line of the body.
    pub body_line: usize,
    /// Keys that the format does not define, with their lines.
    pub unknown_keys: Vec<(String, usize)>,
}

pub(super) fn parse(source: &str) -> Result<SkillFile, SpannedError> {
    let (front, body) = split_front_matter(source)?;
    let entries = parse_entries(front)?;
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let required = |key: &str| {
        find(key)
            .ok_or_else(|| SpannedError::new(1, format!("`{key}` is missing in the front matter")))
    };
    let name = required("name")?;
    let name_line = name.line;
    let name = as_text(name)?.to_owned();
    check_name(&name).map_err(|reason| SpannedError::new(name_line, reason))?;
    let description_entry = required("description")?;
    let description = normalize_description(as_text(description_entry)?)
        .map_err(|reason| SpannedError::new(description_entry.line, reason))?;
    if let Some(license) = find("license") {
        as_text(license)?;
    }
    if let Some(compatibility) = find("compatibility") {
        check_compatibility(compatibility)?;
    }
    if let Some(metadata) = find("metadata") {
        check_metadata(metadata)?;
    }
    let unknown = entries
        .iter()
        .filter(|entry| !KNOWN_KEYS.contains(&entry.key.as_str()));
    Ok(SkillFile {
        allowed_tools: find("allowed-tools").map_or(Ok(Vec::new()), parse_tool_names)?,
        unknown_keys: unknown
            .map(|entry| (sanitize::one_line(&entry.key), entry.line))
            .collect(),
        body: body.trim().to_owned(),
        body_line: front.lines().count() + 3,
        name,
        name_line,
        description,
    })
}

/// Checks the name of a skill, and returns the reason if it is invalid.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let has_stray_hyphens = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.is_empty()
        || name.chars().count() > MAX_NAME_LEN
        || !name.chars().all(is_allowed)
        || has_stray_hyphens
    {
        return Err(format!(
            "`name` must have 1 to {MAX_NAME_LEN} characters of a-z, 0-9 and single hyphens between them"
        ));
    }
    Ok(())
}

/// Returns the description on one line, without hidden characters, because a model reads it before
/// the skill is trusted.
pub(super) fn normalize_description(source: &str) -> Result<String, String> {
    let line = sanitize::one_line(&quote::strip_hidden(source));
    match line.chars().count() {
        0 => Err("`description` must say what the skill does and when to use it".to_owned()),
        length if length > MAX_DESCRIPTION_LEN => Err(format!(
            "`description` has {length} characters; it may have at most {MAX_DESCRIPTION_LEN}"
        )),
        _ => Ok(line),
    }
}

/// Splits front matter and body. The opening `---` is line 1.
fn split_front_matter(source: &str) -> Result<(&str, &str), SpannedError> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut lines = source.split_inclusive('\n');
    let opening = lines.next().filter(|line| line.trim_end() == "---");
    let start = opening
        .ok_or_else(|| SpannedError::new(1, "the file must begin with a line `---`"))?
        .len();
    let mut end = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((&source[start..end], &source[end + line.len()..]));
        }
        end += line.len();
    }
    Err(SpannedError::new(
        source.lines().count(),
        "the front matter is not closed by a line `---`",
    ))
}

/// Parses the keys of the front matter, with their lines in the file.
fn parse_entries(front: &str) -> Result<Vec<SpannedEntry>, SpannedError> {
    let node =
        parse_yaml(front).map_err(|error| SpannedError::new(error.line + 1, error.message))?;
    let SpannedKind::Map(mut entries) = node.kind else {
        return Err(SpannedError::new(
            node.line + 1,
            "the front matter must be a table of keys",
        ));
    };
    for entry in &mut entries {
        entry.line += 1;
    }
    Ok(entries)
}

fn as_text(entry: &SpannedEntry) -> Result<&str, SpannedError> {
    match &entry.value.kind {
        SpannedKind::Scalar(Value::String(source)) => Ok(source),
        _ => Err(SpannedError::new(
            entry.line,
            format!("`{}` must be text; put it in quotes", entry.key),
        )),
    }
}

fn check_compatibility(entry: &SpannedEntry) -> Result<(), SpannedError> {
    if as_text(entry)?.chars().count() > MAX_COMPATIBILITY_LEN {
        let message =
            format!("`compatibility` may have at most {MAX_COMPATIBILITY_LEN} characters");
        return Err(SpannedError::new(entry.line, message));
    }
    Ok(())
}

/// Checks that `metadata` is a flat map. Allows numbers, because `version: 1.0` is common.
fn check_metadata(entry: &SpannedEntry) -> Result<(), SpannedError> {
    let is_plain = |node: &SpannedValue| matches!(node.kind, SpannedKind::Scalar(_));
    match &entry.value.kind {
        SpannedKind::Map(entries) if entries.iter().all(|inner| is_plain(&inner.value)) => Ok(()),
        SpannedKind::Scalar(Value::Null) => Ok(()),
        _ => Err(SpannedError::new(
            entry.line,
            "`metadata` must be a map from keys to text",
        )),
    }
}

fn parse_tool_names(entry: &SpannedEntry) -> Result<Vec<String>, SpannedError> {
    let error = || {
        SpannedError::new(
            entry.line,
            "`allowed-tools` must be a text of names separated by spaces, or a list",
        )
    };
    match &entry.value.kind {
        SpannedKind::Scalar(Value::String(source)) => Ok(split_tools(source)),
        SpannedKind::Scalar(Value::Null) => Ok(Vec::new()),
        SpannedKind::List(items) => items
            .iter()
            .map(|item| match &item.kind {
                SpannedKind::Scalar(Value::String(name)) => Ok(sanitize::one_line(name)),
                _ => Err(error()),
            })
            .collect(),
        _ => Err(error()),
    }
}

/// Splits at spaces and commas, but not within parentheses: `Bash(git add:*)` is one name.
fn split_tools(source: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut depth = 0_usize;
    for c in sanitize::one_line(source).chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, ' ' | ',') {
            names.push(String::new());
        } else if let Some(name) = names.last_mut() {
            name.push(c);
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_all_fields() {
        let file = parse(
            "\u{feff}---\r\nname: pdf-forms\r\ndescription: >\r\n  Fills\r\n  forms.\r\nlicense: MIT\r\n\
             metadata:\r\n  version: 1.0\r\nallowed-tools: Bash(git add:*) Read\r\ncolour: red\r\n---\r\n\r\n# Do\r\n",
        )
        .unwrap();
        assert_eq!(
            (file.name.as_str(), file.description.as_str()),
            ("pdf-forms", "Fills forms.")
        );
        assert_eq!(file.allowed_tools, ["Bash(git add:*)", "Read"]);
        assert_eq!((file.body.as_str(), file.body_line), ("# Do", 12));
        assert_eq!(file.unknown_keys, [("colour".to_owned(), 10)]);
    }

    #[test]
    fn parses_tools_as_list() {
        let file =
            parse("---\nname: a\ndescription: b\nallowed-tools:\n  - Read\n  - Write\n---\n")
                .unwrap();
        assert_eq!(file.allowed_tools, ["Read", "Write"]);
    }

    #[test]
    fn reports_errors_with_lines() {
        let long = "x".repeat(MAX_DESCRIPTION_LEN + 1);
        for (front, line, expected) in [
            ("description: b\n", 1, "`name` is missing"),
            ("name: a\n", 1, "`description` is missing"),
            ("description: b\nname: Upper\n", 3, "single hyphens"),
            ("name: a--b\ndescription: b\n", 2, "single hyphens"),
            ("name: -a\ndescription: b\n", 2, "single hyphens"),
            ("name: ../a\ndescription: b\n", 2, "single hyphens"),
            ("name: 7\ndescription: b\n", 2, "must be text"),
            ("name: a\ndescription: ' '\n", 3, "must say what"),
            (
                &format!("name: a\ndescription: {long}\n"),
                3,
                "at most 1024",
            ),
            (
                "name: a\ndescription: b\nmetadata: [x]\n",
                4,
                "`metadata` must be a map",
            ),
            (
                "name: a\ndescription: b\nallowed-tools: 7\n",
                4,
                "`allowed-tools` must be a text",
            ),
            (
                "name: a\ndescription: b\nlicense: [x]\n",
                4,
                "`license` must be text",
            ),
            ("- a\n", 2, "must be a table"),
            ("name: a\nname: b\n", 3, ""),
        ] {
            let error = parse(&format!("---\n{front}---\nbody")).unwrap_err();
            assert!(error.message.contains(expected), "{front}: {error}");
            assert_eq!(error.line, line, "{front}: {error}");
        }
        assert_eq!(parse("name: a").unwrap_err().line, 1);
        assert_eq!(parse("").unwrap_err().line, 1);
        assert_eq!(parse("---\nname: a\n").unwrap_err().line, 2);
        assert!(parse("---\nname: [a\n---\n").is_err());
    }
}
