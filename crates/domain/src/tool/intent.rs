//! The effect of a call, before it runs.

use serde::{Deserialize, Serialize};

use super::Safety;

/// The effect that a call would have, for the approval decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub level: Safety,
    /// The exact effect: the command, the diff, the amount.
    pub shows: String,
    /// The text that rules are matched against: the command or the path.
    pub subject: String,
    /// The pattern that an approval for the session may cover, such as `git *`.
    pub pattern: Option<String>,
}
