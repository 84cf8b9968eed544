//! Values that remember the line they were written on, so that a mistake in a file can be shown where it stands.

mod yaml;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use crate::{suggest, text};

pub use yaml::parse as parse_yaml;

/// A value and the line (from 1) on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct SpannedValue {
    pub line: usize,
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
    pub value: SpannedValue,
}

/// A mistake in written text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SpannedError {
    pub line: usize,
    pub message: String,
}

impl SpannedError {
    /// What is quoted from a file cannot do anything to the terminal that shows it.
    pub fn new(line: usize, message: impl AsRef<str>) -> Self {
        Self {
            line,
            message: text::strip_control_chars(message.as_ref()),
        }
    }
}

/// The parts of a path through a value, as they are written.
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

    /// Reads the value as a `T`; an unknown key or a wrong type is a mistake on its line.
    pub fn deserialize<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, SpannedError> {
        let schema = schemars::schema_for!(T).to_value();
        if let Some(wrong) = validate_keys(&schema, self).into_iter().next() {
            return Err(SpannedError::new(wrong.line, wrong.message()));
        }
        serde_path_to_error::deserialize(self.to_value()).map_err(|error| {
            let path = path_parts(error.path());
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let place = if path.is_empty() {
                String::new()
            } else {
                format!("`{}`: ", path.join("."))
            };
            SpannedError::new(self.line_of(&path), format!("{place}{}", error.inner()))
        })
    }

    /// The line of the deepest part of `path` that exists.
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

/// A key that does not fit the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Dotted, from the root.
    pub path: String,
    pub line: usize,
    pub kind: KeyErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyErrorKind {
    /// The schema does not know it; perhaps it knows one like it.
    Unknown { suggestion: Option<String> },
    /// It stands for a table and is none.
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
                "this must be a table of keys".to_owned()
            }
            KeyErrorKind::NotATable => format!("`{}` must be a table of keys", self.path),
        }
    }
}

/// Every key of `node` that does not fit the JSON Schema `schema`.
pub fn validate_keys(schema: &Value, node: &SpannedValue) -> Vec<KeyError> {
    let mut found = Vec::new();
    collect_errors(
        SchemaCursor {
            root: schema,
            schema,
            path: "",
        },
        node,
        &mut found,
    );
    found
}

/// A position in a schema.
#[derive(Clone, Copy)]
struct SchemaCursor<'a> {
    root: &'a Value,
    schema: &'a Value,
    path: &'a str,
}

fn collect_errors(place: SchemaCursor<'_>, node: &SpannedValue, found: &mut Vec<KeyError>) {
    let entries = match &node.kind {
        SpannedKind::Map(entries) => entries,
        SpannedKind::Scalar(Value::Null) => return,
        _ => {
            if is_group(place.root, place.schema) {
                found.push(KeyError {
                    path: place.path.to_owned(),
                    line: node.line,
                    kind: KeyErrorKind::NotATable,
                });
            }
            return;
        }
    };
    for entry in entries {
        let path = if place.path.is_empty() {
            entry.key.clone()
        } else {
            format!("{}.{}", place.path, entry.key)
        };
        match lookup_key(place.root, place.schema, &entry.key) {
            SchemaLookup::Known(here) => {
                collect_errors(
                    SchemaCursor {
                        root: place.root,
                        schema: here,
                        path: &path,
                    },
                    &entry.value,
                    found,
                );
            }
            SchemaLookup::Anything => {}
            SchemaLookup::Unknown(known) => {
                let suggestion = suggest::nearest(&entry.key, known.iter().map(String::as_str))
                    .first()
                    .map(|near| {
                        if place.path.is_empty() {
                            (*near).to_owned()
                        } else {
                            format!("{}.{near}", place.path)
                        }
                    });
                found.push(KeyError {
                    path,
                    line: entry.line,
                    kind: KeyErrorKind::Unknown { suggestion },
                });
            }
        }
    }
}

/// What a schema says about one key.
pub enum SchemaLookup<'a> {
    Known(&'a Value),
    Anything,
    Unknown(Vec<String>),
}

/// Looks `key` up in `schema`, through references and alternatives.
pub fn lookup_key<'a>(root: &'a Value, schema: &'a Value, key: &str) -> SchemaLookup<'a> {
    let shapes = object_schemas(root, schema);
    if shapes.is_empty() {
        return SchemaLookup::Anything;
    }
    for shape in &shapes {
        if let Some(known) = shape.get("properties").and_then(|p| p.get(key)) {
            return SchemaLookup::Known(known);
        }
    }
    for shape in &shapes {
        match shape.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(additional @ Value::Object(_)) => return SchemaLookup::Known(additional),
            _ if shape.get("properties").is_none() => return SchemaLookup::Anything,
            _ => {}
        }
    }
    SchemaLookup::Unknown(
        shapes
            .iter()
            .flat_map(|shape| property_names(shape))
            .collect(),
    )
}

/// Whether a schema stands for a table with keys of its own, as against a value or a table of anything.
pub fn is_group(root: &Value, schema: &Value) -> bool {
    object_schemas(root, schema)
        .iter()
        .any(|shape| shape.get("properties").is_some())
}

/// The keys that one object schema names.
pub fn property_names(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .map(|p| p.keys().cloned().collect())
        .unwrap_or_default()
}

/// The object schemas that `schema` may stand for.
pub fn object_schemas<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut shapes = Vec::new();
    if let Some(target) = schema.get("$ref").and_then(Value::as_str)
        && let Some(definition) = target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer))
    {
        shapes.extend(object_schemas(root, definition));
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for option in schema
            .get(word)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            shapes.extend(object_schemas(root, option));
        }
    }
    if schema.get("properties").is_some() || schema.get("additionalProperties").is_some() {
        shapes.push(schema);
    }
    shapes
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

    fn read(text: &str) -> Result<Job, SpannedError> {
        parse_yaml(text).unwrap().deserialize()
    }

    #[test]
    fn an_unknown_key_is_shown_on_its_line_with_a_suggestion() {
        let mistake = read("name: x\nretries:\n  cuont: 3\n").unwrap_err();
        assert_eq!(
            mistake,
            SpannedError::new(
                3,
                "unknown key `retries.cuont`; did you mean `retries.count`?"
            )
        );
    }

    #[test]
    fn a_wrong_type_is_shown_on_its_line() {
        let mistake = read("name: x\nretries:\n  count: many\n").unwrap_err();
        assert_eq!(mistake.line, 3);
        assert!(
            mistake.message.starts_with("`retries.count`: "),
            "{}",
            mistake.message
        );
    }

    #[test]
    fn a_list_where_a_table_belongs_is_refused() {
        assert_eq!(
            read("name: x\nretries: [3]\n").unwrap_err(),
            SpannedError::new(2, "`retries` must be a table of keys")
        );
        assert_eq!(
            read("[x, [3]]\n").unwrap_err(),
            SpannedError::new(1, "this must be a table of keys")
        );
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the shape matters")]
    struct WordList {
        words: Vec<String>,
    }

    #[test]
    fn an_item_of_a_list_is_shown_on_its_own_line() {
        let mistake = parse_yaml("words:\n  - a\n  - 7\n")
            .unwrap()
            .deserialize::<WordList>()
            .unwrap_err();
        assert_eq!(mistake.line, 3);
        assert!(mistake.message.starts_with("`words.1`: "), "{mistake}");
    }

    #[test]
    fn a_missing_key_is_named() {
        assert!(
            read("retries: null\n")
                .unwrap_err()
                .message
                .contains("name")
        );
    }
}
