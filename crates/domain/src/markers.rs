//! Words with a fixed meaning between the engine and every model: one home, so that both sides agree.

/// The orchestrator's one call.
pub const TRANSFER: &str = "transfer_to_agent";

/// How a specialist gives a task back.
pub const REJECT: &str = "[REJECT]";

/// Said to a model whose reply was empty; no part of the log.
pub const ASK_AGAIN: &str = "Your last reply was empty. Answer in words now.";

/// Stands where earlier turns were left out; also keeps the first message the user's.
pub const LEFT_OUT: &str = "[The beginning of this conversation is left out here.]";

/// Begins the mark that stands where steps of the work at hand were left out.
pub const STEPS_LEFT_OUT: &str = "[Left out here";

/// What a specialist is asked to do when the orchestrator says nothing special.
pub const DO_WHAT_IS_ASKED: &str = "Do what the user asks in the last message.";

/// Begins the question that whoever answers may ask in passing.
pub const ASK_IN_PASSING: &str = "To ask in passing: ";
