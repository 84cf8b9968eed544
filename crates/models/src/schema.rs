//! Converts JSON schemas for providers that do not resolve references.

use serde_json::{Map, Value};

/// Replaces every reference by its target and drops the definitions. A recursive reference becomes
/// an empty schema.
pub(crate) fn inline_references(schema: &Value) -> Value {
    let mut inlined = inline(schema, schema, &mut Vec::new());
    if let Value::Object(map) = &mut inlined {
        map.remove("$defs");
        map.remove("definitions");
        map.remove("$schema");
    }
    inlined
}

fn inline<'a>(root: &'a Value, node: &'a Value, ancestors: &mut Vec<&'a str>) -> Value {
    match node {
        Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
            Some(target) if ancestors.contains(&target) => Value::Object(Map::new()),
            Some(target) => {
                ancestors.push(target);
                let found = target
                    .strip_prefix('#')
                    .and_then(|pointer| root.pointer(pointer));
                let mut inlined = found.map_or_else(
                    || Value::Object(Map::new()),
                    |found| inline(root, found, ancestors),
                );
                ancestors.pop();
                // Siblings of `$ref`, such as a description, override the target's.
                if let Value::Object(inlined) = &mut inlined {
                    let siblings = map.iter().filter(|(key, _)| *key != "$ref");
                    inlined.extend(siblings.map(|(key, value)| (key.clone(), value.clone())));
                }
                inlined
            }
            None => map
                .iter()
                .map(|(key, value)| (key.clone(), inline(root, value, ancestors)))
                .collect(),
        },
        Value::Array(items) => items
            .iter()
            .map(|item| inline(root, item, ancestors))
            .collect(),
        other => other.clone(),
    }
}

/// Reduces a schema to the JSON Schema keywords that Gemini supports.
pub(crate) fn to_gemini_schema(schema: &Value) -> Value {
    const SUPPORTED_KEYWORDS: [&str; 17] = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "items",
        "anyOf",
    ];
    fn clean(schema: &Value) -> Value {
        let Value::Object(map) = schema else {
            return schema.clone();
        };
        if let Some(choices) = enum_from_choices(map) {
            return choices;
        }
        let mut cleaned = Map::new();
        for (key, value) in map
            .iter()
            .filter(|(key, _)| SUPPORTED_KEYWORDS.contains(&key.as_str()))
        {
            let value = match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => properties
                    .iter()
                    .map(|(name, value)| (name.clone(), clean(value)))
                    .collect(),
                ("items", value) => clean(value),
                ("anyOf", Value::Array(options)) => options.iter().map(clean).collect(),
                ("type", Value::Array(kinds)) => {
                    // Gemini expresses `["string", "null"]` with `nullable`.
                    cleaned.insert(
                        "nullable".to_owned(),
                        Value::Bool(kinds.iter().any(|kind| kind == "null")),
                    );
                    kinds
                        .iter()
                        .find(|kind| *kind != "null")
                        .cloned()
                        .unwrap_or_default()
                }
                // Gemini supports enums of strings only, and few formats.
                ("enum", Value::Array(values)) if !values.iter().all(Value::is_string) => continue,
                ("format", value) if value != "enum" && value != "date-time" => continue,
                (_, value) => value.clone(),
            };
            cleaned.insert(key.clone(), value);
        }
        Value::Object(cleaned)
    }
    clean(&inline_references(schema))
}

/// Converts documented choices (`oneOf` with `const`) to an `enum`.
fn enum_from_choices(map: &Map<String, Value>) -> Option<Value> {
    let options = map.get("oneOf").or_else(|| map.get("anyOf"))?.as_array()?;
    let values: Vec<&str> = options
        .iter()
        .map(|option| option.get("const")?.as_str())
        .collect::<Option<_>>()?;
    let mut cleaned = Map::from_iter([
        ("type".to_owned(), Value::from("string")),
        ("enum".to_owned(), Value::from(values)),
    ]);
    cleaned.extend(
        map.get("description")
            .map(|text| ("description".to_owned(), text.clone())),
    );
    Some(Value::Object(cleaned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_inlined_and_recursion_ends() {
        let schema = json!({
            "$defs": { "Point": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Point" } } } },
            "type": "object",
            "properties": { "at": { "$ref": "#/$defs/Point" }, "lost": { "$ref": "#/nowhere" } }
        });
        let flat = inline_references(&schema);
        assert!(!flat.to_string().contains("$ref") && flat.get("$defs").is_none());
        assert_eq!(
            flat["properties"]["at"]["properties"]["next"],
            json!({}),
            "recursion ends in an empty schema"
        );
        let wide: Map<String, Value> = (0..20)
            .map(|n| (format!("p{n}"), json!({ "$ref": "#/$defs/T" })))
            .collect();
        let loops = json!({ "$defs": { "T": { "properties": wide } }, "$ref": "#/$defs/T", "description": "kept" });
        let flat = inline_references(&loops);
        assert!(flat.to_string().len() < 1_000 && flat["description"] == "kept");
    }

    #[test]
    fn gemini_choices_become_an_enum() {
        let schema = json!({ "oneOf": [{ "const": "a", "description": "A" }, { "const": "b" }], "description": "Which." });
        assert_eq!(
            to_gemini_schema(&schema),
            json!({ "type": "string", "enum": ["a", "b"], "description": "Which." })
        );
        let odd = json!({ "type": "integer", "enum": [1, 2], "format": "uint32" });
        assert_eq!(to_gemini_schema(&odd), json!({ "type": "integer" }));
    }

    #[test]
    fn gemini_keeps_only_supported_keywords() {
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": { "a": { "type": ["string", "null"], "default": "x" } } });
        assert_eq!(
            to_gemini_schema(&schema),
            json!({ "type": "object", "properties": { "a": { "nullable": true, "type": "string" } } })
        );
    }
}
