//! The definition of a tool, as its server describes it: data of a stranger.

use lango_text::sanitize;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tool_name::{hex, words_of_name};

/// Most characters of a description that a model reads.
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Largest schema of arguments; a tool with a larger one is left out.
pub(crate) const MAX_SCHEMA_BYTES: usize = 32 * 1024;
const MAX_NAME_BYTES: usize = 256;
const MAX_CAPABILITY_CHARS: usize = 60;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The server's own words about the effects of the tool. They are shown to people and decide nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Value>,
}

impl ToolDefinition {
    /// Reads a definition, or returns the reason why it cannot be used.
    pub(crate) fn read(tool: rmcp::model::Tool) -> Result<Self, String> {
        if tool.name.is_empty() || tool.name.len() > MAX_NAME_BYTES {
            return Err(format!("its name must have 1 to {MAX_NAME_BYTES} bytes"));
        }
        let input_schema = Value::Object(tool.input_schema.as_ref().clone());
        if input_schema.get("type").is_none_or(|kind| kind != "object") {
            return Err("the schema of its arguments is not that of an object".to_owned());
        }
        if input_schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err(format!(
                "the schema of its arguments is larger than {MAX_SCHEMA_BYTES} bytes"
            ));
        }
        if has_foreign_reference(&input_schema) {
            return Err("the schema of its arguments refers to another document".to_owned());
        }
        let hints = tool
            .annotations
            .and_then(|hints| serde_json::to_value(hints).ok());
        let output_schema = tool.output_schema.as_ref();
        Ok(Self {
            name: tool.name.into_owned(),
            title: tool.title,
            description: tool
                .description
                .map(|text| text.into_owned())
                .unwrap_or_default(),
            input_schema,
            output_schema: output_schema.map(|schema| Value::Object(schema.as_ref().clone())),
            hints,
        })
    }

    /// Identifies everything that a model or the user reads about the tool.
    pub fn fingerprint(&self) -> String {
        let all = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "input": self.input_schema,
            "output": self.output_schema,
            "hints": self.hints,
        });
        hex(&Sha256::digest(all.to_string().as_bytes()))
    }

    /// Returns the description for a model, without control characters and limited.
    pub(crate) fn model_description(&self) -> String {
        let text = sanitize::escape_hidden_chars(&self.description);
        let text: String = text.chars().take(MAX_DESCRIPTION_CHARS).collect();
        let text = text.trim();
        match text.is_empty() {
            true => self.capability(),
            false => text.to_owned(),
        }
    }

    /// Returns a few words about what the tool does, for the agent that delegates. They come from its title
    /// or its name.
    pub fn capability(&self) -> String {
        let title = self
            .title
            .as_deref()
            .filter(|title| !title.trim().is_empty());
        let words = words_of_name(title.unwrap_or(&self.name));
        sanitize::truncated_line(&words, MAX_CAPABILITY_CHARS)
    }
}

/// Returns true if a schema refers to something outside itself.
fn has_foreign_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| match value {
            Value::String(target) if key == "$ref" => !target.starts_with('#'),
            other => has_foreign_reference(other),
        }),
        Value::Array(items) => items.iter().any(has_foreign_reference),
        _ => false,
    }
}
