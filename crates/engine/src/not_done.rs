//! Detects turns that have an answer but did not do what was asked, as far as the log tells.

use std::sync::Arc;

use lango_domain::event::{Event, EventBody, ToolCode, TurnId};
use lango_domain::failure::NotDoneReason;

/// Returns a reason if the last calls of a turn were denied and none succeeded after them. Calls of one reply
/// count together, because their order says nothing.
pub(crate) fn ended_denied(log: &[Arc<Event>], turn: &TurnId) -> Option<NotDoneReason> {
    let (mut is_denied, mut has_succeeded) = (false, false);
    for event in log.iter().rev().filter(|event| event.turn == *turn) {
        match &event.body {
            EventBody::ToolResult { ok: true, .. } => has_succeeded = true,
            EventBody::ToolResult { code, .. } => is_denied |= *code == Some(ToolCode::Denied),
            // The usage of the reply that made the calls stands before them.
            EventBody::Usage(_) if is_denied || has_succeeded => break,
            _ => {}
        }
    }
    is_denied.then_some(NotDoneReason::Denied)
}
