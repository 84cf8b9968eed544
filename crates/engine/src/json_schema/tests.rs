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

#[test]
fn unchecked_keywords_refuse_nothing() {
    for (schema, value) in [
        (json!({ "not": { "pattern": "^/" } }), json!("rel")),
        (
            json!({ "oneOf": [{ "pattern": "^a" }, { "pattern": "^b" }] }),
            json!("a1"),
        ),
        (
            json!({ "not": { "anyOf": [{ "multipleOf": 2 }, { "type": "null" }] } }),
            json!(3),
        ),
        (json!({ "not": { "$ref": "other.json" } }), json!(3)),
        (
            json!({ "not": { "items": [{ "type": "null" }] } }),
            json!([3]),
        ),
        (
            json!({ "anyOf": {}, "oneOf": [], "type": [], "enum": 7 }),
            json!(3),
        ),
        (json!({ "type": [7] }), json!(3)),
        (json!({ "type": "string", "nullable": true }), json!(null)),
        (json!({ "minLength": 3.0 }), json!("abc")),
        (
            json!({ "uniqueItems": true }),
            json!([1_100_000_000_000_000_001_u64, 1_100_000_000_000_000_002_u64]),
        ),
        (
            json!({ "exclusiveMaximum": 9_223_372_036_854_775_808_u64 }),
            json!(9_223_372_036_854_775_807_u64),
        ),
    ] {
        assert_eq!(messages(&schema, &value), [""; 0], "{schema} {value}");
    }
}

#[test]
fn work_and_messages_are_bounded() {
    let started = std::time::Instant::now();
    let rows: Vec<Vec<u32>> = (0..1_000)
        .map(|row| (0..200).chain([row]).collect())
        .collect();
    let unique: Vec<Value> = vec![json!({ "uniqueItems": true }); 10];
    assert_eq!(messages(&json!({ "allOf": unique }), &json!(rows)), [""; 0]);
    let choices: Vec<Value> = vec![json!({ "type": "null" }); 2_000];
    let long = json!("x".repeat(1_000_000));
    let found = messages(&json!({ "anyOf": choices }), &long);
    assert!(
        found[0].len() < 400 && found[0].contains("xx…"),
        "{found:?}"
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
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

/// Schemas with a keyword that is not checked here.
fn unchecked_schema() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "pattern": "^a" })),
        Just(json!({ "multipleOf": 2 })),
        Just(json!({ "contains": { "type": "null" } })),
        Just(json!({ "propertyNames": { "maxLength": 0 } })),
        Just(json!({ "patternProperties": { "a": false }, "additionalProperties": false })),
        Just(json!({ "if": { "type": "string" }, "then": false })),
    ]
}

fn schema(unchecked: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
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
        unchecked,
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

fn is_valid(schema: &Value, value: &Value) -> bool {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler
        .add_resource("schema.json", schema.clone())
        .unwrap();
    let full = compiler.compile("schema.json", &mut schemas).unwrap();
    schemas.validate(value, full).is_ok()
}

fn with_definitions(schema: Value) -> Value {
    json!({ "allOf": [schema], "$defs": { "x": { "type": ["string", "integer"] } } })
}

proptest! {
    /// A full implementation accepts and refuses the same values.
    #[test]
    fn agrees_with_a_full_implementation(
        schema in schema(Just(json!(true)).boxed()),
        value in value(),
    ) {
        let schema = with_definitions(schema);
        let is_accepted = validate(&schema, &value).is_empty();
        prop_assert_eq!(is_accepted, is_valid(&schema, &value), "{} {}", schema, value);
    }

    #[test]
    fn accepts_what_a_full_implementation_accepts(
        schema in schema(unchecked_schema().boxed()),
        value in value(),
    ) {
        let schema = with_definitions(schema);
        let is_accepted = validate(&schema, &value).is_empty();
        prop_assert!(is_accepted || !is_valid(&schema, &value), "{} {}", schema, value);
    }
}
