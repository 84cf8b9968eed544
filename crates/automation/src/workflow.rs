//! Workflows: steps with dependencies, written in a file.
//!
//! Steps are memoised: a step that is done never runs again, whatever happens to the process (B122).

mod check;
mod definition;
mod diagram;
mod driver;
mod duration;
mod error;
mod expression;
mod fields;
mod file;
mod planner;
mod progress;
mod reference;
mod report;
mod runtime_steps;
mod status;
mod step_attempt;
mod step_call;
mod step_executor;
mod step_file;
mod template_file;

pub use check::WorkflowCatalog;
pub use definition::{
    ApprovalWait, MAX_FILE_BYTES, MAX_STEPS, OnFailure, ParamError, RetryPolicy, StepAction,
    Workflow, WorkflowParam, WorkflowStep,
};
pub use diagram::render_workflow;
pub use driver::{WorkflowDriver, WorkflowSettings};
pub use duration::{DurationError, format_duration, parse_duration};
pub use error::WorkflowError;
pub use expression::{
    BinaryOperator, EvaluationError, Expression, ExpressionError, ExpressionKind, TypeContext,
    ValueType, check_types, evaluate, parse_expression,
};
pub use file::parse_workflow;
pub use planner::{
    Plan, PlanInput, RunEnding, StepMove, StepRows, UnknownStep, ending, is_bypassed, plan,
    steps_to_retry,
};
pub use reference::{
    MissingValue, Reference, ReferenceError, ReferenceSource, ReferenceValues, StepField, TextPart,
    ValueTemplate, resolve,
};
pub use runtime_steps::RuntimeSteps;
pub use status::{StepStatus, ValidationReport, WorkflowStatus};
pub use step_call::{StepWork, step_work};
pub use step_executor::{
    MAX_RESULT_BYTES, StepCall, StepExecutor, StepFailure, StepInput, StepOutcome, StepRequest,
    limit_result,
};
