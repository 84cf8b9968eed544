//! The decision about a call.

use lango_domain::event::{ApprovalState, Decider, Grant};

/// The decision about a call, as it is logged.
pub(super) struct ApprovalOutcome {
    pub state: ApprovalState,
    pub by: Option<Decider>,
    pub grant: Option<Grant>,
}

impl ApprovalOutcome {
    pub fn decided(state: ApprovalState, by: Decider) -> Self {
        Self {
            state,
            by: Some(by),
            grant: None,
        }
    }

    pub fn from_state(state: ApprovalState) -> Self {
        Self {
            state,
            by: None,
            grant: None,
        }
    }
}
