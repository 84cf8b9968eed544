//! Workflows: steps with dependencies, written in a file.
//!
//! Steps are memoised: a step that is done never runs again, whatever happens to the process (B122).

mod check;
mod definition;
mod duration;
mod error;
mod expression;
mod fields;
mod file;
mod reference;
mod step_file;

pub use check::WorkflowCatalog;
pub use definition::{
    ApprovalWait, MAX_FILE_BYTES, MAX_STEPS, OnFailure, ParamError, RetryPolicy, StepAction,
    Workflow, WorkflowParam, WorkflowStep,
};
pub use duration::{DurationError, format_duration, parse_duration};
pub use error::WorkflowError;
pub use expression::{
    BinaryOperator, EvaluationError, Expression, ExpressionError, ExpressionKind, TypeContext,
    ValueType, check_types, evaluate, parse_expression,
};
pub use file::parse_workflow;
pub use reference::{
    MissingValue, Reference, ReferenceError, ReferenceSource, ReferenceValues, StepField, TextPart,
    ValueTemplate, resolve,
};
