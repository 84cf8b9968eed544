use proptest::prelude::*;
use serde_json::json;

use super::*;

fn messages(schema: &Value, value: &Value) -> Vec<String> {
    let violations = validate(schema, value).into_iter();
    violations
        .map(|violation| format!("{}: {}", violation.path, violation.message))
        .collect()
}

#[test]
fn names_the_value_and_the_reason() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "minLength": 1 },
            "limit": { "type": ["integer", "null"], "minimum": 1 },
            "tags": { "type": "array", "items": { "$ref": "#/$defs/tag" } },
        },
        "required": ["path"],
        "additionalProperties": false,
        "$defs": { "tag": { "enum": ["a", "b"] } },
    });
    assert_eq!(
        messages(&schema, &json!({ "path": "x", "limit": null })),
        [""; 0]
    );
    assert_eq!(
        messages(
            &schema,
            &json!({ "file": 1, "limit": 0, "tags": ["a", "c"] })
        ),
        [
            ": Additional properties are not allowed ('file' was unexpected)",
            "/limit: 0 is less than the minimum of 1",
            "/tags/1: \"c\" is not one of \"a\", \"b\"",
        ]
    );
}

#[test]
fn a_hostile_schema_ends() {
    let both = json!([{ "$ref": "#" }, { "$ref": "#" }]);
    for keyword in ["anyOf", "allOf", "oneOf"] {
        let schema = json!({ keyword: both });
        validate(&schema, &json!({ "a": 1 }));
    }
    validate(&json!({ "$ref": "#" }), &json!(1));
    validate(&json!({ "items": { "$ref": "#" } }), &json!([[[[1]]]]));
    validate(
        &json!({ "type": 7, "required": "x", "properties": [], "enum": {} }),
        &json!({}),
    );
    // A part that was not checked to its end gives no violation.
    let endless = json!({ "$ref": "#/$defs/x" });
    let schema = json!({ "not": endless, "$defs": { "x": endless } });
    assert_eq!(messages(&schema, &json!(1)), [""; 0]);
}

#[test]
fn the_first_violations_of_many_are_enough() {
    let numbers: Vec<u32> = (0..100_000).collect();
    let found = messages(&json!({ "items": { "type": "string" } }), &json!(numbers));
    assert_eq!(
        found,
        [0, 1, 2].map(|n| format!("/{n}: {n} is not of type \"string\""))
    );
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..4_i32).prop_map(Value::from),
        Just(json!(1.5)),
        Just(json!(2.0)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let types = [
        "object", "array", "string", "boolean", "null", "number", "integer",
    ];
    let kind = prop::sample::select(types.to_vec());
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        kind.prop_map(|name| json!({ "type": name })),
        prop::sample::subsequence(types.to_vec(), 2).prop_map(|names| json!({ "type": names })),
        value().prop_map(|value| json!({ "const": value })),
        prop::collection::vec(value(), 1..3).prop_map(|all| json!({ "enum": all })),
        (-2..3_i32).prop_map(|n| json!({ "minimum": n, "exclusiveMaximum": n + 2 })),
        (-2..3_i32).prop_map(|n| json!({ "maximum": n, "exclusiveMinimum": n - 2 })),
        (0..3_u32).prop_map(|n| json!({ "minLength": n, "maxItems": n, "minProperties": n })),
        (0..3_u32).prop_map(|n| json!({ "maxLength": n, "minItems": n, "maxProperties": n })),
        Just(json!({ "uniqueItems": true, "required": ["a"] })),
        Just(json!({ "$ref": "#/$defs/x" })),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            many.clone().prop_map(|all| json!({ "anyOf": all })),
            many.clone().prop_map(|all| json!({ "oneOf": all })),
            many.clone().prop_map(|all| json!({ "allOf": all })),
            inner.clone().prop_map(|one| json!({ "not": one })),
            (many, inner.clone())
                .prop_map(|(all, rest)| json!({ "prefixItems": all, "items": rest })),
            (inner.clone(), inner).prop_map(
                |(a, rest)| json!({ "properties": { "a": a }, "additionalProperties": rest })
            ),
        ]
    })
}

proptest! {
    /// A full implementation accepts and refuses the same values.
    #[test]
    fn agrees_with_a_full_implementation(schema in schema(), value in value()) {
        let whole = json!({ "allOf": [schema], "$defs": { "x": { "type": ["string", "integer"] } } });
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("schema.json", whole.clone()).unwrap();
        let full = compiler.compile("schema.json", &mut schemas).unwrap();
        let is_valid = schemas.validate(&value, full).is_ok();
        prop_assert_eq!(validate(&whole, &value).is_empty(), is_valid, "{} {}", whole, value);
    }
}
