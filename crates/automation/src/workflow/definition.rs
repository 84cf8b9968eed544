//! A workflow as its file defines it.

use std::time::Duration;

use lango_domain::automation::JobAction;
use serde_json::{Map, Value};

use super::expression::{Expression, TypeContext, ValueType};
use super::reference::{Reference, TextPart, ValueTemplate};

/// The largest file, in bytes.
pub const MAX_FILE_BYTES: usize = 256 * 1024;
/// Most steps of a workflow.
pub const MAX_STEPS: usize = 200;
/// The longest chain of steps that depend on each other.
pub const MAX_CHAIN: usize = 100;
/// Most parameters of a workflow.
pub const MAX_PARAMS: usize = 100;
/// Most items of `input`.
pub const MAX_INPUTS: usize = 32;
/// Most steps that run at the same time.
pub const MAX_CONCURRENCY: usize = 16;
pub const DEFAULT_CONCURRENCY: usize = 4;
/// Most attempts of a step.
pub const MAX_ATTEMPTS: u32 = 20;
/// The longest wait between two attempts.
pub const MAX_BACKOFF: Duration = Duration::from_secs(24 * 60 * 60);

/// The states in which a step can be when another step reads it.
pub const READABLE_STATES: [&str; 3] = ["done", "failed", "skipped"];

/// A workflow: parameters, and steps in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    pub name: String,
    pub description: String,
    pub params: Vec<WorkflowParam>,
    pub schedule: Option<String>,
    pub timezone: Option<String>,
    pub concurrency: usize,
    pub deliver_to: Vec<String>,
    pub steps: Vec<WorkflowStep>,
}

/// A parameter of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowParam {
    pub name: String,
    pub kind: ValueType,
    /// A parameter without a default must be given.
    pub default: Option<Value>,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowStep {
    pub id: String,
    pub action: StepAction,
    pub depends_on: Vec<String>,
    pub condition: Option<Expression>,
    pub retry: RetryPolicy,
    pub timeout: Option<Duration>,
    pub approval: Option<ApprovalWait>,
    pub on_failure: OnFailure,
    pub deliver_to: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepAction {
    /// A request to an agent, or to the team if no agent is named.
    Agent {
        agent: Option<String>,
        prompt: String,
        /// Data that the agent reads next to the prompt, fenced.
        input: Vec<ValueTemplate>,
    },
    /// A tool call without a model.
    Tool {
        tool: String,
        arguments: ValueTemplate,
    },
}

/// The number of attempts of a step, and the wait between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    pub attempts: u32,
    pub backoff: Duration,
    pub factor: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 1,
            backoff: Duration::from_secs(10),
            factor: 2.0,
        }
    }
}

impl RetryPolicy {
    /// Returns the wait after a failed attempt (counted from 1), or `None` if it was the last one.
    pub fn wait_after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let power = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.backoff.as_secs_f64() * self.factor.powi(power);
        let longest = MAX_BACKOFF.as_secs_f64();
        Some(Duration::from_secs_f64(seconds.clamp(0.0, longest)))
    }
}

/// A step that starts only after someone approved it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApprovalWait {
    /// The time that it waits; the default of the settings if the file does not say.
    pub deadline: Option<Duration>,
}

/// The effect of a failed step on the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// No further step starts, and the run fails.
    #[default]
    Stop,
    /// Steps that depend on it run without its result.
    Continue,
}

impl Workflow {
    pub fn step(&self, id: &str) -> Option<&WorkflowStep> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// Returns the parameters of a run: the given ones and the defaults.
    pub fn bind_params(
        &self,
        given: &Map<String, Value>,
    ) -> Result<Map<String, Value>, ParamError> {
        if let Some(unknown) = given.keys().find(|name| self.param(name).is_none()) {
            let names = self.params.iter().map(|param| param.name.as_str());
            return Err(ParamError::Unknown {
                name: unknown.clone(),
                workflow: self.name.clone(),
                hint: lango_text::suggest::did_you_mean(unknown, names),
            });
        }
        let bind = |param: &WorkflowParam| {
            let value = match given.get(&param.name) {
                Some(value) => param.read(value)?,
                None => param
                    .default
                    .clone()
                    .ok_or_else(|| ParamError::Missing(param.name.clone()))?,
            };
            Ok((param.name.clone(), value))
        };
        self.params.iter().map(bind).collect()
    }

    /// Returns the work of a run: the definition as it is now, and all parameters.
    pub fn to_action(
        &self,
        definition: impl Into<String>,
        given: &Map<String, Value>,
    ) -> Result<JobAction, ParamError> {
        Ok(JobAction::Workflow {
            name: self.name.clone(),
            definition: definition.into(),
            params: self.bind_params(given)?,
        })
    }

    fn param(&self, name: &str) -> Option<&WorkflowParam> {
        self.params.iter().find(|param| param.name == name)
    }
}

impl TypeContext for Workflow {
    fn param_type(&self, name: &str) -> ValueType {
        self.param(name).map_or(ValueType::Any, |param| param.kind)
    }

    fn state_names(&self) -> &[&str] {
        &READABLE_STATES
    }
}

impl WorkflowParam {
    /// Reads a given value. A text is read as the declared type, because command lines have texts only.
    fn read(&self, value: &Value) -> Result<Value, ParamError> {
        let found = ValueType::of(value);
        if self.kind == ValueType::Any || self.kind == found {
            return Ok(value.clone());
        }
        let parsed = value
            .as_str()
            .and_then(|text| serde_json::from_str::<Value>(text.trim()).ok())
            .filter(|parsed| ValueType::of(parsed) == self.kind);
        parsed.ok_or_else(|| ParamError::WrongType {
            name: self.name.clone(),
            expected: self.kind,
            found,
        })
    }
}

/// An error in the parameters given to a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    #[error(
        "workflow `{workflow}` has no parameter `{name}`{}",
        .hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default()
    )]
    Unknown {
        name: String,
        workflow: String,
        hint: Option<String>,
    },
    #[error("parameter `{0}` has no default and must be given")]
    Missing(String),
    #[error("parameter `{name}` must be {expected}, not {found}")]
    WrongType {
        name: String,
        expected: ValueType,
        found: ValueType,
    },
}

impl WorkflowStep {
    /// Returns the references of the action.
    pub fn action_references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        match &self.action {
            StepAction::Agent { input, .. } => {
                input.iter().for_each(|item| collect(item, &mut found));
            }
            StepAction::Tool { arguments, .. } => collect(arguments, &mut found),
        }
        found
    }

    /// Returns true if the condition looks at the state of `step`, and so decides itself what a skipped
    /// step means.
    pub fn reads_state_of(&self, step: &str) -> bool {
        use super::reference::{ReferenceSource, StepField};
        let mut is_read = false;
        if let Some(condition) = &self.condition {
            condition.for_each_reference(&mut |reference, _| {
                is_read |= matches!(
                    &reference.source,
                    ReferenceSource::Step { id, field: StepField::State } if id == step
                );
            });
        }
        is_read
    }
}

fn collect<'a>(template: &'a ValueTemplate, found: &mut Vec<&'a Reference>) {
    match template {
        ValueTemplate::Literal(_) => {}
        ValueTemplate::Reference(reference) => found.push(reference),
        ValueTemplate::Text(parts) => found.extend(parts.iter().filter_map(|part| match part {
            TextPart::Reference(reference) => Some(reference),
            TextPart::Plain(_) => None,
        })),
        ValueTemplate::List(items) => items.iter().for_each(|item| collect(item, found)),
        ValueTemplate::Object(entries) => {
            entries.iter().for_each(|(_, item)| collect(item, found));
        }
    }
}
