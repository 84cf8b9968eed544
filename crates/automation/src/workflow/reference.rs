//! References in workflow files: `{{step.result}}` and `{{params.name}}`.
//!
//! A reference is replaced by a value, never by text of a command or a prompt (B122). `{{` before
//! anything that is not a name, such as `{{secret:name}}` or `{{.ID}}`, is plain text, and so is `\{{`.

use std::fmt;

use serde_json::{Map, Value};

/// Where the value of a reference comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceSource {
    Param(String),
    Step { id: String, field: StepField },
}

/// The part of a step that a reference reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepField {
    Result,
    State,
    Error,
}

impl StepField {
    pub const NAMES: [&str; 3] = ["result", "state", "error"];

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "result" => Some(Self::Result),
            "state" => Some(Self::State),
            "error" => Some(Self::Error),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::State => "state",
            Self::Error => "error",
        }
    }
}

/// A reference to a value, or to a part of a structured value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub source: ReferenceSource,
    /// Keys and positions below the value.
    pub path: Vec<String>,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            ReferenceSource::Param(name) => write!(f, "params.{name}")?,
            ReferenceSource::Step { id, field } => write!(f, "{id}.{}", field.name())?,
        }
        self.path.iter().try_for_each(|part| write!(f, ".{part}"))
    }
}

/// The reason why a dotted name is not a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceError {
    pub message: String,
    pub hint: Option<String>,
}

impl Reference {
    /// Parses a dotted name, such as `params.branch` or `build.result.files.0`.
    pub fn parse(name: &str) -> Result<Self, ReferenceError> {
        let mut parts = name.split('.');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        let path: Vec<String> = parts.map(str::to_owned).collect();
        let Some(second) = second else {
            return Err(ReferenceError {
                message: format!("`{name}` names no value"),
                hint: Some(format!(
                    "write `params.{name}` or `{name}.result`, or `\\{{{{` for plain text"
                )),
            });
        };
        if first == "params" {
            let source = ReferenceSource::Param(second.to_owned());
            return Ok(Self { source, path });
        }
        let Some(field) = StepField::parse(second) else {
            let near = lango_text::suggest::did_you_mean(second, StepField::NAMES);
            return Err(ReferenceError {
                message: format!("a step has no `{second}`"),
                hint: Some(near.unwrap_or_else(|| format!("write `{first}.result`"))),
            });
        };
        let id = first.to_owned();
        Ok(Self {
            source: ReferenceSource::Step { id, field },
            path,
        })
    }

    /// Returns the step that the reference reads.
    pub fn step(&self) -> Option<&str> {
        match &self.source {
            ReferenceSource::Step { id, .. } => Some(id),
            ReferenceSource::Param(_) => None,
        }
    }
}

/// The values that references can read.
pub trait ReferenceValues {
    fn param(&self, name: &str) -> Option<Value>;
    fn step(&self, id: &str, field: StepField) -> Option<Value>;
}

/// Returns the value of a reference, or `None` if there is none.
pub fn resolve(reference: &Reference, values: &dyn ReferenceValues) -> Option<Value> {
    let value = match &reference.source {
        ReferenceSource::Param(name) => values.param(name),
        ReferenceSource::Step { id, field } => values.step(id, *field),
    }?;
    reference.path.iter().try_fold(value, |value, part| {
        // Most tools return JSON as text.
        let value = match value {
            Value::String(text) => serde_json::from_str(&text).ok()?,
            value => value,
        };
        match value {
            Value::Object(mut map) => map.remove(part),
            Value::Array(items) => items.into_iter().nth(part.parse().ok()?),
            _ => None,
        }
    })
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPart {
    Plain(String),
    Reference(Reference),
}

/// A part of a text that could not be parsed, with its byte offset in the text.
pub type PartError = (usize, ReferenceError);

/// A text in parts, with the byte offset of each reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitText {
    pub parts: Vec<TextPart>,
    pub offsets: Vec<usize>,
}

/// Splits a text into plain parts and references. Returns every error.
pub fn split_text(text: &str) -> Result<SplitText, Vec<PartError>> {
    let (mut split, mut plain, mut errors) = (SplitText::default(), String::new(), Vec::new());
    let mut at = 0;
    while let Some(found) = text[at..].find("{{") {
        let open = at + found;
        if let Some(before) = text[at..open].strip_suffix('\\') {
            plain.push_str(before);
            plain.push_str("{{");
            at = open + 2;
            continue;
        }
        plain.push_str(&text[at..open]);
        match name_in_braces(&text[open + 2..]) {
            None => {
                plain.push_str("{{");
                at = open + 2;
            }
            Some((name, length)) => {
                match Reference::parse(name) {
                    Ok(reference) => {
                        if !plain.is_empty() {
                            split
                                .parts
                                .push(TextPart::Plain(std::mem::take(&mut plain)));
                        }
                        split.parts.push(TextPart::Reference(reference));
                        split.offsets.push(open);
                    }
                    Err(error) => errors.push((open, error)),
                }
                at = open + 2 + length;
            }
        }
    }
    plain.push_str(&text[at..]);
    if !plain.is_empty() {
        split.parts.push(TextPart::Plain(plain));
    }
    if errors.is_empty() {
        Ok(split)
    } else {
        Err(errors)
    }
}

/// Returns the name after `{{` and the length up to and including `}}`, if that is all there is.
fn name_in_braces(rest: &str) -> Option<(&str, usize)> {
    let end = rest.find("}}")?;
    let name = rest[..end].trim();
    name.split('.').all(is_name).then_some((name, end + 2))
}

/// Returns true for names of steps and parameters.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// A JSON value with references in it.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueTemplate {
    Literal(Value),
    /// A text that is exactly one reference: it becomes that value.
    Reference(Reference),
    /// A text around references: their values become part of the text.
    Text(Vec<TextPart>),
    List(Vec<ValueTemplate>),
    Object(Vec<(String, ValueTemplate)>),
}

impl ValueTemplate {
    /// Builds the template of a text.
    pub fn from_parts(mut parts: Vec<TextPart>) -> Self {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return match only {
                TextPart::Plain(text) => Self::Literal(Value::String(text)),
                TextPart::Reference(reference) => Self::Reference(reference),
            };
        }
        if parts.is_empty() {
            return Self::Literal(Value::from(""));
        }
        Self::Text(parts)
    }

    /// Puts the values in. A reference without a value is an error, because a tool would read `null`
    /// as something else.
    pub fn fill(&self, values: &dyn ReferenceValues) -> Result<Value, MissingValue> {
        let get = |reference: &Reference| {
            resolve(reference, values).ok_or_else(|| MissingValue(reference.to_string()))
        };
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Reference(reference) => get(reference),
            Self::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Plain(plain) => text.push_str(plain),
                        TextPart::Reference(reference) => match get(reference)? {
                            Value::String(value) => text.push_str(&value),
                            value => text.push_str(&value.to_string()),
                        },
                    }
                }
                Ok(Value::String(text))
            }
            Self::List(items) => items.iter().map(|item| item.fill(values)).collect(),
            Self::Object(entries) => {
                let mut map = Map::new();
                for (key, item) in entries {
                    map.insert(key.clone(), item.fill(values)?);
                }
                Ok(Value::Object(map))
            }
        }
    }
}

/// Formats the template as JSON, with its references as the file writes them.
impl fmt::Display for ValueTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shown(self).fmt(f)
    }
}

fn shown(template: &ValueTemplate) -> Value {
    let written = |reference: &Reference| format!("{{{{{reference}}}}}");
    match template {
        ValueTemplate::Literal(value) => value.clone(),
        ValueTemplate::Reference(reference) => Value::String(written(reference)),
        ValueTemplate::Text(parts) => {
            let texts = parts.iter().map(|part| match part {
                TextPart::Plain(text) => text.clone(),
                TextPart::Reference(reference) => written(reference),
            });
            Value::String(texts.collect())
        }
        ValueTemplate::List(items) => items.iter().map(shown).collect(),
        ValueTemplate::Object(entries) => entries
            .iter()
            .map(|(key, item)| (key.clone(), shown(item)))
            .collect(),
    }
}

/// A reference that has no value in this run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has no value in this run")]
pub struct MissingValue(pub String);
