//! Reads the steps of a workflow file, with the positions that later checks need.

use lango_domain::spanned::{SpannedKind, SpannedValue};
use lango_text::suggest;
use serde_json::Value;

use super::definition::{
    ApprovalWait, MAX_ATTEMPTS, OnFailure, RetryPolicy, StepAction, WorkflowStep,
};
use super::error::{ErrorList, FilePosition};
use super::expression::{Expression, ExpressionKind, RESERVED_WORDS, parse_expression};
use super::fields::FieldMap;
use super::file::{MAX_NAME_CHARS, read_targets};
use super::reference::{Reference, is_name};
use super::template_file::{plain_text, read_arguments, read_input};

const STEP_KEYS: [&str; 13] = [
    "id",
    "agent",
    "prompt",
    "tool",
    "with",
    "input",
    "depends_on",
    "if",
    "retry",
    "timeout",
    "approval",
    "on_failure",
    "deliver_to",
];
const RETRY_KEYS: [&str; 3] = ["attempts", "backoff", "factor"];

/// A step as it was read, with positions.
pub(super) struct StepDraft<'a> {
    pub id: String,
    pub id_at: FilePosition,
    pub action: Option<StepAction>,
    /// The position of the name of the agent or tool.
    pub action_at: FilePosition,
    pub arguments: Option<&'a SpannedValue>,
    pub depends_on: Vec<(String, FilePosition)>,
    /// Every reference of the action and the condition.
    pub references: Vec<(Reference, FilePosition)>,
    /// The condition, with the text and the value that it was read from.
    pub condition: Option<(Expression, String, &'a SpannedValue)>,
    pub rest: StepOptions,
}

/// The parts of a step that no later check needs.
#[derive(Default)]
pub(super) struct StepOptions {
    retry: RetryPolicy,
    timeout: Option<std::time::Duration>,
    approval: Option<ApprovalWait>,
    on_failure: OnFailure,
    deliver_to: Vec<String>,
}

impl StepDraft<'_> {
    pub fn into_step(self) -> Option<WorkflowStep> {
        Some(WorkflowStep {
            id: self.id,
            action: self.action?,
            depends_on: self.depends_on.into_iter().map(|(id, _)| id).collect(),
            condition: self.condition.map(|(expression, ..)| expression),
            retry: self.rest.retry,
            timeout: self.rest.timeout,
            approval: self.rest.approval,
            on_failure: self.rest.on_failure,
            deliver_to: self.rest.deliver_to,
        })
    }
}

pub(super) fn read_step<'a>(
    value: &'a SpannedValue,
    errors: &mut ErrorList<'_>,
) -> Option<StepDraft<'a>> {
    let fields = FieldMap::read(value, "a step", &STEP_KEYS, errors)?;
    let start = FilePosition::from(value);
    let id = read_id(&fields, start, errors).unwrap_or_default();
    let mut references = Vec::new();
    let action = read_action(&fields, start, &mut references, errors);
    let condition = read_condition(&fields, &mut references, errors);
    let at = |key: &str| {
        fields
            .get(key)
            .map(|entry| FilePosition::from(&entry.value))
    };
    let depends_on = fields.texts("depends_on", errors);
    Some(StepDraft {
        id,
        id_at: at("id").unwrap_or(start),
        action,
        action_at: at("tool").or(at("agent")).unwrap_or(start),
        arguments: fields.get("with").map(|entry| &entry.value),
        depends_on: depends_on
            .into_iter()
            .map(|(id, value)| (id.to_owned(), FilePosition::from(value)))
            .collect(),
        references,
        condition,
        rest: StepOptions {
            retry: read_retry(&fields, errors),
            timeout: fields.duration("timeout", errors),
            approval: read_approval(&fields, errors),
            on_failure: read_on_failure(&fields, errors),
            deliver_to: read_targets(&fields, errors),
        },
    })
}

fn read_id(
    fields: &FieldMap<'_>,
    start: FilePosition,
    errors: &mut ErrorList<'_>,
) -> Option<String> {
    let id = fields.required_text("id", start, errors)?;
    let entry = fields.get("id")?;
    let starts_well = id.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !starts_well || !is_name(id) || id.chars().count() > MAX_NAME_CHARS {
        let message = format!("`{id}` cannot be the id of a step");
        let hint = "start with a letter, then use letters, digits, `_` and `-`";
        errors.push_with_hint(&entry.value, message, hint);
    } else if RESERVED_WORDS.contains(&id) {
        let message = format!("`{id}` has a meaning in expressions");
        errors.push_with_hint(&entry.value, message, format!("write `{id}-step`"));
    }
    Some(id.to_owned())
}

fn read_action(
    fields: &FieldMap<'_>,
    start: FilePosition,
    references: &mut Vec<(Reference, FilePosition)>,
    errors: &mut ErrorList<'_>,
) -> Option<StepAction> {
    let belongs_to = |key: &str, other: &str, errors: &mut ErrorList<'_>| {
        if let Some(entry) = fields.get(key) {
            let message = format!("`{key}` does not belong to a step with `{other}`");
            let hint = "a step has `agent` and `prompt`, or `tool` and `with`";
            errors.push_with_hint(entry, message, hint);
        }
    };
    if fields.get("tool").is_some() {
        for key in ["agent", "prompt", "input"] {
            belongs_to(key, "tool", errors);
        }
        let tool = fields.required_text("tool", start, errors);
        let arguments = read_arguments(fields, references, errors);
        return Some(StepAction::Tool {
            tool: tool?.to_owned(),
            arguments: arguments?,
        });
    }
    belongs_to("with", "prompt", errors);
    if fields.get("prompt").is_none() && fields.get("agent").is_none() {
        let hint = "add `agent` and `prompt`, or `tool` and `with`";
        errors.push_with_hint(start, "the step does nothing", hint);
        return None;
    }
    let prompt = fields.required_text("prompt", start, errors);
    let agent = fields.text("agent", errors).map(str::to_owned);
    let input = read_input(fields, references, errors);
    let prompt = fields
        .get("prompt")
        .zip(prompt)
        .and_then(|(entry, text)| plain_text(text, &entry.value, "a prompt", errors));
    // A prompt with errors does not keep the name of the agent from being checked.
    Some(StepAction::Agent {
        agent,
        prompt: prompt.unwrap_or_default(),
        input,
    })
}

fn read_condition<'a>(
    fields: &FieldMap<'a>,
    references: &mut Vec<(Reference, FilePosition)>,
    errors: &mut ErrorList<'_>,
) -> Option<(Expression, String, &'a SpannedValue)> {
    let value = &fields.get("if")?.value;
    if let SpannedKind::Scalar(flag @ Value::Bool(_)) = &value.kind {
        let literal = Expression {
            offset: 0,
            kind: ExpressionKind::Literal(flag.clone()),
        };
        return Some((literal, flag.to_string(), value));
    }
    let text = fields.text("if", errors)?;
    match parse_expression(text) {
        Ok(expression) => {
            expression.for_each_reference(&mut |reference, offset| {
                let at = errors.position_in(value, text, offset);
                references.push((reference.clone(), at));
            });
            Some((expression, text.to_owned(), value))
        }
        Err(error) => {
            let at = errors.position_in(value, text, error.offset);
            let message = format!("`if`: {}", error.message);
            match error.hint {
                Some(hint) => errors.push_with_hint(at, message, hint),
                None => errors.push(at, message),
            }
            None
        }
    }
}

fn read_retry(fields: &FieldMap<'_>, errors: &mut ErrorList<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    let Some(entry) = fields.get("retry") else {
        return default;
    };
    if let SpannedKind::Scalar(Value::Number(number)) = &entry.value.kind {
        let hint = format!("write `retry: {{attempts: {number}}}`");
        errors.push_with_hint(&entry.value, "`retry` must have keys and values", hint);
        return default;
    }
    let Some(fields) = FieldMap::read(&entry.value, "`retry`", &RETRY_KEYS, errors) else {
        return default;
    };
    let attempts = fields.integer("attempts", 1..=u64::from(MAX_ATTEMPTS), errors);
    RetryPolicy {
        attempts: attempts
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(3),
        backoff: fields
            .duration("backoff", errors)
            .unwrap_or(default.backoff),
        factor: fields
            .number("factor", 1.0..=10.0, errors)
            .unwrap_or(default.factor),
    }
}

fn read_approval(fields: &FieldMap<'_>, errors: &mut ErrorList<'_>) -> Option<ApprovalWait> {
    let entry = fields.get("approval")?;
    if let SpannedKind::Map(_) = &entry.value.kind {
        let fields = FieldMap::read(&entry.value, "`approval`", &["deadline"], errors)?;
        let deadline = fields.duration("deadline", errors);
        return Some(ApprovalWait { deadline });
    }
    let needed = fields.boolean("approval", errors)?;
    needed.then(ApprovalWait::default)
}

fn read_on_failure(fields: &FieldMap<'_>, errors: &mut ErrorList<'_>) -> OnFailure {
    match fields.text("on_failure", errors) {
        None | Some("stop") => OnFailure::Stop,
        Some("continue") => OnFailure::Continue,
        Some(other) => {
            if let Some(entry) = fields.get("on_failure") {
                let near = suggest::did_you_mean(other, ["stop", "continue"]);
                let hint = near.unwrap_or_else(|| "write `stop` or `continue`".to_owned());
                let message = format!("`on_failure` cannot be `{other}`");
                errors.push_with_hint(&entry.value, message, hint);
            }
            OnFailure::Stop
        }
    }
}
