//! Words with a fixed meaning between the engine and every model: one home, so that both sides agree.

/// The orchestrator's one call.
pub const TRANSFER_TOOL: &str = "transfer_to_agent";

/// How a specialist gives a task back.
pub const REJECT_MARKER: &str = "[REJECT]";

/// Said to a model whose reply was empty; no part of the log.
pub const EMPTY_REPLY_REMINDER: &str = "Your last reply was empty. Answer in words now.";

/// Stands where earlier turns were left out; also keeps the first message the user's.
pub const HISTORY_TRUNCATED_MARKER: &str = "[The beginning of this conversation is left out here.]";

/// Begins the mark that stands where steps of the work at hand were left out.
pub const STEPS_TRUNCATED_MARKER: &str = "[Left out here";

/// What a specialist is asked to do when the orchestrator says nothing special.
pub const DEFAULT_TASK: &str = "Do what the user asks in the last message.";

/// Begins the question that whoever answers may ask in passing.
pub const INQUIRY_PREFIX: &str = "To ask in passing: ";
