//! Tab-separated columns: subject, predicate, object, and optional columns. A header line may name
//! the columns; otherwise they are in the order of `COLUMNS`.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::{Map, Value};

use super::{FactLine, FactLineError, parse_moment};
use crate::snapshot::FactItem;

const COLUMNS: [&str; 9] = [
    "subject",
    "predicate",
    "object",
    "subject_type",
    "object_type",
    "valid_from",
    "valid_to",
    "properties",
    "source",
];

/// For each column of the file, its index in `COLUMNS`.
pub struct TsvColumns(Vec<usize>);

impl Default for TsvColumns {
    fn default() -> Self {
        Self((0..COLUMNS.len()).collect())
    }
}

impl TsvColumns {
    /// Uses the first line as the header if it names the columns. Returns `None` for other lines.
    pub fn read_header(&mut self, line: &str, number: usize) -> Option<Result<(), FactLineError>> {
        let columns = if number == 1 {
            Self::parse_header(line)?
        } else {
            return None;
        };
        Some(columns.map(|columns| *self = columns))
    }

    fn parse_header(line: &str) -> Option<Result<Self, FactLineError>> {
        let names: Vec<String> = line
            .trim_start_matches('#')
            .split('\t')
            .map(|name| name.trim().to_lowercase())
            .collect();
        if !COLUMNS
            .iter()
            .take(3)
            .all(|column| names.iter().any(|name| name == column))
        {
            return None;
        }
        let number = |name: &String| {
            let at = COLUMNS.iter().position(|column| column == name);
            at.ok_or_else(|| FactLineError::UnknownColumn(name.chars().take(40).collect()))
        };
        Some(names.iter().map(number).collect::<Result<_, _>>().map(Self))
    }

    /// Returns `None` for an empty line or a comment.
    pub fn parse_line<'a>(&self, text: &'a str) -> Result<Option<FactLine<'a>>, FactLineError> {
        let is_comment = text.starts_with('#') && text.split('\t').nth(2).is_none();
        if text.trim().is_empty() || is_comment {
            return Ok(None);
        }
        let mut line = FactLine::default();
        let mut count = 0;
        for (text, column) in text.split('\t').zip(&self.0) {
            count += 1;
            match column {
                0 => line.subject = Cow::Borrowed(text),
                1 => line.predicate = Cow::Borrowed(text),
                2 => line.object = Cow::Borrowed(text),
                3 => line.subject_type = Cow::Borrowed(text),
                4 => line.object_type = Cow::Borrowed(text),
                5 => line.valid_from = parse_moment(text)?,
                6 => line.valid_to = parse_moment(text)?,
                7 => line.properties = Cow::Owned(parse_properties(text)?),
                _ => line.source = Cow::Borrowed(text.trim()),
            }
        }
        if count < 3 {
            Err(FactLineError::MissingColumns(count))
        } else {
            Ok(Some(line))
        }
    }
}

/// Parses properties into the normalized form in which they are stored.
fn parse_properties(text: &str) -> Result<String, FactLineError> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    let properties: Map<String, Value> =
        serde_json::from_str(text).map_err(|_| FactLineError::InvalidProperties)?;
    Ok(if properties.is_empty() {
        String::new()
    } else {
        Value::Object(properties).to_string()
    })
}

pub fn write_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join("\t"))
}

pub fn write_line(out: &mut dyn Write, item: &FactItem<'_>) -> io::Result<()> {
    let FactItem {
        subject,
        predicate,
        object,
        subject_type,
        object_type,
        source,
        ..
    } = item;
    let from = item.valid_from.as_deref().unwrap_or_default();
    let to = item.valid_to.as_deref().unwrap_or_default();
    let properties = item
        .properties
        .as_ref()
        .map(Value::to_string)
        .unwrap_or_default();
    let parts = [
        subject,
        predicate,
        object,
        subject_type,
        object_type,
        from,
        to,
        &properties,
        source,
    ];
    writeln!(out, "{}", parts.join("\t"))
}
