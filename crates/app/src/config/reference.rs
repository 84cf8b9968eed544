//! The documentation of every setting, generated from the types: for `lango init` and the reference
//! page.

use std::fmt::Write as _;

use lango_domain::spanned;
use serde_json::Value;

use crate::settings::Settings;

/// The documentation of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingDoc {
    /// The dotted key.
    pub key: String,
    pub kind: String,
    pub default: Value,
    pub description: String,
}

/// Returns the documentation of every setting, in the order of the types.
pub fn setting_docs() -> Vec<SettingDoc> {
    let schema = Settings::schema();
    let defaults = super::to_json(&Settings::default());
    let mut entries = Vec::new();
    collect_docs(
        &ReferenceCursor {
            root: &schema,
            schema: &schema,
            default: &defaults,
            key: "",
        },
        &mut entries,
    );
    entries
}

struct ReferenceCursor<'a> {
    root: &'a Value,
    schema: &'a Value,
    default: &'a Value,
    key: &'a str,
}

fn collect_docs(cursor: &ReferenceCursor<'_>, entries: &mut Vec<SettingDoc>) {
    for shape in spanned::object_schemas(cursor.root, cursor.schema) {
        // Describe the entries of a map once, with a placeholder key.
        if let Some(entry_schema) = shape
            .get("additionalProperties")
            .filter(|entry_schema| spanned::is_group(cursor.root, entry_schema))
        {
            let key = format!(
                "{}.<{}>",
                cursor.key,
                if cursor.key == "providers" {
                    "id"
                } else {
                    "model"
                }
            );
            collect_docs(
                &ReferenceCursor {
                    root: cursor.root,
                    schema: entry_schema,
                    default: &Value::Null,
                    key: &key,
                },
                entries,
            );
        }
        for name in spanned::property_names(shape) {
            let schema = &shape["properties"][&name];
            let key = if cursor.key.is_empty() {
                name.clone()
            } else {
                format!("{}.{name}", cursor.key)
            };
            let default = cursor.default.get(&name).unwrap_or(&Value::Null);
            let child = ReferenceCursor {
                root: cursor.root,
                schema,
                default,
                key: &key,
            };
            let is_table = |shape: &&Value| {
                shape.get("properties").is_some()
                    || shape
                        .get("additionalProperties")
                        .is_some_and(|entry_schema| spanned::is_group(cursor.root, entry_schema))
            };
            if spanned::object_schemas(cursor.root, schema)
                .iter()
                .any(is_table)
            {
                collect_docs(&child, entries);
            } else {
                entries.push(setting_doc(&child));
            }
        }
    }
}

fn setting_doc(cursor: &ReferenceCursor<'_>) -> SettingDoc {
    let description = cursor
        .schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    SettingDoc {
        key: cursor.key.to_owned(),
        kind: type_name(cursor.root, cursor.schema),
        // Defaults of map entries are only in the schema.
        default: Some(cursor.default)
            .filter(|d| !d.is_null())
            .or(cursor.schema.get("default"))
            .cloned()
            .unwrap_or_default(),
        description: description.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Returns a readable name for the type of a setting.
fn type_name(root: &Value, schema: &Value) -> String {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return target
            .strip_prefix('#')
            .and_then(|at| root.pointer(at))
            .map_or(String::new(), |at| type_name(root, at));
    }
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        let real = options
            .iter()
            .find(|option| option.get("type").is_none_or(|kind| kind != "null"));
        return real.map_or(String::new(), |option| type_name(root, option));
    }
    let choices: Vec<String> = [schema]
        .into_iter()
        .chain(
            schema
                .get("oneOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten(),
        )
        .flat_map(|option| {
            option
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .chain(option.get("const"))
        })
        .filter_map(|choice| choice.as_str().map(|text| format!("`{text}`")))
        .collect();
    if !choices.is_empty() {
        return choices.join(" or ");
    }
    let json_type = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds
            .iter()
            .find(|kind| *kind != "null")
            .and_then(Value::as_str),
        other => other.and_then(Value::as_str),
    };
    match json_type.unwrap_or("any") {
        "boolean" => "true or false",
        "integer" => "whole number",
        "string" => "text",
        "object" => "table",
        "array" => "list",
        other => other,
    }
    .to_owned()
}

/// Returns a configuration file that contains every setting as a comment with its default.
pub fn commented_file() -> String {
    let mut text = String::from(
        "# Lango configuration with every setting and its default. To change a setting, remove the `#` before it.\n\
         # Environment variables (LANGO_AGENT__MULTI_AGENT=false) and --set agent.multiAgent=false override this file.\n\
         # ${NAME} in a value expands to the environment variable NAME.\n",
    );
    let mut table = String::new();
    let mut entries = setting_docs();
    // Settings of one table stay together, even if they come from several crates.
    let order: Vec<String> = entries
        .iter()
        .map(|entry| group_name(entry).to_owned())
        .collect();
    entries.sort_by_key(|entry| order.iter().position(|group| group == group_name(entry)));
    for entry in entries {
        let (group, name) = entry.key.rsplit_once('.').unwrap_or(("", &entry.key));
        // Map entries are only explained, since their keys are the user's.
        let is_example = group.contains('<');
        if group != table {
            table = group.to_owned();
            let _ = if is_example {
                write!(text, "\n# [{group}]\n")
            } else {
                write!(text, "\n[{group}]\n")
            };
        }
        if is_example {
            let _ = writeln!(text, "#   {name}: {}", entry.description);
            continue;
        }
        for line in wrap(&entry.description) {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "#{name} = {}\n", toml_value(&entry));
    }
    text.trim_end().to_owned() + "\n"
}

fn group_name(entry: &SettingDoc) -> &str {
    entry.key.rsplit_once('.').map_or("", |(group, _)| group)
}

fn toml_value(entry: &SettingDoc) -> String {
    match &entry.default {
        Value::Null => "\"\"".to_owned(),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        value => toml::Value::try_from(value)
            .map(|value| value.to_string())
            .unwrap_or_default(),
    }
}

fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        if let Some(line) = lines.last_mut()
            && (line.is_empty() || line.len() + word.len() < 98)
        {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
            continue;
        }
        lines.push(word.to_owned());
    }
    lines
}

/// Returns the reference page of the documentation.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Generated by `cargo xtask bless`; do not edit. `lango init` writes the same reference as a commented file.\n\n\
         | setting | type | default | description |\n|---|---|---|---|\n",
    );
    for entry in setting_docs() {
        let default = if entry.default.is_null() {
            String::new()
        } else {
            format!("`{}`", entry.default)
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} |",
            entry.key, entry.kind, entry.description
        );
    }
    page
}
