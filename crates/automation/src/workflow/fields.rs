//! Reads fields of maps with their types. A wrong type is an error, and the field is left out.

use std::time::Duration;

use lango_domain::spanned::{SpannedEntry, SpannedKind, SpannedValue};
use lango_text::suggest;
use serde_json::Value;

use super::duration::parse_duration;
use super::error::{ErrorList, FilePosition};
use super::expression::ValueType;

/// Names of other workflow tools, and what they are called here.
const OTHER_NAMES: [(&str, &str); 14] = [
    ("needs", "depends_on"),
    ("depends", "depends_on"),
    ("dependsOn", "depends_on"),
    ("when", "if"),
    ("condition", "if"),
    ("run", "tool: exec_shell` with `with: {command: …}"),
    ("command", "tool: exec_shell` with `with: {command: …}"),
    ("action", "tool"),
    ("args", "with"),
    ("inputs", "input"),
    ("retries", "retry: {attempts: …}"),
    ("retry_policy", "retry"),
    ("continue_on_error", "on_failure: continue"),
    ("tz", "timezone"),
];

/// A map of the file, with the keys that it may have.
pub(super) struct FieldMap<'a> {
    entries: &'a [SpannedEntry],
    /// The name of the map, for messages.
    what: &'a str,
    /// The keys that unknown ones were probably meant to be.
    meant: Vec<String>,
}

impl<'a> FieldMap<'a> {
    /// Returns the fields of a map. Reports values that are no map, and unknown keys.
    pub fn read(
        value: &'a SpannedValue,
        what: &'a str,
        known: &[&str],
        errors: &mut ErrorList<'_>,
    ) -> Option<Self> {
        let SpannedKind::Map(entries) = &value.kind else {
            let message = format!("{what} must have keys and values");
            let hint = format!("write some of {}", known.join(", "));
            errors.push_with_hint(value, message, hint);
            return None;
        };
        let unknown = entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()));
        let mut meant = Vec::new();
        for entry in unknown {
            let message = format!("{what} has no key `{}`", entry.key);
            let other = OTHER_NAMES.iter().find(|(other, here)| {
                *other == entry.key && known.iter().any(|name| here.starts_with(name))
            });
            let near = suggest::did_you_mean(&entry.key, known.iter().copied());
            let names = suggest::nearest(&entry.key, known.iter().copied());
            meant.extend(names.into_iter().map(str::to_owned));
            let hint = match other {
                Some((_, here)) => format!("write `{here}`"),
                None => near.unwrap_or_else(|| format!("known keys are {}", known.join(", "))),
            };
            errors.push_with_hint(entry, message, hint);
        }
        Some(Self {
            entries,
            what,
            meant,
        })
    }

    pub fn get(&self, key: &str) -> Option<&'a SpannedEntry> {
        // A key without a value counts as left out.
        let is_null = |entry: &SpannedEntry| entry.value.kind == SpannedKind::Scalar(Value::Null);
        self.entries
            .iter()
            .find(|entry| entry.key == key && !is_null(entry))
    }

    pub fn text(&self, key: &str, errors: &mut ErrorList<'_>) -> Option<&'a str> {
        let entry = self.get(key)?;
        let text = entry_text(&entry.value);
        if text.is_none() {
            self.wrong_type(entry, "a text", errors);
        }
        text
    }

    /// Reads a text, or reports that it is missing.
    pub fn required_text(
        &self,
        key: &str,
        at: FilePosition,
        errors: &mut ErrorList<'_>,
    ) -> Option<&'a str> {
        // A misspelled key is reported already.
        if self.get(key).is_none() && !self.meant.iter().any(|meant| meant == key) {
            let hint = format!("add `{key}: …`");
            errors.push_with_hint(at, format!("{} needs `{key}`", self.what), hint);
        }
        let text = self.text(key, errors)?;
        if text.trim().is_empty()
            && let Some(entry) = self.get(key)
        {
            errors.push_with_hint(
                &entry.value,
                format!("`{key}` is empty"),
                format!("write what `{key}` is"),
            );
            return None;
        }
        Some(text)
    }

    /// Reads a list of texts with their values.
    pub fn texts(&self, key: &str, errors: &mut ErrorList<'_>) -> Vec<(&'a str, &'a SpannedValue)> {
        let Some(entry) = self.get(key) else {
            return Vec::new();
        };
        let SpannedKind::List(items) = &entry.value.kind else {
            let hint = match entry_text(&entry.value) {
                Some(text) => format!("write `{key}: [{text}]`"),
                None => format!("write `{key}: […]`"),
            };
            errors.push_with_hint(
                &entry.value,
                format!("`{key}` must be a list of texts"),
                hint,
            );
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match entry_text(item) {
                Some(text) => texts.push((text, item)),
                None => errors.push_with_hint(
                    item,
                    format!("`{key}` must be a list of texts, not {}", kind_name(item)),
                    "put the value into quotes",
                ),
            }
        }
        texts
    }

    pub fn boolean(&self, key: &str, errors: &mut ErrorList<'_>) -> Option<bool> {
        let entry = self.get(key)?;
        if let SpannedKind::Scalar(Value::Bool(value)) = entry.value.kind {
            return Some(value);
        }
        self.wrong_type(entry, "true or false", errors);
        None
    }

    /// Reads a whole number in a range.
    pub fn integer(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
        errors: &mut ErrorList<'_>,
    ) -> Option<u64> {
        let entry = self.get(key)?;
        let number = match &entry.value.kind {
            SpannedKind::Scalar(value) => value.as_u64(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong_type(entry, &expected, errors);
        }
        number
    }

    pub fn number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<f64>,
        errors: &mut ErrorList<'_>,
    ) -> Option<f64> {
        let entry = self.get(key)?;
        let number = match &entry.value.kind {
            SpannedKind::Scalar(value) => value.as_f64(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            self.wrong_type(entry, &expected, errors);
        }
        number
    }

    pub fn duration(&self, key: &str, errors: &mut ErrorList<'_>) -> Option<Duration> {
        let entry = self.get(key)?;
        let text = match &entry.value.kind {
            SpannedKind::Scalar(Value::String(text)) => text.clone(),
            SpannedKind::Scalar(Value::Number(number)) => number.to_string(),
            _ => {
                self.wrong_type(entry, "a duration, such as `90s` or `5m`", errors);
                return None;
            }
        };
        match parse_duration(&text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                let hint = match text.trim().parse::<u64>() {
                    Ok(number) => format!("write `{number}s` or `{number}m`"),
                    Err(_) => {
                        "write a number and a unit, such as `90s`, `5m` or `1h30m`".to_owned()
                    }
                };
                errors.push_with_hint(&entry.value, format!("`{key}`: {error}"), hint);
                None
            }
        }
    }

    pub fn wrong_type(&self, entry: &SpannedEntry, expected: &str, errors: &mut ErrorList<'_>) {
        let found = match &entry.value.kind {
            SpannedKind::Scalar(value @ (Value::Bool(_) | Value::Number(_))) => {
                format!("`{value}`")
            }
            SpannedKind::Scalar(Value::String(text)) if text.len() <= 40 => format!("`{text}`"),
            _ => kind_name(&entry.value),
        };
        let message = format!("`{}` must be {expected}, not {found}", entry.key);
        let hint = match expected {
            "a text" => "put the value into quotes".to_owned(),
            _ => format!("write `{}:` with {expected}", entry.key),
        };
        errors.push_with_hint(&entry.value, message, hint);
    }
}

fn entry_text(value: &SpannedValue) -> Option<&str> {
    match &value.kind {
        SpannedKind::Scalar(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn kind_name(value: &SpannedValue) -> String {
    match &value.kind {
        SpannedKind::Scalar(value) => ValueType::of(value).to_string(),
        SpannedKind::List(_) => "a list".to_owned(),
        SpannedKind::Map(_) => "a map".to_owned(),
    }
}
