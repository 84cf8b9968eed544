//! The seam between a workflow and what its steps do.

use futures::future::BoxFuture;
use lango_domain::automation::Run;
use lango_domain::event::SessionId;
use lango_domain::session::SessionKey;
use lango_domain::{Label, LabeledText, StoreError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::execution::RunContext;

/// Runs single steps of workflows.
pub trait StepExecutor: Send + Sync {
    /// Runs a step to its end. The step counts as failed at its timeout, so the executor stops its work when
    /// `request.cancel` is cancelled. When `request.context.suspend` is cancelled, it leaves the work so that
    /// it can be resumed, and returns [`StepOutcome::Suspended`].
    fn execute<'a>(&'a self, request: StepRequest<'a>) -> BoxFuture<'a, StepOutcome>;

    /// Returns true if a call has no effect, so that it can run again after a crash.
    fn is_read_only(&self, run: &Run, tool: &str, arguments: &Value) -> bool;

    /// Returns true if it is known how far the turn of an interrupted call came, so that it can be resumed
    /// without repeating an effect: the call has not run, such as one that waited for an answer, or its
    /// result is known.
    fn is_progress_known(&self, session: SessionKey) -> BoxFuture<'_, Result<bool, StoreError>>;
}

/// One attempt of a step.
#[derive(Clone)]
pub struct StepRequest<'a> {
    /// The run, with its principal, permissions and budget.
    pub run: &'a Run,
    pub context: &'a RunContext,
    pub step: String,
    /// Counted from 1.
    pub attempt: u32,
    pub call: StepCall,
    /// The session of the step's turn. It is stored before the step starts.
    pub session: SessionId,
    /// True if an earlier process started this attempt. The session may hold a turn that is unfinished and
    /// continues, or one that is finished and has the result; only without either does the step start again.
    pub is_resumed: bool,
    /// The label of everything that the step was made from.
    pub label: Label,
    pub cancel: CancellationToken,
}

/// The call of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepCall {
    Agent {
        /// A single agent; the team if not set.
        agent: Option<String>,
        /// The text of the file, never that of a value (B122).
        prompt: String,
        input: Vec<StepInput>,
    },
    Tool {
        tool: String,
        arguments: Value,
    },
}

/// Data that an agent reads next to the prompt, as an attachment of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepInput {
    /// Where it comes from, such as `diff.result`.
    pub source: String,
    pub content: LabeledText,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    Done(LabeledText),
    Failed(StepFailure),
    /// The process is shutting down, and the step continues in the next one.
    Suspended,
    /// The run is given up until the store works again. The step continues where its session says.
    StoreFailed(StoreError),
}

/// The failure of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StepFailure {
    pub message: String,
    /// True if another attempt would fail too, such as a call that a rule forbids.
    pub is_permanent: bool,
    /// The label of the message, which may quote what the step read.
    pub label: Label,
}

impl StepFailure {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_permanent: false,
            label: Label::default(),
        }
    }

    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            is_permanent: true,
            ..Self::new(message)
        }
    }
}

/// The largest stored result of a step, in bytes.
pub const MAX_RESULT_BYTES: usize = 256 * 1024;

/// Limits a result. What is left out is said.
pub fn limit_result(text: &str) -> String {
    if text.len() <= MAX_RESULT_BYTES {
        return text.to_owned();
    }
    let mut end = MAX_RESULT_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let omitted = text.len() - end;
    format!("{}\n[… {omitted} bytes left out …]", &text[..end])
}
