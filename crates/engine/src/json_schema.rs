//! Validation of tool arguments against a tool's JSON Schema.
//!
//! Checks the keywords that schemars and tool servers use. Others (`pattern`, `format`, …) are
//! ignored: a tool still parses its own arguments, so a keyword that is not checked here costs a
//! clear message, never safety.

use std::cell::Cell;

use serde_json::{Map, Value};

/// Schemas nest and refer to themselves. Beyond this depth nothing more is checked.
const MAX_DEPTH: usize = 64;
/// A hostile schema could ask for endless work. Beyond these steps nothing more is checked.
const MAX_STEPS: usize = 100_000;
/// A model fixes one violation at a time anyway.
const MAX_VIOLATIONS: usize = 3;
/// Comparing every pair of items is not worth it for longer arrays.
const MAX_UNIQUE_ITEMS: usize = 1_000;

/// Compares a number with a limit.
type Violates = fn(&f64, &f64) -> bool;

/// A violation of the schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SchemaViolation {
    /// JSON pointer to the value; empty for the arguments as a whole.
    pub path: String,
    pub message: String,
}

/// Returns the first violations of `schema` in `value`.
pub(crate) fn validate(schema: &Value, value: &Value) -> Vec<SchemaViolation> {
    let steps = Cell::new(0);
    let mut check = Check {
        root: schema,
        steps: &steps,
        path: String::new(),
        depth: 0,
        violations: Vec::new(),
    };
    check.value(schema, value);
    check.violations
}

struct Check<'a> {
    root: &'a Value,
    /// Values checked so far, in every branch.
    steps: &'a Cell<usize>,
    path: String,
    depth: usize,
    violations: Vec<SchemaViolation>,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value) {
        let keywords = match schema {
            Value::Bool(false) => return self.add(format!("{value} is not allowed")),
            Value::Object(keywords) => keywords,
            _ => return,
        };
        if self.depth == MAX_DEPTH {
            self.steps.set(MAX_STEPS);
        }
        if self.gave_up() || self.violations.len() == MAX_VIOLATIONS {
            return;
        }
        self.steps.set(self.steps.get() + 1);
        self.depth += 1;
        if let Some(target) = keywords.get("$ref").and_then(|name| self.resolve(name)) {
            self.value(target, value);
        }
        self.check_type(keywords, value);
        self.check_choices(keywords, value);
        self.check_combinations(keywords, value);
        match value {
            Value::Object(fields) => self.check_object(keywords, fields),
            Value::Array(items) => self.check_array(keywords, items, value),
            Value::String(text) => self.check_string(keywords, text, value),
            Value::Number(_) => self.check_number(keywords, value),
            _ => {}
        }
        self.depth -= 1;
    }

    /// Resolves a reference inside the schema. References to other documents are not followed.
    fn resolve(&self, reference: &Value) -> Option<&'a Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }

    fn check_type(&mut self, keywords: &Map<String, Value>, value: &Value) {
        match keywords.get("type") {
            Some(Value::String(name)) if !has_type(value, name) => {
                self.add(format!("{value} is not of type {:?}", name.as_str()));
            }
            Some(Value::Array(names)) => {
                let mut names = names.iter().filter_map(Value::as_str);
                if !names.clone().any(|name| has_type(value, name)) {
                    let first = names.next().map(|name| format!("{name:?}"));
                    let all = names.fold(first.unwrap_or_default(), |all, name| {
                        format!("{all}, {name:?}")
                    });
                    self.add(format!("{value} is not of types {all}"));
                }
            }
            _ => {}
        }
    }

    fn check_choices(&mut self, keywords: &Map<String, Value>, value: &Value) {
        if let Some(Value::Array(choices)) = keywords.get("enum")
            && !choices.iter().any(|choice| is_equal(choice, value))
        {
            let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
            self.add(format!("{value} is not one of {}", choices.join(", ")));
        }
        if let Some(constant) = keywords
            .get("const")
            .filter(|constant| !is_equal(constant, value))
        {
            self.add(format!("{constant} was expected"));
        }
    }

    fn check_combinations(&mut self, keywords: &'a Map<String, Value>, value: &Value) {
        for schema in values(keywords, "allOf") {
            self.value(schema, value);
        }
        for (keyword, exact) in [("anyOf", false), ("oneOf", true)] {
            if !keywords.contains_key(keyword) {
                continue;
            }
            let valid = values(keywords, keyword).filter(|schema| self.accepts(schema, value));
            match valid.count() {
                0 => self.add(format!(
                    "{value} is not valid under any of the schemas listed in the '{keyword}' keyword"
                )),
                2.. if exact => self.add(format!(
                    "{value} is valid under more than one of the schemas listed in the 'oneOf' keyword"
                )),
                _ => {}
            }
        }
        if let Some(schema) = keywords
            .get("not")
            .filter(|schema| self.accepts(schema, value))
        {
            self.add(format!("{schema} is not allowed for {value}"));
        }
    }

    fn check_object(&mut self, keywords: &'a Map<String, Value>, fields: &Map<String, Value>) {
        let properties = keywords.get("properties").and_then(Value::as_object);
        let is_known = |name: &String| properties.is_some_and(|known| known.contains_key(name));
        let has_patterns = keywords.contains_key("patternProperties");
        match keywords.get("additionalProperties") {
            Some(Value::Bool(false)) if !has_patterns => {
                let unknown: Vec<String> = fields
                    .keys()
                    .filter(|name| !is_known(name))
                    .map(|name| format!("'{name}'"))
                    .collect();
                if !unknown.is_empty() {
                    let verb = if unknown.len() == 1 { "was" } else { "were" };
                    self.add(format!(
                        "Additional properties are not allowed ({} {verb} unexpected)",
                        unknown.join(", ")
                    ));
                }
            }
            Some(schema @ Value::Object(_)) if !has_patterns => {
                for (name, value) in fields.iter().filter(|(name, _)| !is_known(name)) {
                    self.at(name, |check| check.value(schema, value));
                }
            }
            _ => {}
        }
        for (name, schema) in properties.into_iter().flatten() {
            if let Some(value) = fields.get(name) {
                self.at(name, |check| check.value(schema, value));
            }
        }
        for name in values(keywords, "required").filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                self.add(format!("{name:?} is a required property"));
            }
        }
        self.check_count(
            keywords,
            ["minProperties", "maxProperties"],
            fields.len(),
            "properties",
        );
    }

    fn check_array(&mut self, keywords: &'a Map<String, Value>, items: &[Value], whole: &Value) {
        let prefix = keywords.get("prefixItems").and_then(Value::as_array);
        for (index, item) in items.iter().enumerate() {
            let own = prefix.and_then(|schemas| schemas.get(index));
            if let Some(schema) = own.or_else(|| keywords.get("items")) {
                self.at(&index.to_string(), |check| check.value(schema, item));
            }
        }
        self.check_count(keywords, ["minItems", "maxItems"], items.len(), "items");
        let is_unique = keywords.get("uniqueItems") == Some(&Value::Bool(true))
            && items.len() <= MAX_UNIQUE_ITEMS;
        if is_unique && has_equal_items(items) {
            self.add(format!("{whole} has non-unique elements"));
        }
    }

    fn check_string(&mut self, keywords: &Map<String, Value>, text: &str, value: &Value) {
        let length = text.chars().count() as u64;
        if let Some(limit) = number(keywords, "minLength").filter(|limit| length < *limit) {
            self.add(format!("{value} is shorter than {limit} characters"));
        }
        if let Some(limit) = number(keywords, "maxLength").filter(|limit| length > *limit) {
            self.add(format!("{value} is longer than {limit} characters"));
        }
    }

    fn check_number(&mut self, keywords: &Map<String, Value>, value: &Value) {
        let Some(number) = value.as_f64() else { return };
        let limits = [
            (
                "minimum",
                f64::lt as Violates,
                "is less than the minimum of",
            ),
            ("maximum", f64::gt, "is greater than the maximum of"),
            (
                "exclusiveMinimum",
                f64::le,
                "is less than or equal to the minimum of",
            ),
            (
                "exclusiveMaximum",
                f64::ge,
                "is greater than or equal to the maximum of",
            ),
        ];
        for (keyword, violates, text) in limits {
            let limit = keywords.get(keyword);
            if let Some(limit) =
                limit.filter(|limit| limit.as_f64().is_some_and(|l| violates(&number, &l)))
            {
                self.add(format!("{value} {text} {limit}"));
            }
        }
    }

    fn check_count(
        &mut self,
        keywords: &Map<String, Value>,
        [min, max]: [&str; 2],
        count: usize,
        noun: &str,
    ) {
        let count = count as u64;
        if let Some(limit) = number(keywords, min).filter(|limit| count < *limit) {
            self.add(format!(
                "{count} {noun} are fewer than the minimum of {limit}"
            ));
        }
        if let Some(limit) = number(keywords, max).filter(|limit| count > *limit) {
            self.add(format!(
                "{count} {noun} are more than the maximum of {limit}"
            ));
        }
    }

    fn accepts(&self, schema: &'a Value, value: &Value) -> bool {
        let mut check = Check {
            root: self.root,
            steps: self.steps,
            path: String::new(),
            depth: self.depth,
            violations: Vec::new(),
        };
        check.value(schema, value);
        check.violations.is_empty()
    }

    /// Runs `check` with `name` appended to the path.
    fn at(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path
            .push_str(&name.replace('~', "~0").replace('/', "~1"));
        check(self);
        self.path.truncate(length);
    }

    /// Adds a violation, unless it could come from a part that was not checked to its end.
    fn add(&mut self, message: String) {
        if !self.gave_up() && self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(SchemaViolation {
                path: self.path.clone(),
                message,
            });
        }
    }

    fn gave_up(&self) -> bool {
        self.steps.get() >= MAX_STEPS
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        _ => true,
    }
}

fn has_equal_items(items: &[Value]) -> bool {
    let mut rest = items;
    while let Some((first, others)) = rest.split_first() {
        if others.iter().any(|other| is_equal(first, other)) {
            return true;
        }
        rest = others;
    }
    false
}

/// Compares by value: 1 equals 1.0, and the order of fields does not matter.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_equal(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(name, x)| y.get(name).is_some_and(|y| is_equal(x, y)))
        }
        _ => a == b,
    }
}

fn values<'a>(keywords: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    keywords
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn number(keywords: &Map<String, Value>, name: &str) -> Option<u64> {
    keywords.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests;
