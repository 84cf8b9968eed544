//! `librarian.*`.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `librarian`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LibrarianSettings {
    /// Scans conversations for questions worth asking the user, in the background after each turn.
    pub enabled: bool,
    /// Turns of a session between two scans. A model is not called before the first scan is due.
    pub inquiry_cooldown_turns: NonZeroU32,
    /// Minutes between two scans that call a model, across all sessions.
    pub inquiry_cooldown_minutes: u32,
    /// Most questions that may be pending. While that many are pending, nothing is scanned.
    pub max_pending_inquiries: NonZeroU32,
}

impl Default for LibrarianSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            inquiry_cooldown_turns: NonZeroU32::MIN.saturating_add(2),
            inquiry_cooldown_minutes: 10,
            max_pending_inquiries: NonZeroU32::MIN.saturating_add(1),
        }
    }
}
