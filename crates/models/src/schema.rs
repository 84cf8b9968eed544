//! Schemas for providers that do not follow references.

use serde_json::{Map, Value};

/// Deeper than any real schema: where a schema refers to itself, what is below is left open.
const MAX_DEPTH: usize = 24;

/// The schema with every reference replaced by what it refers to, and without definitions.
pub(crate) fn inlined(schema: &Value) -> Value {
    let mut whole = inline(schema, schema, 0);
    if let Value::Object(map) = &mut whole {
        map.remove("$defs");
        map.remove("definitions");
        map.remove("$schema");
    }
    whole
}

fn inline(root: &Value, here: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Object(Map::new());
    }
    match here {
        Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
            Some(target) => {
                let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
                found.map_or_else(|| Value::Object(Map::new()), |found| inline(root, found, depth + 1))
            }
            None => map.iter().map(|(key, value)| (key.clone(), inline(root, value, depth + 1))).collect(),
        },
        Value::Array(items) => items.iter().map(|item| inline(root, item, depth + 1)).collect(),
        other => other.clone(),
    }
}

/// Only the words of JSON Schema that Gemini knows.
pub(crate) fn for_gemini(schema: &Value) -> Value {
    const KNOWN: [&str; 17] = [
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
        let Value::Object(map) = schema else { return schema.clone() };
        let mut kept = Map::new();
        for (key, value) in map.iter().filter(|(key, _)| KNOWN.contains(&key.as_str())) {
            let value = match (key.as_str(), value) {
                ("properties", Value::Object(named)) => {
                    named.iter().map(|(name, value)| (name.clone(), clean(value))).collect()
                }
                ("items", value) => clean(value),
                ("anyOf", Value::Array(options)) => options.iter().map(clean).collect(),
                ("type", Value::Array(kinds)) => {
                    // `["string", "null"]` is said by `nullable` there.
                    kept.insert("nullable".to_owned(), Value::Bool(kinds.iter().any(|kind| kind == "null")));
                    kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default()
                }
                (_, value) => value.clone(),
            };
            kept.insert(key.clone(), value);
        }
        Value::Object(kept)
    }
    clean(&inlined(schema))
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
        let flat = inlined(&schema);
        assert!(!flat.to_string().contains("$ref") && flat.get("$defs").is_none());
        assert_eq!(flat["properties"]["at"]["properties"]["next"]["type"], "object");
    }

    #[test]
    fn gemini_gets_only_words_it_knows() {
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": { "a": { "type": ["string", "null"], "default": "x" } } });
        assert_eq!(
            for_gemini(&schema),
            json!({ "type": "object", "properties": { "a": { "nullable": true, "type": "string" } } })
        );
    }
}
