//! Schemas for providers that do not follow references.

use serde_json::{Map, Value};

/// The schema with every reference replaced by what it refers to, and without definitions. Where a schema refers to
/// itself, what is below is left open.
pub(crate) fn inline_references(schema: &Value) -> Value {
    let mut whole = inline(schema, schema, &mut Vec::new());
    if let Value::Object(map) = &mut whole {
        map.remove("$defs");
        map.remove("definitions");
        map.remove("$schema");
    }
    whole
}

fn inline<'a>(root: &'a Value, here: &'a Value, above: &mut Vec<&'a str>) -> Value {
    match here {
        Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
            Some(target) if above.contains(&target) => Value::Object(Map::new()),
            Some(target) => {
                above.push(target);
                let found = target
                    .strip_prefix('#')
                    .and_then(|pointer| root.pointer(pointer));
                let mut inlined = found.map_or_else(
                    || Value::Object(Map::new()),
                    |found| inline(root, found, above),
                );
                above.pop();
                // What stands beside a reference, such as a description, belongs to it.
                if let Value::Object(inlined) = &mut inlined {
                    let beside = map.iter().filter(|(key, _)| *key != "$ref");
                    inlined.extend(beside.map(|(key, value)| (key.clone(), value.clone())));
                }
                inlined
            }
            None => map
                .iter()
                .map(|(key, value)| (key.clone(), inline(root, value, above)))
                .collect(),
        },
        Value::Array(items) => items.iter().map(|item| inline(root, item, above)).collect(),
        other => other.clone(),
    }
}

/// Only the words of JSON Schema that Gemini knows.
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
        let mut kept = Map::new();
        for (key, value) in map
            .iter()
            .filter(|(key, _)| SUPPORTED_KEYWORDS.contains(&key.as_str()))
        {
            let value = match (key.as_str(), value) {
                ("properties", Value::Object(named)) => named
                    .iter()
                    .map(|(name, value)| (name.clone(), clean(value)))
                    .collect(),
                ("items", value) => clean(value),
                ("anyOf", Value::Array(options)) => options.iter().map(clean).collect(),
                ("type", Value::Array(kinds)) => {
                    // `["string", "null"]` is said by `nullable` there.
                    kept.insert(
                        "nullable".to_owned(),
                        Value::Bool(kinds.iter().any(|kind| kind == "null")),
                    );
                    kinds
                        .iter()
                        .find(|kind| *kind != "null")
                        .cloned()
                        .unwrap_or_default()
                }
                // Only texts can be enumerated there, and only few formats are known.
                ("enum", Value::Array(values)) if !values.iter().all(Value::is_string) => continue,
                ("format", value) if value != "enum" && value != "date-time" => continue,
                (_, value) => value.clone(),
            };
            kept.insert(key.clone(), value);
        }
        Value::Object(kept)
    }
    clean(&inline_references(schema))
}

/// Documented choices (`oneOf` with `const`) as the enumeration that Gemini knows.
fn enum_from_choices(map: &Map<String, Value>) -> Option<Value> {
    let options = map.get("oneOf").or_else(|| map.get("anyOf"))?.as_array()?;
    let values: Vec<&str> = options
        .iter()
        .map(|option| option.get("const")?.as_str())
        .collect::<Option<_>>()?;
    let mut kept = Map::from_iter([
        ("type".to_owned(), Value::from("string")),
        ("enum".to_owned(), Value::from(values)),
    ]);
    kept.extend(
        map.get("description")
            .map(|words| ("description".to_owned(), words.clone())),
    );
    Some(Value::Object(kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_followed_and_loops_end() {
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
            "where it comes back to itself it is open"
        );
        let wide: Map<String, Value> = (0..20)
            .map(|n| (format!("p{n}"), json!({ "$ref": "#/$defs/T" })))
            .collect();
        let loops = json!({ "$defs": { "T": { "properties": wide } }, "$ref": "#/$defs/T", "description": "kept" });
        let flat = inline_references(&loops);
        assert!(flat.to_string().len() < 1_000 && flat["description"] == "kept");
    }

    #[test]
    fn gemini_gets_choices_it_understands() {
        let schema = json!({ "oneOf": [{ "const": "a", "description": "A" }, { "const": "b" }], "description": "Which." });
        assert_eq!(
            to_gemini_schema(&schema),
            json!({ "type": "string", "enum": ["a", "b"], "description": "Which." })
        );
        let odd = json!({ "type": "integer", "enum": [1, 2], "format": "uint32" });
        assert_eq!(to_gemini_schema(&odd), json!({ "type": "integer" }));
    }

    #[test]
    fn gemini_gets_only_words_it_knows() {
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": { "a": { "type": ["string", "null"], "default": "x" } } });
        assert_eq!(
            to_gemini_schema(&schema),
            json!({ "type": "object", "properties": { "a": { "nullable": true, "type": "string" } } })
        );
    }
}
