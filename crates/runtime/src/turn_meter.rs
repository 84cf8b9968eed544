//! Measurements of a turn.

use lango_domain::event::{EventBody, Update};
use tokio::time::Instant;

/// Measurements of one turn.
pub struct TurnMeter {
    pub started: Instant,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// `done`, or the code of the failure. `None` for a suspended turn.
    pub end: Option<String>,
}

impl Default for TurnMeter {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            tokens_in: 0,
            tokens_out: 0,
            end: None,
        }
    }
}

impl TurnMeter {
    pub(crate) fn observe(&mut self, update: &Update) {
        match update {
            Update::Event(event) => match &event.body {
                EventBody::Usage(usage) => {
                    self.tokens_in = self.tokens_in.saturating_add(usage.input);
                    self.tokens_out = self.tokens_out.saturating_add(usage.output);
                }
                EventBody::TurnDone { .. } => self.end = Some("done".to_owned()),
                EventBody::TurnFailed { code, .. } => self.end = Some(code.to_string()),
                _ => {}
            },
            Update::StoreFailed(_) => self.end = Some("broken".to_owned()),
            Update::Delta { .. } | Update::ToolOutputDelta { .. } => {}
        }
    }
}
