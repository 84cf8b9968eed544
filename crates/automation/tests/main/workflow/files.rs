//! Workflow files: good ones are read, and every error of a bad one is named.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lango_automation::workflow::{
    MAX_FILE_BYTES, MAX_STEPS, ParamError, StepAction, ValueTemplate, Workflow, WorkflowCatalog,
    WorkflowError, parse_workflow,
};
use lango_testkit::golden;
use serde_json::{Map, Value, json};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/main/workflow")
        .join(name)
}

fn workflow_files(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn catalog() -> WorkflowCatalog {
    let object = |keys: Value, required: Value| json!({ "type": "object", "properties": keys, "required": required });
    let shell = json!({
        "command": { "type": "string" },
        "stdin": { "type": "string" },
        "env": { "type": "object", "additionalProperties": { "type": "string" } },
    });
    let tools = [
        ("exec_shell", object(shell, json!(["command"]))),
        (
            "fs_read",
            object(json!({ "path": { "type": "string" } }), json!(["path"])),
        ),
        (
            "bg_submit",
            object(json!({ "prompt": { "type": "string" } }), json!(["prompt"])),
        ),
    ];
    WorkflowCatalog {
        agents: ["librarian", "navigator", "operator"]
            .map(str::to_owned)
            .into(),
        tools: tools.map(|(name, schema)| (name.to_owned(), schema)).into(),
    }
}

fn read(path: &Path) -> Result<Workflow, Vec<WorkflowError>> {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    parse_workflow(name, &text, Some(&catalog()))
}

/// B122
#[test]
fn every_error_of_a_bad_file_is_named_with_its_position() {
    for path in workflow_files("bad") {
        let errors = read(&path).unwrap_err();
        let mut text = String::new();
        for error in &errors {
            let _ = writeln!(text, "{error}");
            assert!(error.line > 0 && error.column > 0, "{error}");
        }
        assert!(!errors.is_empty(), "{}", path.display());
        golden::check(&path.with_extension("errors"), &text);
    }
}

#[test]
fn good_files_are_read() {
    for path in workflow_files("good") {
        let read = read(&path);
        assert!(read.is_ok(), "{}: {read:#?}", path.display());
    }
    let review = read(&folder("good/code_review.flow.yaml")).unwrap();
    assert_eq!(review.steps.len(), 3);
    assert_eq!(review.steps[1].retry.attempts, 3);
    assert!(review.steps[2].approval.is_some());
}

#[test]
fn errors_have_the_documented_json_shape() {
    let errors = parse_workflow("bad.flow.yaml", "name: x\nsteps: 7\n", None).unwrap_err();
    assert_eq!(
        serde_json::to_value(&errors).unwrap(),
        json!([{
            "file": "bad.flow.yaml", "line": 2, "column": 8,
            "message": "`steps` must be a list", "hint": "start every step with `- id: …`",
        }])
    );
}

#[test]
fn braces_that_are_no_reference_are_plain_text() {
    let workflow = read(&folder("good/plain_braces.flow.yaml")).unwrap();
    let StepAction::Tool { arguments, .. } = &workflow.steps[0].action else {
        panic!("a tool step");
    };
    let ValueTemplate::Object(arguments) = arguments else {
        panic!("an object");
    };
    assert_eq!(
        arguments[0].1,
        ValueTemplate::Literal(json!("docker ps --format '{{.ID}}' && echo '{{name}}'"))
    );
}

#[test]
fn large_files_and_many_steps_are_refused() {
    let large = format!("name: {}\n", "x".repeat(MAX_FILE_BYTES));
    let errors = parse_workflow("large", &large, None).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.contains("larger than 256 KiB"));

    let mut many = "name: many\nsteps:\n".to_owned();
    for number in 0..=MAX_STEPS {
        let _ = writeln!(many, "  - {{id: s{number}, prompt: Go.}}");
    }
    let errors = parse_workflow("many", &many, None).unwrap_err();
    assert!(
        errors[0].message.contains("at most 200 steps"),
        "{errors:?}"
    );

    let mut chain = "name: chain\nsteps:\n  - {id: s0, prompt: Go.}\n".to_owned();
    for number in 1..150 {
        let _ = writeln!(
            chain,
            "  - {{id: s{number}, prompt: Go., depends_on: [s{}]}}",
            number - 1
        );
    }
    let errors = parse_workflow("chain", &chain, None).unwrap_err();
    assert!(errors[0].message.contains("in a row"), "{errors:?}");
}

#[test]
fn a_file_with_very_many_errors_is_read_quickly() {
    let mut text = "name: x\nsteps:\n".to_owned();
    for number in 0..MAX_STEPS {
        let _ = writeln!(
            text,
            "  - {{id: s{number}, prompt: '{{{{a.b}}}}', x: 1, y: 2, z: 3}}"
        );
    }
    assert_eq!(parse_workflow("many", &text, None).unwrap_err().len(), 50);
}

fn params(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn parameters_have_defaults_and_types() {
    let text = "name: p\nparams: {branch: main, count: 3, must: ~, flag: {type: boolean}}\nsteps: [{id: a, prompt: Go.}]\n";
    let workflow = parse_workflow("p", text, None).unwrap();
    let bound = workflow.bind_params(&params(
        json!({ "must": [1], "count": "5", "flag": "true" }),
    ));
    assert_eq!(
        bound.unwrap(),
        params(json!({ "branch": "main", "count": 5, "must": [1], "flag": true }))
    );
    let error = |given: Value| workflow.bind_params(&params(given)).unwrap_err();
    assert_eq!(error(json!({})), ParamError::Missing("must".to_owned()));
    let unknown = error(json!({ "brnch": "x", "must": 1, "flag": true }));
    assert_eq!(
        unknown.to_string(),
        "workflow `p` has no parameter `brnch`; did you mean `branch`?"
    );
    let wrong = error(json!({ "must": 1, "count": "many", "flag": true }));
    assert_eq!(
        wrong.to_string(),
        "parameter `count` must be a number, not a text"
    );
}

/// B122: no value becomes part of a command, a script, a time, a permission or a target, however deep.
#[test]
fn values_are_no_part_of_what_is_executed() {
    for arguments in [
        "command: \"echo {{params.x}}\"",
        "when: \"every hour {{params.x}}\"",
        "deliver_to: [inbox, \"command:echo {{params.x}}\"]",
        "failure_deliver_to: [\"{{params.x}}\"]",
        "allow: [\"{{params.x}}\"]",
        "scripts: {run.sh: \"echo {{params.x}}\"}",
        "scripts: {deep: [{run.sh: \"{{params.x}}\"}]}",
        "body: \"{{params.x}}\"",
    ] {
        let file = format!(
            "name: f\nparams: {{x: 1}}\nsteps:\n  - id: a\n    tool: t\n    with: {{{arguments}}}\n"
        );
        let errors = lango_automation::workflow::parse_workflow("f", &file, None).unwrap_err();
        assert!(
            errors[0]
                .to_string()
                .contains("values never become part of"),
            "{arguments}: {errors:?}"
        );
    }
}
