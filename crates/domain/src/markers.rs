//! Strings with a fixed meaning between the engine and every model. Defined once, so that both agree.

/// The orchestrator's only tool.
pub const TRANSFER_TOOL: &str = "transfer_to_agent";

/// The marker with which a specialist rejects a task.
pub const REJECT_MARKER: &str = "[REJECT]";

/// Sent to a model whose reply was empty; not part of the log.
pub const EMPTY_REPLY_REMINDER: &str = "Your last reply was empty. Answer in words now.";

/// The text of a request that consists of attachments alone.
pub const ATTACHMENTS_ONLY_REQUEST: &str = "Look at what is attached.";

/// Replaces earlier turns that were dropped. Also ensures that the first message is from the user.
pub const HISTORY_TRUNCATED_MARKER: &str = "[The beginning of this conversation is left out here.]";

/// The start of the marker that replaces dropped steps of the current work.
pub const STEPS_TRUNCATED_MARKER: &str = "[Left out here";

/// The task of a specialist if the orchestrator gives none.
pub const DEFAULT_TASK: &str = "Do what the user asks in the last message.";

/// The result of a call that did not run, because the process stopped before the user decided about it, or
/// before it started. Also the result of a transfer in which nothing else was done.
pub const CALL_NOT_RUN: &str =
    "it did not run, because Lango stopped before: make the same call again";

/// The prefix of an inquiry that is offered to the answering agent.
pub const INQUIRY_PREFIX: &str = "To ask in passing: ";
