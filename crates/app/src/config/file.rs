//! Reads a configuration file: TOML, JSON or YAML, by its extension.

use std::path::Path;

use lango_domain::spanned::{SpannedEntry, SpannedError, SpannedKind, SpannedValue, parse_yaml};
use lango_files::{FolderReader, ReadError, read_bounded};
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ConfigError, ConfigLayer, ConfigSource, redaction};

/// The maximum size of a configuration file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads the user's own file. Links are followed, since the user may read their targets anyway.
pub(super) fn read_file(path: &Path) -> Result<ConfigLayer, ConfigError> {
    parse_layer(path, read_bounded(path, MAX_BYTES))
}

/// Reads a project's file in the folder `root`. Links out of the folder are rejected, since the
/// project is not trusted.
pub(super) fn read_project_file(root: &Path, path: &Path) -> Result<ConfigLayer, ConfigError> {
    let name = path.file_name().map(Path::new).unwrap_or(path);
    let content = FolderReader::open_beneath(root, Path::new(""))
        .and_then(|folder| folder.read(name, MAX_BYTES));
    let is_outside = content == Err(ReadError::Outside);
    parse_layer(path, content).map_err(|error| match error {
        error if is_outside => {
            error.with_hint("to use the target of the link, pass it with --config")
        }
        error => error,
    })
}

fn parse_layer(
    path: &Path,
    content: Result<Vec<u8>, ReadError>,
) -> Result<ConfigLayer, ConfigError> {
    let name = path.display();
    let read_error =
        |error| ConfigError::new(format!("cannot read the configuration {name}: {error}"));
    let text = String::from_utf8(content.map_err(read_error)?)
        .map_err(|_| ConfigError::new(format!("{name} is not valid UTF-8")))?;
    let mut node = parse(path, &text)?;
    let SpannedKind::Map(entries) = &mut node.kind else {
        return Err(ConfigError::new(format!(
            "{name}: expected a table of settings"
        )));
    };
    // Editors use this key to find the schema.
    entries.retain(|entry| entry.key != "$schema");
    Ok(ConfigLayer {
        source: ConfigSource::File(path.to_owned()),
        node,
    })
}

fn parse(path: &Path, text: &str) -> Result<SpannedValue, ConfigError> {
    let parsed = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => parse_toml(text),
        Some("json" | "yaml" | "yml") => parse_yaml(text),
        _ => {
            let message = format!("{}: unknown configuration format", path.display());
            return Err(ConfigError::new(message)
                .with_hint("use a file that ends in .toml, .json, .yaml or .yml"));
        }
    };
    parsed.map_err(|error| {
        ConfigError::new(format!(
            "{}:{}: {}",
            path.display(),
            error.line,
            redaction::redact_message(&error.message)
        ))
    })
}

fn parse_toml(text: &str) -> Result<SpannedValue, SpannedError> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let position_at = |offset: usize| {
        let line = ends.partition_point(|end| *end < offset);
        let start = line.checked_sub(1).map_or(0, |before| ends[before] + 1);
        let column = text
            .get(start..offset)
            .map_or(0, |part| part.chars().count());
        (line + 1, column + 1)
    };
    let table = DeTable::parse(text).map_err(|error| {
        let (line, column) = error.span().map_or((1, 1), |span| position_at(span.start));
        SpannedError::at(line, column, error.message())
    })?;
    Ok(SpannedValue {
        line: 1,
        column: 1,
        kind: SpannedKind::Map(toml_entries(table.get_ref(), &position_at)),
    })
}

/// Returns the line and the column of a byte offset.
type PositionAt<'a> = &'a dyn Fn(usize) -> (usize, usize);

fn toml_entries(table: &DeTable<'_>, position_at: PositionAt<'_>) -> Vec<SpannedEntry> {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let (line, column) = position_at(key.span().start);
        SpannedEntry {
            key: AsRef::<str>::as_ref(key.get_ref()).to_owned(),
            line,
            column,
            value: toml_node(value, position_at),
        }
    };
    table.iter().map(entry).collect()
}

fn toml_node(value: &Spanned<DeValue<'_>>, position_at: PositionAt<'_>) -> SpannedValue {
    let kind = match value.get_ref() {
        DeValue::String(text) => SpannedKind::Scalar(Value::from(text.as_ref())),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            SpannedKind::Scalar(parsed.map_or_else(|_| Value::from(number.as_str()), Value::from))
        }
        DeValue::Float(number) => {
            // JSON has no infinity. It stays text, which number settings reject.
            let parsed = number
                .as_str()
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite());
            SpannedKind::Scalar(parsed.map_or_else(|| Value::from(number.as_str()), Value::from))
        }
        DeValue::Boolean(value) => SpannedKind::Scalar(Value::Bool(*value)),
        DeValue::Datetime(datetime) => SpannedKind::Scalar(Value::from(datetime.to_string())),
        DeValue::Array(items) => SpannedKind::List(
            items
                .iter()
                .map(|item| toml_node(item, position_at))
                .collect(),
        ),
        DeValue::Table(table) => SpannedKind::Map(toml_entries(table, position_at)),
    };
    let (line, column) = position_at(value.span().start);
    SpannedValue { line, column, kind }
}
