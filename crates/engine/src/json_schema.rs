//! Validation of tool arguments against a tool's JSON Schema.
//!
//! Checks the keywords that schemars and tool servers use. Others (`pattern`, `if`, …) are not
//! checked: a tool still parses its own arguments, so that costs a clear message, never safety.
//! Invariant: arguments that the schema allows are never refused. Where a keyword is not checked,
//! the result is inexact, and neither `not` nor `oneOf` draws a conclusion from it.

mod values;

use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use values::{compare, count_limit, has_type, shown, values};

/// Schemas nest and refer to themselves. Beyond this depth nothing more is checked.
const MAX_DEPTH: usize = 64;
/// A hostile schema could ask for endless work. Beyond these steps nothing more is checked.
const MAX_STEPS: usize = 100_000;
/// A model fixes one violation at a time anyway.
const MAX_VIOLATIONS: usize = 3;

/// Keywords that restrict values and are not checked.
const UNCHECKED_KEYWORDS: [&str; 14] = [
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "multipleOf",
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

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
    let mut check = Check::new(schema, &steps);
    check.value(schema, value);
    check.violations
}

/// The result of checking a value against a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaVerdict {
    Allowed,
    Forbidden,
    /// Part of the schema was not checked.
    Unknown,
}

struct Check<'a> {
    root: &'a Value,
    /// Values checked and compared so far, in every branch.
    steps: &'a Cell<usize>,
    path: String,
    depth: usize,
    violations: Vec<SchemaViolation>,
    /// True if messages are not needed.
    is_probe: bool,
    /// True if part of the schema was not checked.
    is_inexact: bool,
}

impl<'a> Check<'a> {
    fn new(root: &'a Value, steps: &'a Cell<usize>) -> Self {
        Self {
            root,
            steps,
            path: String::new(),
            depth: 0,
            violations: Vec::new(),
            is_probe: false,
            is_inexact: false,
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value) {
        let keywords = match schema {
            Value::Bool(false) => return self.add(|| format!("{} is not allowed", shown(value))),
            Value::Object(keywords) => keywords,
            _ => return,
        };
        if self.violations.len() == MAX_VIOLATIONS {
            return;
        }
        if self.depth == MAX_DEPTH || !self.take_step() {
            self.is_inexact = true;
            return;
        }
        self.depth += 1;
        self.check_reference(keywords, value);
        self.check_type(keywords, value);
        self.check_choices(keywords, value);
        self.check_combinations(keywords, value);
        match value {
            Value::Object(fields) => self.check_object(keywords, fields),
            Value::Array(items) => self.check_array(keywords, items, value),
            Value::String(text) => self.check_string(keywords, text, value),
            Value::Number(number) => self.check_number(keywords, number),
            _ => {}
        }
        self.is_inexact |= UNCHECKED_KEYWORDS
            .iter()
            .any(|name| keywords.contains_key(*name));
        self.depth -= 1;
    }

    /// Follows a reference inside the schema. References to other documents are not followed.
    fn check_reference(&mut self, keywords: &'a Map<String, Value>, value: &Value) {
        let Some(reference) = keywords.get("$ref") else {
            return;
        };
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        match pointer.and_then(|pointer| self.root.pointer(pointer)) {
            Some(target) => self.value(target, value),
            None => self.is_inexact = true,
        }
    }

    fn check_type(&mut self, keywords: &Map<String, Value>, value: &Value) {
        let names: Vec<&str> = match keywords.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        let is_null = value.is_null() && keywords.get("nullable") == Some(&Value::Bool(true));
        if names.is_empty() || is_null || names.iter().any(|name| has_type(value, name)) {
            return;
        }
        let plural = if names.len() == 1 { "" } else { "s" };
        let names = names.iter().map(|name| format!("{name:?}"));
        let names = names.collect::<Vec<_>>().join(", ");
        self.add(|| format!("{} is not of type{plural} {names}", shown(value)));
    }

    fn check_choices(&mut self, keywords: &Map<String, Value>, value: &Value) {
        if let Some(Value::Array(choices)) = keywords.get("enum")
            && !choices.iter().any(|choice| self.is_equal(choice, value))
        {
            let choices: Vec<String> = choices.iter().map(shown).collect();
            self.add(|| format!("{} is not one of {}", shown(value), choices.join(", ")));
        }
        let constant = keywords.get("const");
        if let Some(constant) = constant.filter(|constant| !self.is_equal(constant, value)) {
            self.add(|| format!("{} was expected", shown(constant)));
        }
    }

    fn check_combinations(&mut self, keywords: &'a Map<String, Value>, value: &Value) {
        for schema in values(keywords, "allOf") {
            self.value(schema, value);
        }
        for (keyword, is_exclusive) in [("anyOf", false), ("oneOf", true)] {
            let verdicts: Vec<SchemaVerdict> = values(keywords, keyword)
                .map(|schema| self.verdict(schema, value))
                .collect();
            let count = |wanted| verdicts.iter().filter(|found| **found == wanted).count();
            let (allowed, unknown) = (count(SchemaVerdict::Allowed), count(SchemaVerdict::Unknown));
            if is_exclusive && allowed > 1 {
                self.add(|| {
                    format!(
                        "{} is valid under more than one of the schemas listed in the 'oneOf' keyword",
                        shown(value)
                    )
                });
            } else if allowed + unknown == 0 && !verdicts.is_empty() {
                self.add(|| {
                    format!(
                        "{} is not valid under any of the schemas listed in the '{keyword}' keyword",
                        shown(value)
                    )
                });
            } else {
                self.is_inexact |= unknown > 0;
            }
        }
        if let Some(schema) = keywords.get("not") {
            match self.verdict(schema, value) {
                SchemaVerdict::Allowed => {
                    self.add(|| format!("{} is not allowed for {}", shown(schema), shown(value)));
                }
                SchemaVerdict::Unknown => self.is_inexact = true,
                SchemaVerdict::Forbidden => {}
            }
        }
    }

    fn check_object(&mut self, keywords: &'a Map<String, Value>, fields: &Map<String, Value>) {
        self.check_properties(keywords, fields);
        for name in values(keywords, "required").filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                self.add(|| format!("{name:?} is a required property"));
            }
        }
        let limits = ["minProperties", "maxProperties"];
        self.check_count(keywords, limits, fields.len(), "properties");
    }

    fn check_properties(&mut self, keywords: &'a Map<String, Value>, fields: &Map<String, Value>) {
        let properties = keywords.get("properties").and_then(Value::as_object);
        let is_known = |name: &String| properties.is_some_and(|known| known.contains_key(name));
        let additional = keywords.get("additionalProperties");
        // Without checking patterns it is not known which properties are additional.
        match additional.filter(|_| !keywords.contains_key("patternProperties")) {
            Some(Value::Bool(false)) => {
                let unknown = fields.keys().filter(|name| !is_known(name));
                let unknown: Vec<String> = unknown.map(|name| format!("'{name}'")).collect();
                if !unknown.is_empty() {
                    let verb = if unknown.len() == 1 { "was" } else { "were" };
                    self.add(|| {
                        format!(
                            "Additional properties are not allowed ({} {verb} unexpected)",
                            unknown.join(", ")
                        )
                    });
                }
            }
            Some(schema @ Value::Object(_)) => {
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
    }

    fn check_array(&mut self, keywords: &'a Map<String, Value>, items: &[Value], whole: &Value) {
        let prefix = keywords.get("prefixItems").and_then(Value::as_array);
        // An array is the older form of `prefixItems`.
        self.is_inexact |= keywords.get("items").is_some_and(Value::is_array);
        for (index, item) in items.iter().enumerate() {
            let own = prefix.and_then(|schemas| schemas.get(index));
            if let Some(schema) = own.or_else(|| keywords.get("items")) {
                self.at(&index.to_string(), |check| check.value(schema, item));
            }
        }
        self.check_count(keywords, ["minItems", "maxItems"], items.len(), "items");
        let must_be_unique = keywords.get("uniqueItems") == Some(&Value::Bool(true));
        if must_be_unique && self.has_equal_items(items) {
            self.add(|| format!("{} has non-unique elements", shown(whole)));
        }
    }

    fn check_string(&mut self, keywords: &Map<String, Value>, text: &str, value: &Value) {
        let length = text.chars().count() as u64;
        if let Some(limit) = count_limit(keywords, "minLength").filter(|limit| length < *limit) {
            self.add(|| format!("{} is shorter than {limit} characters", shown(value)));
        }
        if let Some(limit) = count_limit(keywords, "maxLength").filter(|limit| length > *limit) {
            self.add(|| format!("{} is longer than {limit} characters", shown(value)));
        }
    }

    fn check_number(&mut self, keywords: &Map<String, Value>, number: &Number) {
        let limits = [
            (
                "minimum",
                Ordering::is_lt as fn(Ordering) -> bool,
                "less than the minimum of",
            ),
            ("maximum", Ordering::is_gt, "greater than the maximum of"),
            (
                "exclusiveMinimum",
                Ordering::is_le,
                "less than or equal to the minimum of",
            ),
            (
                "exclusiveMaximum",
                Ordering::is_ge,
                "greater than or equal to the maximum of",
            ),
        ];
        for (keyword, violates, text) in limits {
            if let Some(Value::Number(limit)) = keywords.get(keyword)
                && compare(number, limit).is_some_and(violates)
            {
                self.add(|| format!("{number} is {text} {limit}"));
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
        if let Some(limit) = count_limit(keywords, min).filter(|limit| count < *limit) {
            self.add(|| format!("{count} {noun} are fewer than the minimum of {limit}"));
        }
        if let Some(limit) = count_limit(keywords, max).filter(|limit| count > *limit) {
            self.add(|| format!("{count} {noun} are more than the maximum of {limit}"));
        }
    }

    fn verdict(&self, schema: &'a Value, value: &Value) -> SchemaVerdict {
        let mut probe = Check {
            depth: self.depth,
            is_probe: true,
            ..Check::new(self.root, self.steps)
        };
        probe.value(schema, value);
        match (probe.violations.is_empty(), probe.is_inexact) {
            (false, _) => SchemaVerdict::Forbidden,
            (true, false) => SchemaVerdict::Allowed,
            (true, true) => SchemaVerdict::Unknown,
        }
    }

    fn has_equal_items(&mut self, items: &[Value]) -> bool {
        let mut rest = items;
        while let Some((first, others)) = rest.split_first() {
            if others.iter().any(|other| self.is_equal(first, other)) {
                // Equality is assumed when the steps are used up.
                self.is_inexact |= self.gave_up();
                return !self.gave_up();
            }
            rest = others;
        }
        false
    }

    /// Compares by value: 1 equals 1.0, and the order of fields does not matter. Returns true when the
    /// steps are used up.
    fn is_equal(&self, a: &Value, b: &Value) -> bool {
        if !self.take_step() {
            return true;
        }
        match (a, b) {
            (Value::Number(x), Value::Number(y)) => compare(x, y) == Some(Ordering::Equal),
            (Value::Array(x), Value::Array(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(x, y)| self.is_equal(x, y))
            }
            (Value::Object(x), Value::Object(y)) => {
                let is_in_other = |(name, x)| y.get(name).is_some_and(|y| self.is_equal(x, y));
                x.len() == y.len() && x.iter().all(is_in_other)
            }
            _ => a == b,
        }
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

    fn add(&mut self, message: impl FnOnce() -> String) {
        if self.violations.len() < MAX_VIOLATIONS {
            let (path, message) = match self.is_probe {
                true => (String::new(), String::new()),
                false => (self.path.clone(), message()),
            };
            self.violations.push(SchemaViolation { path, message });
        }
    }

    /// Returns false if the steps are used up.
    fn take_step(&self) -> bool {
        let is_left = !self.gave_up();
        self.steps.set(self.steps.get() + usize::from(is_left));
        is_left
    }

    fn gave_up(&self) -> bool {
        self.steps.get() >= MAX_STEPS
    }
}

#[cfg(test)]
mod tests;
