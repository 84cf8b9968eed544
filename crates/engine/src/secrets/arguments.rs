//! References in the arguments of a call: where they may stand, and putting the values in.

use std::collections::BTreeMap;

use lango_domain::secret::Secret;
use lango_domain::secret_reference::InvalidReference;
use lango_domain::{SecretError, SecretField, SecretReference, Tool};
use serde_json::Value;

/// Returns the references in the declared fields of a call, each once. A reference in any other place
/// is refused.
pub(super) fn find_references(
    tool: &Tool,
    arguments: &Value,
) -> Result<Vec<SecretReference>, String> {
    let mut found: Vec<SecretReference> = Vec::new();
    let mut add = |text: &str| -> Result<(), String> {
        let references = SecretReference::find_all(text).map_err(|error| error.to_string())?;
        for reference in references {
            if !found.contains(&reference) {
                found.push(reference);
            }
        }
        Ok(())
    };
    let Value::Object(fields) = arguments else {
        return match has_reference(arguments) {
            true => Err(misplaced(tool, "these arguments")),
            false => Ok(found),
        };
    };
    for (name, value) in fields {
        let field = tool.secret_fields.iter().find(|field| field.name() == name);
        match (field, value) {
            (Some(SecretField::Text(_)), Value::String(text)) => add(text)?,
            (Some(SecretField::Values(_)), Value::Object(values)) => {
                for (key, value) in values {
                    match value {
                        _ if SecretReference::is_in(key) => return Err(misplaced(tool, "a name")),
                        Value::String(text) => add(text)?,
                        other if has_reference(other) => return Err(misplaced(tool, key)),
                        _ => {}
                    }
                }
            }
            _ if has_reference(value) || SecretReference::is_in(name) => {
                return Err(misplaced(tool, name));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => SecretReference::is_in(text),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| SecretReference::is_in(name) || has_reference(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Phrased so that the model can correct the call.
fn misplaced(tool: &Tool, place: &str) -> String {
    let name = &tool.name;
    let accepted = tool.secret_fields.iter().map(|field| match field {
        SecretField::Text(field) => format!("in `{field}`"),
        SecretField::Values(field) => {
            format!("as values of `{field}`, such as {{\"{field}\": {{\"TOKEN\": \"{{{{secret:TOKEN}}}}\"}}}}")
        }
    });
    let accepted: Vec<String> = accepted.collect();
    match accepted.is_empty() {
        true => format!(
            "`{place}` contains a reference to a secret, and {name} does not accept references; nothing was run"
        ),
        false => format!(
            "`{place}` contains a reference to a secret, and nothing was run: {name} accepts references only {}",
            accepted.join(" and ")
        ),
    }
}

pub(super) fn put_in_values(
    tool: &Tool,
    arguments: &mut Value,
    values: &BTreeMap<SecretReference, Secret>,
) -> Result<(), SecretError> {
    let put_in = |text: &mut String| -> Result<(), SecretError> {
        let value = |reference: &SecretReference| -> Result<Secret, ResolveError> {
            values.get(reference).cloned().ok_or(ResolveError)
        };
        *text = SecretReference::replace_all(text, value)
            .map_err(|_| SecretError::Unreadable("a reference has no value".to_owned()))?;
        Ok(())
    };
    for field in &tool.secret_fields {
        match (field, arguments.get_mut(field.name())) {
            (SecretField::Text(_), Some(Value::String(text))) => put_in(text)?,
            (SecretField::Values(_), Some(Value::Object(fields))) => {
                for value in fields.values_mut() {
                    if let Value::String(text) = value {
                        put_in(text)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A reference without a value. References were found before, so this does not happen.
struct ResolveError;

impl From<InvalidReference> for ResolveError {
    fn from(_: InvalidReference) -> Self {
        Self
    }
}
