//! The expression language of `if`.

use lango_automation::workflow::{
    ReferenceValues, StepField, TypeContext, ValueType, check_types, evaluate, parse_expression,
};
use proptest::prelude::*;
use serde_json::{Value, json};

struct Values;

impl ReferenceValues for Values {
    fn param(&self, name: &str) -> Option<Value> {
        match name {
            "branch" => Some(json!("main")),
            "count" => Some(json!(3)),
            "dry" => Some(json!(false)),
            "tags" => Some(json!(["a", "b"])),
            _ => None,
        }
    }

    fn step(&self, id: &str, field: StepField) -> Option<Value> {
        match (id, field) {
            ("build", StepField::Result) => {
                Some(json!(r#"{"files": 7, "ok": true, "list": [1, 2]}"#))
            }
            ("build", StepField::State) => Some(json!("done")),
            ("count-lines", StepField::Result) => Some(json!("42\n")),
            _ => None,
        }
    }
}

impl TypeContext for Values {
    fn param_type(&self, name: &str) -> ValueType {
        self.param(name)
            .as_ref()
            .map_or(ValueType::Any, ValueType::of)
    }

    fn state_names(&self) -> &[&str] {
        &["done", "failed", "skipped"]
    }
}

fn check(text: &str) -> Result<bool, String> {
    let parsed = parse_expression(text).map_err(|error| error.message)?;
    if let Some(error) = check_types(&parsed, &Values).into_iter().next() {
        return Err(error.message);
    }
    evaluate(&parsed, &Values).map_err(|error| error.to_string())
}

#[test]
fn conditions_are_decided() {
    for (text, expected) in [
        ("true", true),
        ("not true", false),
        ("!params.dry", true),
        ("params.branch == 'main'", true),
        ("params.branch != \"main\"", false),
        ("params.count >= 3 and params.count < 4", true),
        ("params.count == 3.0", true),
        ("params.count > -1", true),
        ("params.dry || params.count == 3", true),
        ("params.dry && params.count == 3", false),
        // `and` binds stronger than `or`.
        ("true or false and false", true),
        ("(true or false) and false", false),
        ("not params.dry and params.count == 3", true),
        ("build.state == 'done'", true),
        ("build.state in ['done', 'skipped']", true),
        ("build.state not in ['failed']", true),
        ("build.result.files > 5", true),
        ("build.result.ok == true", true),
        ("build.result.list contains 2", true),
        ("build.result.nothing == null", true),
        ("build.result contains 'files'", true),
        ("'ai' in params.branch", true),
        ("params.tags contains 'a'", true),
        ("'c' in params.tags", false),
        // The results of tools are texts.
        ("count-lines.result == 42", true),
        ("count-lines.result > 9", true),
        ("missing.result == null", true),
        ("missing.result contains 'x'", false),
        ("'it\\'s' == \"it's\"", true),
        ("'ä' < 'ö'", true),
    ] {
        assert_eq!(check(text), Ok(expected), "{text}");
    }
}

#[test]
fn errors_are_found_before_a_run() {
    for (text, message) in [
        ("", "the expression is empty"),
        (
            "params.branch",
            "the condition is a text, not true or false",
        ),
        (
            "build.result",
            "the condition is any value, not true or false",
        ),
        (
            "params.count == 'x'",
            "`==` cannot compare a number with a text",
        ),
        ("params.tags < 3", "`<` cannot compare a list with a number"),
        (
            "params.dry < true",
            "`<` cannot compare a boolean with a boolean",
        ),
        (
            "not params.count",
            "`not` needs true or false, not a number",
        ),
        (
            "build.state == 'finished'",
            "`finished` is not a state that another step can read",
        ),
        (
            "params.count contains 3",
            "`contains` cannot compare a number with a number",
        ),
        ("build.output == 1", "a step has no `output`"),
        ("build == 1", "`build` names no value"),
        ("true false", "`false` is not expected here"),
        ("(true", "`)` is missing"),
        ("[1, 2", "`]` is missing"),
        ("1 ==", "the expression ends too early"),
        ("1.2.3 == 1", "`1.2.3` is not a number"),
        ("'a' == 'b' == true", "comparisons cannot be chained"),
        (
            "'\\x' == ''",
            "after `\\` only `n`, `t`, `\\` and quotes are possible",
        ),
        ("a.result =~ 'x'", "`=` is no operator"),
        ("a.result @ 'x'", "`@` has no meaning here"),
    ] {
        assert_eq!(check(text), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn a_type_that_is_known_only_in_the_run_is_checked_then() {
    let error = check("build.result.list > 3").unwrap_err();
    assert_eq!(
        error,
        "the condition cannot be decided: `>` cannot compare a list with a number"
    );
    assert!(check("build.result.files contains 'x'").is_err());
}

#[test]
fn long_and_deep_expressions_are_refused() {
    assert!(
        check(&"true and ".repeat(200))
            .unwrap_err()
            .contains("more than 1000 characters")
    );
    for open in ["(", "not ", "["] {
        let error = check(&format!("{}true", open.repeat(100))).unwrap_err();
        assert!(error.contains("levels deep"), "{error}");
    }
    assert_eq!(check(&format!("{}true", "true and ".repeat(100))), Ok(true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_read_without_panic(text in "\\PC{0,60}") {
        let _ = check(&text);
    }

    #[test]
    fn any_order_of_tokens_is_read_without_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "params.count", "build.result", "build.state", "'x'", "\"y\"", "1", "-2.5", "true", "null",
                "and", "or", "not", "in", "contains", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "!",
                "(", ")", "[", "]", ",", "é", "{{", ".",
            ]),
            0..30,
        ),
        separator in prop::sample::select(vec!["", " "]),
    ) {
        let text = words.join(separator);
        if let Err(error) = parse_expression(&text) {
            prop_assert!(error.offset <= text.len() && text.is_char_boundary(error.offset));
        }
        let _ = check(&text);
    }

    #[test]
    fn any_file_is_read_without_panic(text in "(name: x\n)?(steps:\n)?([a-z{}\\[\\]:\"'|>& #.-]|\n|  ){0,80}") {
        let _ = lango_automation::workflow::parse_workflow("x", &text, None);
    }
}
