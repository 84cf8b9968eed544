//! The text of a `SKILL.md`: facts between two lines `---`, then instructions in markdown.

use lango_domain::spanned::{SpannedEntry, SpannedError, SpannedKind, SpannedValue, parse_yaml};
use lango_domain::text;
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

/// What a `SKILL.md` says.
#[derive(Debug)]
pub(super) struct SkillFile {
    pub name: String,
    pub name_line: usize,
    pub description: String,
    pub allowed_tools: Vec<String>,
    pub body: String,
    /// The line on which the body begins.
    pub body_line: usize,
    /// Keys that the form does not name, with their lines.
    pub unknown_keys: Vec<(String, usize)>,
}

pub(super) fn parse(written: &str) -> Result<SkillFile, SpannedError> {
    let (front, body) = split_front_matter(written)?;
    let entries = parse_entries(front)?;
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let required = |key: &str| {
        find(key)
            .ok_or_else(|| SpannedError::new(1, format!("`{key}` is missing in the front matter")))
    };
    let name = required("name")?;
    let name_line = name.line;
    let name = as_text(name)?.to_owned();
    check_name(&name).map_err(|why| SpannedError::new(name_line, why))?;
    let written_description = required("description")?;
    let description = normalize_description(as_text(written_description)?)
        .map_err(|why| SpannedError::new(written_description.line, why))?;
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
            .map(|entry| (text::one_line(&entry.key), entry.line))
            .collect(),
        body: body.trim().to_owned(),
        body_line: front.lines().count() + 3,
        name,
        name_line,
        description,
    })
}

/// Whether a skill may be called so; the reason if not.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let hyphens = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.is_empty() || name.chars().count() > MAX_NAME_LEN || !name.chars().all(plain) || hyphens
    {
        return Err(format!(
            "`name` must have 1 to {MAX_NAME_LEN} characters of a-z, 0-9 and single hyphens between them"
        ));
    }
    Ok(())
}

/// The description on one line. A model reads it before anybody has allowed the skill, so nothing may hide in it.
pub(super) fn normalize_description(written: &str) -> Result<String, String> {
    let line = text::one_line(&quote::strip_hidden(written));
    match line.chars().count() {
        0 => Err("`description` must say what the skill does and when to use it".to_owned()),
        length if length > MAX_DESCRIPTION_LEN => Err(format!(
            "`description` has {length} characters; at most {MAX_DESCRIPTION_LEN} fit"
        )),
        _ => Ok(line),
    }
}

/// Front matter and body. The line `---` that opens the file is line 1.
fn split_front_matter(written: &str) -> Result<(&str, &str), SpannedError> {
    let written = written.strip_prefix('\u{feff}').unwrap_or(written);
    let mut lines = written.split_inclusive('\n');
    let opening = lines.next().filter(|line| line.trim_end() == "---");
    let begin = opening
        .ok_or_else(|| SpannedError::new(1, "the file must begin with a line `---`"))?
        .len();
    let mut end = begin;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((&written[begin..end], &written[end + line.len()..]));
        }
        end += line.len();
    }
    Err(SpannedError::new(
        written.lines().count(),
        "the front matter is not closed by a line `---`",
    ))
}

/// The keys of the front matter, with their lines in the whole file.
fn parse_entries(front: &str) -> Result<Vec<SpannedEntry>, SpannedError> {
    let node = parse_yaml(front)
        .map_err(|mistake| SpannedError::new(mistake.line + 1, mistake.message))?;
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
        SpannedKind::Scalar(Value::String(written)) => Ok(written),
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

/// Numbers and the like are let through: `version: 1.0` is how people write it.
fn check_metadata(entry: &SpannedEntry) -> Result<(), SpannedError> {
    let is_plain = |node: &SpannedValue| matches!(node.kind, SpannedKind::Scalar(_));
    match &entry.value.kind {
        SpannedKind::Map(entries) if entries.iter().all(|inner| is_plain(&inner.value)) => Ok(()),
        SpannedKind::Scalar(Value::Null) => Ok(()),
        _ => Err(SpannedError::new(
            entry.line,
            "`metadata` must be a map from words to text",
        )),
    }
}

fn parse_tool_names(entry: &SpannedEntry) -> Result<Vec<String>, SpannedError> {
    let wrong = || {
        SpannedError::new(
            entry.line,
            "`allowed-tools` is a text with names between spaces, or a list",
        )
    };
    match &entry.value.kind {
        SpannedKind::Scalar(Value::String(written)) => Ok(split_tools(written)),
        SpannedKind::Scalar(Value::Null) => Ok(Vec::new()),
        SpannedKind::List(items) => items
            .iter()
            .map(|item| match &item.kind {
                SpannedKind::Scalar(Value::String(name)) => Ok(text::one_line(name)),
                _ => Err(wrong()),
            })
            .collect(),
        _ => Err(wrong()),
    }
}

/// Cuts at spaces and commas, but not within parentheses: `Bash(git add:*)` is one.
fn split_tools(written: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut open = 0_usize;
    for c in text::one_line(written).chars() {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 && matches!(c, ' ' | ',') {
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
    fn a_whole_page_is_read() {
        let page = parse(
            "\u{feff}---\r\nname: pdf-forms\r\ndescription: >\r\n  Fills\r\n  forms.\r\nlicense: MIT\r\n\
             metadata:\r\n  version: 1.0\r\nallowed-tools: Bash(git add:*) Read\r\ncolour: red\r\n---\r\n\r\n# Do\r\n",
        )
        .unwrap();
        assert_eq!(
            (page.name.as_str(), page.description.as_str()),
            ("pdf-forms", "Fills forms.")
        );
        assert_eq!(page.allowed_tools, ["Bash(git add:*)", "Read"]);
        assert_eq!((page.body.as_str(), page.body_line), ("# Do", 12));
        assert_eq!(page.unknown_keys, [("colour".to_owned(), 10)]);
    }

    #[test]
    fn tools_may_be_a_list() {
        let page =
            parse("---\nname: a\ndescription: b\nallowed-tools:\n  - Read\n  - Write\n---\n")
                .unwrap();
        assert_eq!(page.allowed_tools, ["Read", "Write"]);
    }

    #[test]
    fn each_mistake_has_its_line() {
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
                "`allowed-tools` is a text",
            ),
            (
                "name: a\ndescription: b\nlicense: [x]\n",
                4,
                "`license` must be text",
            ),
            ("- a\n", 2, "must be a table"),
            ("name: a\nname: b\n", 3, ""),
        ] {
            let mistake = parse(&format!("---\n{front}---\nbody")).unwrap_err();
            assert!(mistake.message.contains(expected), "{front}: {mistake}");
            assert_eq!(mistake.line, line, "{front}: {mistake}");
        }
        assert_eq!(parse("name: a").unwrap_err().line, 1);
        assert_eq!(parse("").unwrap_err().line, 1);
        assert_eq!(parse("---\nname: a\n").unwrap_err().line, 2);
        assert!(parse("---\nname: [a\n---\n").is_err());
    }
}
