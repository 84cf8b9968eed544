//! Parses untrusted JSON field by field; errors contain the path of the field.

use std::fmt;

use serde_json::{Map, Value};

use super::version::WireFormat;

/// Free-form additional data; empty means absent.
pub type Metadata = Map<String, Value>;

/// Maximum number of items of a list.
const MAX_ITEMS: usize = 10_000;

/// An invalid field of a JSON document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FieldError {
    /// Path of the field, outermost first.
    path: Vec<String>,
    problem: String,
}

impl FieldError {
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            problem: problem.into(),
        }
    }

    pub(crate) fn at(field: &str, problem: impl Into<String>) -> Self {
        Self::new(problem).within(field)
    }

    pub(crate) fn within(mut self, step: &str) -> Self {
        self.path
            .insert(0, lango_text::sanitize::truncated_line(step, 60));
        self
    }

    /// Returns the path of the field, such as `message.parts[2].text`.
    pub fn field_path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(step);
        }
        path
    }

    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field_path().as_str() {
            "" => f.write_str(&self.problem),
            path => write!(f, "`{path}` {}", self.problem),
        }
    }
}

/// The fields of a JSON object. `null` counts as absent, and snake case names are accepted, as the
/// JSON mapping of protocol buffers requires.
#[derive(Clone, Copy)]
pub(crate) struct JsonFields<'a> {
    map: &'a Map<String, Value>,
    pub wire: WireFormat,
}

impl<'a> JsonFields<'a> {
    pub fn from_value(value: &'a Value, wire: WireFormat) -> Result<Self, FieldError> {
        match value {
            Value::Object(map) => Ok(Self { map, wire }),
            _ => Err(FieldError::new("must be an object")),
        }
    }

    pub fn get(&self, name: &str) -> Option<&'a Value> {
        let found = self.map.get(name).or_else(|| {
            let is_camel = name.bytes().any(|byte| byte.is_ascii_uppercase());
            if is_camel {
                self.map.get(&to_snake_case(name))
            } else {
                None
            }
        });
        found.filter(|value| !value.is_null())
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, FieldError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(FieldError::at(name, "must be a string")),
        }
    }

    /// Returns a string; an empty one counts as absent.
    pub fn non_empty(&self, name: &str) -> Result<Option<String>, FieldError> {
        Ok(self
            .text(name)?
            .filter(|text| !text.is_empty())
            .map(str::to_owned))
    }

    pub fn required(&self, name: &str) -> Result<String, FieldError> {
        self.non_empty(name)?.ok_or_else(|| missing(name))
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, FieldError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(FieldError::at(name, "must be true or false")),
        }
    }

    /// Returns a count. A number in a string is accepted, as in a query.
    pub fn count(&self, name: &str) -> Result<Option<u32>, FieldError> {
        let invalid = || FieldError::at(name, "must be a whole number from 0 to 2147483647");
        let number = match self.get(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_u64().ok_or_else(invalid)?,
            Some(Value::String(text)) => text.trim().parse().map_err(|_| invalid())?,
            Some(_) => return Err(invalid()),
        };
        match u32::try_from(number) {
            Ok(number) if number <= i32::MAX as u32 => Ok(Some(number)),
            _ => Err(invalid()),
        }
    }

    pub fn metadata(&self, name: &str) -> Result<Metadata, FieldError> {
        match self.get(name) {
            None => Ok(Metadata::new()),
            Some(Value::Object(map)) => Ok(map.clone()),
            Some(_) => Err(FieldError::at(name, "must be an object")),
        }
    }

    pub fn nested<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&'a Value, WireFormat) -> Result<T, FieldError>,
    ) -> Result<Option<T>, FieldError> {
        self.get(name)
            .map(|value| parse(value, self.wire))
            .transpose()
            .map_err(|error| error.within(name))
    }

    pub fn list<T>(
        &self,
        name: &str,
        mut parse: impl FnMut(&'a Value, WireFormat) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        let items = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(FieldError::at(name, "must be an array")),
        };
        if items.len() > MAX_ITEMS {
            return Err(FieldError::at(
                name,
                format!("has more than {MAX_ITEMS} items"),
            ));
        }
        let parse_item = |(at, item)| {
            parse(item, self.wire)
                .map_err(|error: FieldError| error.within(&format!("[{at}]")).within(name))
        };
        items.iter().enumerate().map(parse_item).collect()
    }

    pub fn texts(&self, name: &str) -> Result<Vec<String>, FieldError> {
        self.list(name, |value, _| parse_text(value))
    }
}

pub(crate) fn missing(name: &str) -> FieldError {
    FieldError::at(name, "is missing")
}

pub(crate) fn parse_text(value: &Value) -> Result<String, FieldError> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| FieldError::new("must be a string"))
}

/// Builds JSON objects without empty fields.
#[derive(Default)]
pub(crate) struct JsonObjectWriter(Map<String, Value>);

impl JsonObjectWriter {
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub fn with_some<T: Into<Value>>(self, name: &str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub fn with_list(self, name: &str, items: Vec<Value>) -> Self {
        if items.is_empty() {
            self
        } else {
            self.with(name, items)
        }
    }

    pub fn with_texts(self, name: &str, items: &[String]) -> Self {
        self.with_list(
            name,
            items
                .iter()
                .map(|item| Value::from(item.as_str()))
                .collect(),
        )
    }

    pub fn with_metadata(self, metadata: &Metadata) -> Self {
        if metadata.is_empty() {
            self
        } else {
            self.with("metadata", metadata.clone())
        }
    }

    pub fn build(self) -> Value {
        Value::Object(self.0)
    }
}

fn to_snake_case(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_contain_the_field_path() {
        let value = json!({ "a": [{ "b": "ok" }, { "b": 3 }] });
        let fields = JsonFields::from_value(&value, WireFormat::V1).unwrap();
        let parse = fields.list("a", |item, wire| {
            JsonFields::from_value(item, wire)?.required("b")
        });
        assert_eq!(parse.unwrap_err().to_string(), "`a[1].b` must be a string");
        assert_eq!(
            JsonFields::from_value(&json!([]), WireFormat::V1)
                .err()
                .unwrap()
                .to_string(),
            "must be an object"
        );
    }

    #[test]
    fn accepts_snake_case_and_null() {
        let value = json!({ "message_id": "m", "contextId": null, "n": 7, "s": "7" });
        let fields = JsonFields::from_value(&value, WireFormat::V1).unwrap();
        assert_eq!(fields.required("messageId").unwrap(), "m");
        assert!(!fields.has("contextId"));
        assert_eq!(
            (fields.count("n").unwrap(), fields.count("s").unwrap()),
            (Some(7), Some(7))
        );
    }

    #[test]
    fn rejects_invalid_counts() {
        for count in [
            json!(-1),
            json!(1.5),
            json!(1e300),
            json!(u64::MAX),
            json!(2_147_483_648_u64),
            json!([]),
            json!("x"),
        ] {
            let value = json!({ "n": count });
            assert!(
                JsonFields::from_value(&value, WireFormat::V1)
                    .unwrap()
                    .count("n")
                    .is_err(),
                "{value}"
            );
        }
    }
}
