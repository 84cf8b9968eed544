//! Values with source positions, so that errors can point into a file.

mod yaml;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use lango_text::{sanitize, suggest};

pub use yaml::parse as parse_yaml;

/// A value and the line and column, starting at 1, at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct SpannedValue {
    pub line: usize,
    pub column: usize,
    pub kind: SpannedKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpannedKind {
    Scalar(Value),
    List(Vec<SpannedValue>),
    Map(Vec<SpannedEntry>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpannedEntry {
    pub key: String,
    pub line: usize,
    pub column: usize,
    pub value: SpannedValue,
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SpannedError {
    pub line: usize,
    /// 1 if only the line is known.
    pub column: usize,
    pub message: String,
}

impl SpannedError {
    /// Returns an error about a whole line.
    pub fn new(line: usize, message: impl AsRef<str>) -> Self {
        Self::at(line, 1, message)
    }

    /// Strips control characters, because the message may quote the file and is shown in a terminal.
    pub fn at(line: usize, column: usize, message: impl AsRef<str>) -> Self {
        Self {
            line,
            column,
            message: sanitize::strip_control_chars(message.as_ref()),
        }
    }
}

/// Returns the parts of a path as text.
pub fn path_parts(path: &serde_path_to_error::Path) -> Vec<String> {
    let part = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    };
    path.iter().filter_map(part).collect()
}

impl SpannedValue {
    pub fn to_value(&self) -> Value {
        match &self.kind {
            SpannedKind::Scalar(value) => value.clone(),
            SpannedKind::List(items) => items.iter().map(Self::to_value).collect(),
            SpannedKind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|e| (e.key.clone(), e.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Deserializes the value. Unknown keys and wrong types are errors on their lines.
    pub fn deserialize<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, SpannedError> {
        let schema = schemars::schema_for!(T).to_value();
        if let Some(error) = validate_keys(&schema, self).into_iter().next() {
            return Err(SpannedError::new(error.line, error.message()));
        }
        serde_path_to_error::deserialize(self.to_value()).map_err(|error| {
            let path = path_parts(error.path());
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let location = if path.is_empty() {
                String::new()
            } else {
                format!("`{}`: ", path.join("."))
            };
            SpannedError::new(self.line_of(&path), format!("{location}{}", error.inner()))
        })
    }

    /// Returns the line of the deepest part of `path` that exists.
    pub fn line_of(&self, path: &[&str]) -> usize {
        let Some((first, rest)) = path.split_first() else {
            return self.line;
        };
        match &self.kind {
            SpannedKind::Map(entries) => {
                entries
                    .iter()
                    .find(|e| e.key == *first)
                    .map_or(self.line, |entry| {
                        if rest.is_empty() {
                            entry.line
                        } else {
                            entry.value.line_of(rest).max(entry.line)
                        }
                    })
            }
            SpannedKind::List(items) => first
                .parse::<usize>()
                .ok()
                .and_then(|i| items.get(i))
                .map_or(self.line, |item| item.line_of(rest)),
            SpannedKind::Scalar(_) => self.line,
        }
    }
}

/// A key that does not match the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// The dotted path from the root.
    pub path: String,
    pub line: usize,
    pub column: usize,
    pub kind: KeyErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyErrorKind {
    /// The schema does not contain the key; it may contain a similar one.
    Unknown { suggestion: Option<String> },
    /// The value must be a table.
    NotATable,
}

impl KeyError {
    pub fn message(&self) -> String {
        match &self.kind {
            KeyErrorKind::Unknown { suggestion } => {
                let hint = suggestion
                    .as_ref()
                    .map_or(String::new(), |s| format!("; did you mean `{s}`?"));
                format!("unknown key `{}`{hint}", self.path)
            }
            KeyErrorKind::NotATable if self.path.is_empty() => {
                "expected a table of keys".to_owned()
            }
            KeyErrorKind::NotATable => format!("`{}` must be a table of keys", self.path),
        }
    }
}

/// Returns every key of `value` that does not match the JSON Schema `schema`.
pub fn validate_keys(schema: &Value, value: &SpannedValue) -> Vec<KeyError> {
    let mut errors = Vec::new();
    let cursor = SchemaCursor {
        root: schema,
        schema,
        path: "",
    };
    collect_errors(cursor, value, &mut errors);
    errors
}

/// A position in a schema.
#[derive(Clone, Copy)]
struct SchemaCursor<'a> {
    root: &'a Value,
    schema: &'a Value,
    path: &'a str,
}

impl SchemaCursor<'_> {
    fn join(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

fn collect_errors(cursor: SchemaCursor<'_>, value: &SpannedValue, errors: &mut Vec<KeyError>) {
    let entries = match &value.kind {
        SpannedKind::Map(entries) => entries,
        SpannedKind::Scalar(Value::Null) => return,
        _ => {
            if is_group(cursor.root, cursor.schema) {
                errors.push(KeyError {
                    path: cursor.path.to_owned(),
                    line: value.line,
                    column: value.column,
                    kind: KeyErrorKind::NotATable,
                });
            }
            return;
        }
    };
    for entry in entries {
        let path = cursor.join(&entry.key);
        match lookup_key(cursor.root, cursor.schema, &entry.key) {
            SchemaLookup::Known(schema) => {
                let child = SchemaCursor {
                    root: cursor.root,
                    schema,
                    path: &path,
                };
                collect_errors(child, &entry.value, errors);
            }
            SchemaLookup::Anything => {}
            SchemaLookup::Unknown(known) => {
                let nearest = suggest::nearest(&entry.key, known.iter().map(String::as_str));
                let suggestion = nearest.first().map(|key| cursor.join(key));
                errors.push(KeyError {
                    path,
                    line: entry.line,
                    column: entry.column,
                    kind: KeyErrorKind::Unknown { suggestion },
                });
            }
        }
    }
}

/// The result of looking up a key in a schema.
pub enum SchemaLookup<'a> {
    Known(&'a Value),
    Anything,
    Unknown(Vec<String>),
}

/// Looks up `key` in `schema`, following references and alternatives.
pub fn lookup_key<'a>(root: &'a Value, schema: &'a Value, key: &str) -> SchemaLookup<'a> {
    let schemas = object_schemas(root, schema);
    if schemas.is_empty() {
        return SchemaLookup::Anything;
    }
    for schema in &schemas {
        if let Some(known) = schema.get("properties").and_then(|p| p.get(key)) {
            return SchemaLookup::Known(known);
        }
    }
    for schema in &schemas {
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(additional @ Value::Object(_)) => return SchemaLookup::Known(additional),
            _ if schema.get("properties").is_none() => return SchemaLookup::Anything,
            _ => {}
        }
    }
    SchemaLookup::Unknown(
        schemas
            .iter()
            .flat_map(|schema| property_names(schema))
            .collect(),
    )
}

/// Returns true if a schema describes a table with fixed keys, not a value or a table of anything.
pub fn is_group(root: &Value, schema: &Value) -> bool {
    object_schemas(root, schema)
        .iter()
        .any(|schema| schema.get("properties").is_some())
}

/// Returns the keys of an object schema.
pub fn property_names(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .map(|p| p.keys().cloned().collect())
        .unwrap_or_default()
}

/// Returns the object schemas that `schema` may resolve to.
pub fn object_schemas<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut schemas = Vec::new();
    if let Some(target) = schema.get("$ref").and_then(Value::as_str)
        && let Some(definition) = target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer))
    {
        schemas.extend(object_schemas(root, definition));
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for option in schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            schemas.extend(object_schemas(root, option));
        }
    }
    if schema.get("properties").is_some() || schema.get("additionalProperties").is_some() {
        schemas.push(schema);
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the shape matters")]
    struct Job {
        name: String,
        retries: Option<Retries>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the shape matters")]
    struct Retries {
        count: u32,
    }

    fn parse(text: &str) -> Result<Job, SpannedError> {
        parse_yaml(text).unwrap().deserialize()
    }

    #[test]
    fn an_unknown_key_is_reported_on_its_line_with_a_suggestion() {
        let error = parse("name: x\nretries:\n  cuont: 3\n").unwrap_err();
        assert_eq!(
            error,
            SpannedError::new(
                3,
                "unknown key `retries.cuont`; did you mean `retries.count`?"
            )
        );
    }

    #[test]
    fn a_wrong_type_is_reported_on_its_line() {
        let error = parse("name: x\nretries:\n  count: many\n").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(
            error.message.starts_with("`retries.count`: "),
            "{}",
            error.message
        );
    }

    #[test]
    fn rejects_a_list_in_place_of_a_table() {
        assert_eq!(
            parse("name: x\nretries: [3]\n").unwrap_err(),
            SpannedError::new(2, "`retries` must be a table of keys")
        );
        assert_eq!(
            parse("[x, [3]]\n").unwrap_err(),
            SpannedError::new(1, "expected a table of keys")
        );
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the shape matters")]
    struct WordList {
        words: Vec<String>,
    }

    #[test]
    fn an_item_of_a_list_is_reported_on_its_line() {
        let error = parse_yaml("words:\n  - a\n  - 7\n")
            .unwrap()
            .deserialize::<WordList>()
            .unwrap_err();
        assert_eq!(error.line, 3);
        assert!(error.message.starts_with("`words.1`: "), "{error}");
    }

    #[test]
    fn a_missing_key_is_named() {
        assert!(
            parse("retries: null\n")
                .unwrap_err()
                .message
                .contains("name")
        );
    }
}
