//! Reads values with references from workflow files.

use lango_domain::spanned::{SpannedKind, SpannedValue};
use serde_json::Value;

use super::definition::MAX_INPUTS;
use super::error::{ErrorList, FilePosition};
use super::fields::FieldMap;
use super::reference::{Reference, SplitText, TextPart, ValueTemplate, split_text};

/// Arguments of tools that are read as a command, a program, a prompt, a time, a permission or a target. A
/// value anywhere in them would become part of that, so no reference is possible (B122).
const TEXT_ARGUMENTS: [&str; 11] = [
    "allow",
    "body",
    "command",
    "deliver_to",
    "failure_deliver_to",
    "prompt",
    "schedule",
    "script",
    "scripts",
    "when",
    "yaml_content",
];

/// Returns a text without references. References are errors.
pub(super) fn plain_text(
    text: &str,
    value: &SpannedValue,
    what: &str,
    errors: &mut ErrorList<'_>,
) -> Option<String> {
    let hint = match what {
        "a prompt" => "list it under `input`: the agent reads it as data beside the prompt",
        "`command`" => "set it in `env`, and write \"$NAME\" in the command",
        _ => "use a step with `agent` and `prompt`, and list the value under `input`",
    };
    let offset = match split_text(text) {
        Err(found) => found.first().map(|(offset, _)| *offset),
        Ok(split) => match split.parts.as_slice() {
            [] => return Some(String::new()),
            [TextPart::Plain(plain)] => return Some(plain.clone()),
            _ => split.offsets.first().copied(),
        },
    };
    let message = format!("values never become part of {what}");
    let at = errors.position_in(value, text, offset.unwrap_or_default());
    errors.push_with_hint(at, message, hint);
    None
}

pub(super) fn read_arguments(
    fields: &FieldMap<'_>,
    references: &mut Vec<(Reference, FilePosition)>,
    errors: &mut ErrorList<'_>,
) -> Option<ValueTemplate> {
    let Some(entry) = fields.get("with") else {
        return Some(ValueTemplate::Object(Vec::new()));
    };
    let SpannedKind::Map(arguments) = &entry.value.kind else {
        let hint = "write `with: {argument: value}`";
        errors.push_with_hint(&entry.value, "`with` must have names and values", hint);
        return None;
    };
    let mut filled = Vec::new();
    for argument in arguments {
        let template = match TEXT_ARGUMENTS.contains(&argument.key.as_str()) {
            true => {
                let what = format!("`{}`", argument.key);
                plain_value(&argument.value, &what, errors).map(ValueTemplate::Literal)
            }
            false => read_template(&argument.value, references, errors),
        };
        if let Some(template) = template {
            filled.push((argument.key.clone(), template));
        }
    }
    Some(ValueTemplate::Object(filled))
}

/// Returns a value without references. References in it are errors.
fn plain_value(value: &SpannedValue, what: &str, errors: &mut ErrorList<'_>) -> Option<Value> {
    match &value.kind {
        SpannedKind::Scalar(Value::String(text)) => {
            plain_text(text, value, what, errors).map(Value::String)
        }
        SpannedKind::Scalar(scalar) => Some(scalar.clone()),
        SpannedKind::List(items) => {
            let items = items.iter().map(|item| plain_value(item, what, errors));
            // Every item is read, so that every error is found.
            let items: Vec<_> = items.collect();
            items.into_iter().collect::<Option<_>>().map(Value::Array)
        }
        SpannedKind::Map(entries) => {
            let mut plain = serde_json::Map::new();
            for entry in entries {
                let value = plain_value(&entry.value, what, errors);
                plain.extend(value.map(|value| (entry.key.clone(), value)));
            }
            (plain.len() == entries.len()).then_some(Value::Object(plain))
        }
    }
}

fn read_template(
    value: &SpannedValue,
    references: &mut Vec<(Reference, FilePosition)>,
    errors: &mut ErrorList<'_>,
) -> Option<ValueTemplate> {
    match &value.kind {
        SpannedKind::Scalar(Value::String(text)) => {
            read_text_template(text, value, references, errors)
        }
        SpannedKind::Scalar(scalar) => Some(ValueTemplate::Literal(scalar.clone())),
        SpannedKind::List(items) => {
            let items = items
                .iter()
                .map(|item| read_template(item, references, errors));
            // Every item is read, so that every error is found.
            let items: Vec<_> = items.collect();
            items
                .into_iter()
                .collect::<Option<_>>()
                .map(ValueTemplate::List)
        }
        SpannedKind::Map(entries) => {
            let mut filled = Vec::new();
            for entry in entries {
                let template = read_template(&entry.value, references, errors);
                filled.extend(template.map(|template| (entry.key.clone(), template)));
            }
            (filled.len() == entries.len()).then_some(ValueTemplate::Object(filled))
        }
    }
}

fn read_text_template(
    text: &str,
    value: &SpannedValue,
    references: &mut Vec<(Reference, FilePosition)>,
    errors: &mut ErrorList<'_>,
) -> Option<ValueTemplate> {
    match split_text(text) {
        Ok(SplitText { parts, offsets }) => {
            let found = parts.iter().filter_map(|part| match part {
                TextPart::Reference(reference) => Some(reference),
                TextPart::Plain(_) => None,
            });
            references.extend(found.zip(offsets).map(|(reference, offset)| {
                (reference.clone(), errors.position_in(value, text, offset))
            }));
            Some(ValueTemplate::from_parts(parts))
        }
        Err(found) => {
            for (offset, error) in found {
                let at = errors.position_in(value, text, offset);
                match error.hint {
                    Some(hint) => errors.push_with_hint(at, error.message, hint),
                    None => errors.push(at, error.message),
                }
            }
            None
        }
    }
}

pub(super) fn read_input(
    fields: &FieldMap<'_>,
    references: &mut Vec<(Reference, FilePosition)>,
    errors: &mut ErrorList<'_>,
) -> Vec<ValueTemplate> {
    let items = fields.texts("input", errors);
    if items.len() > MAX_INPUTS
        && let Some(entry) = fields.get("input")
    {
        errors.push(
            &entry.value,
            format!("`input` has at most {MAX_INPUTS} items"),
        );
    }
    let mut input = Vec::new();
    for (text, value) in items.into_iter().take(MAX_INPUTS) {
        match read_text_template(text, value, references, errors) {
            Some(ValueTemplate::Text(_)) => {
                let hint = "write every reference as an item of its own";
                errors.push_with_hint(value, "an item of `input` is one reference or a text", hint);
            }
            Some(template) => input.push(template),
            None => {}
        }
    }
    input
}
