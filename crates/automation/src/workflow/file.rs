//! Reads workflow files, and reports every error in them.

use jiff::Timestamp;
use lango_domain::automation::{Schedule, ScheduleKind};
use lango_domain::spanned::{SpannedKind, SpannedValue, parse_yaml};
use lango_text::suggest;
use serde_json::Value;

use super::check::{self, WorkflowCatalog};
use super::definition::{
    DEFAULT_CONCURRENCY, MAX_CONCURRENCY, MAX_FILE_BYTES, MAX_PARAMS, MAX_STEPS, Workflow,
    WorkflowParam,
};
use super::error::{ErrorList, FilePosition, WorkflowError};
use super::expression::ValueType;
use super::fields::FieldMap;
use super::reference::is_name;
use super::step_file::{StepDraft, read_step};
use crate::delivery::DeliveryTarget;
use crate::schedule::{ScheduleError, Timetable, parse_zone};

const KEYS: [&str; 8] = [
    "name",
    "description",
    "params",
    "schedule",
    "timezone",
    "concurrency",
    "deliver_to",
    "steps",
];
const PARAM_KEYS: [&str; 3] = ["type", "default", "description"];
/// The longest name of a workflow, a step or a parameter, in characters.
pub(super) const MAX_NAME_CHARS: usize = 64;

/// Reads a workflow. `file` is its name for errors. Without a catalog, names of agents and tools are not
/// checked, as for the stored definition of a run.
pub fn parse_workflow(
    file: &str,
    text: &str,
    catalog: Option<&WorkflowCatalog>,
) -> Result<Workflow, Vec<WorkflowError>> {
    let mut errors = ErrorList::new(file, text);
    let workflow = read_file(text, catalog, &mut errors);
    match workflow {
        Some(workflow) if errors.is_empty() => Ok(workflow),
        _ => Err(errors.into_errors()),
    }
}

fn read_file(
    text: &str,
    catalog: Option<&WorkflowCatalog>,
    errors: &mut ErrorList<'_>,
) -> Option<Workflow> {
    if text.len() > MAX_FILE_BYTES {
        let message = format!("the file is larger than {} KiB", MAX_FILE_BYTES / 1024);
        errors.push_with_hint(
            FilePosition::START,
            message,
            "read long texts from files in a step",
        );
        return None;
    }
    let root = match parse_yaml(text) {
        Ok(root) => root,
        Err(error) => {
            let at = FilePosition {
                line: error.line,
                column: error.column,
            };
            errors.push_with_hint(
                at,
                format!("this is not valid YAML: {}", error.message),
                "write plain YAML: even indentation, special characters in quotes, no anchors and no tags",
            );
            return None;
        }
    };
    let fields = FieldMap::read(&root, "a workflow", &KEYS, errors)?;
    let name = read_name(&fields, errors);
    let params = fields
        .get("params")
        .map(|entry| read_params(&entry.value, errors))
        .unwrap_or_default();
    let drafts = read_steps(&fields, errors);
    let concurrency = fields.integer("concurrency", 1..=MAX_CONCURRENCY as u64, errors);
    let mut workflow = Workflow {
        name: name.unwrap_or_default(),
        description: fields
            .text("description", errors)
            .unwrap_or_default()
            .to_owned(),
        params,
        schedule: read_schedule(&fields, errors),
        timezone: read_time_zone(&fields, errors),
        concurrency: concurrency.map_or(DEFAULT_CONCURRENCY, |number| number as usize),
        deliver_to: read_targets(&fields, errors),
        steps: Vec::new(),
    };
    check::check_steps(&workflow, &drafts, errors);
    if let Some(catalog) = catalog {
        check::check_names(catalog, &drafts, errors);
    }
    workflow.steps = drafts
        .into_iter()
        .map(StepDraft::into_step)
        .collect::<Option<Vec<_>>>()?;
    Some(workflow)
}

fn read_name(fields: &FieldMap<'_>, errors: &mut ErrorList<'_>) -> Option<String> {
    let name = fields.required_text("name", FilePosition::START, errors)?;
    if (name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control))
        && let Some(entry) = fields.get("name")
    {
        let message = format!("a name has one line and at most {MAX_NAME_CHARS} characters");
        errors.push(&entry.value, message);
    }
    Some(name.trim().to_owned())
}

fn read_params(value: &SpannedValue, errors: &mut ErrorList<'_>) -> Vec<WorkflowParam> {
    let SpannedKind::Map(entries) = &value.kind else {
        let hint = "write `params: {name: default}`";
        errors.push_with_hint(value, "`params` must have names and defaults", hint);
        return Vec::new();
    };
    if entries.len() > MAX_PARAMS {
        errors.push(
            value,
            format!("a workflow has at most {MAX_PARAMS} parameters"),
        );
    }
    let mut params = Vec::new();
    for entry in entries.iter().take(MAX_PARAMS) {
        if !is_name(&entry.key) || entry.key.chars().count() > MAX_NAME_CHARS {
            let message = format!("`{}` cannot be the name of a parameter", entry.key);
            let hint = "use letters, digits, `_` and `-`";
            errors.push_with_hint(entry, message, hint);
        }
        let declared = match &entry.value.kind {
            SpannedKind::Map(_) => read_declaration(&entry.value, errors),
            _ => {
                let default = entry.value.to_value();
                let kind = match ValueType::of(&default) {
                    ValueType::Null => ValueType::Any,
                    kind => kind,
                };
                let default = Some(default).filter(|default| !default.is_null());
                (kind, default, String::new())
            }
        };
        let (kind, default, description) = declared;
        params.push(WorkflowParam {
            name: entry.key.clone(),
            kind,
            default,
            description,
        });
    }
    params
}

/// Reads `{type: …, default: …, description: …}`.
fn read_declaration(
    value: &SpannedValue,
    errors: &mut ErrorList<'_>,
) -> (ValueType, Option<Value>, String) {
    let Some(fields) = FieldMap::read(value, "a parameter", &PARAM_KEYS, errors) else {
        return (ValueType::Any, None, String::new());
    };
    let default = fields.get("default").map(|entry| entry.value.to_value());
    let names = ValueType::DECLARABLE.map(|(name, _)| name);
    let declared = fields.text("type", errors).and_then(|name| {
        let found = ValueType::DECLARABLE
            .iter()
            .find(|(known, _)| *known == name);
        if found.is_none()
            && let Some(entry) = fields.get("type")
        {
            let near = suggest::did_you_mean(name, names);
            let hint = near.unwrap_or_else(|| format!("types are {}", names.join(", ")));
            errors.push_with_hint(&entry.value, format!("there is no type `{name}`"), hint);
        }
        found.map(|(_, kind)| *kind)
    });
    let kind = declared
        .or_else(|| default.as_ref().map(ValueType::of))
        .unwrap_or(ValueType::Any);
    if let (Some(found), Some(entry)) = (&default, fields.get("default"))
        && kind != ValueType::Any
        && kind != ValueType::of(found)
    {
        let message = format!("the default must be {kind}, not {}", ValueType::of(found));
        errors.push(&entry.value, message);
    }
    let description = fields.text("description", errors).unwrap_or_default();
    (kind, default, description.to_owned())
}

fn read_steps<'a>(fields: &FieldMap<'a>, errors: &mut ErrorList<'_>) -> Vec<StepDraft<'a>> {
    let Some(entry) = fields.get("steps") else {
        let hint = "add `steps:` with at least one step";
        errors.push_with_hint(FilePosition::START, "a workflow needs `steps`", hint);
        return Vec::new();
    };
    let SpannedKind::List(items) = &entry.value.kind else {
        let hint = "start every step with `- id: …`";
        errors.push_with_hint(&entry.value, "`steps` must be a list", hint);
        return Vec::new();
    };
    if items.is_empty() {
        errors.push(&entry.value, "`steps` is empty");
    }
    if items.len() > MAX_STEPS {
        let message = format!(
            "a workflow has at most {MAX_STEPS} steps, not {}",
            items.len()
        );
        let hint = "split it into several workflows";
        errors.push_with_hint(&entry.value, message, hint);
    }
    items
        .iter()
        .take(MAX_STEPS)
        .filter_map(|item| read_step(item, errors))
        .collect()
}

fn read_schedule(fields: &FieldMap<'_>, errors: &mut ErrorList<'_>) -> Option<String> {
    let text = fields.text("schedule", errors)?;
    let schedule = Schedule {
        kind: ScheduleKind::Cron,
        text: text.to_owned(),
        time_zone: "UTC".to_owned(),
        anchor: Timestamp::UNIX_EPOCH,
    };
    let error = match Timetable::read(&schedule) {
        Err(error) => Some(error),
        Ok(timetable) if timetable.next_after(Timestamp::UNIX_EPOCH).is_none() => {
            Some(ScheduleError::Impossible(text.to_owned()))
        }
        Ok(_) => None,
    };
    if let (Some(error), Some(entry)) = (error, fields.get("schedule")) {
        let hint = "write five cron fields, such as \"0 7 * * MON-FRI\"";
        errors.push_with_hint(&entry.value, error.to_string(), hint);
    }
    Some(text.to_owned())
}

fn read_time_zone(fields: &FieldMap<'_>, errors: &mut ErrorList<'_>) -> Option<String> {
    let name = fields.text("timezone", errors)?;
    if let (Err(error), Some(entry)) = (parse_zone(name), fields.get("timezone")) {
        let hint = match &error {
            ScheduleError::UnknownZone { suggestion, .. } if !suggestion.is_empty() => {
                suggestion.trim_start_matches("; ").to_owned()
            }
            _ => "write a name such as `Europe/Berlin`".to_owned(),
        };
        errors.push_with_hint(
            &entry.value,
            format!("there is no time zone `{name}`"),
            hint,
        );
    }
    Some(name.to_owned())
}

/// Reads delivery targets.
pub(super) fn read_targets(fields: &FieldMap<'_>, errors: &mut ErrorList<'_>) -> Vec<String> {
    let mut targets = Vec::new();
    for (text, value) in fields.texts("deliver_to", errors) {
        match text.parse::<DeliveryTarget>() {
            Ok(_) => targets.push(text.to_owned()),
            Err(error) => {
                let message = format!("`{text}` is not a delivery target");
                errors.push_with_hint(value, message, error.reason);
            }
        }
    }
    targets
}
