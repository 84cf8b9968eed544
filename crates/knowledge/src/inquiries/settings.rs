//! `librarian.*`.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `librarian`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LibrarianSettings {
    /// Whether conversations are searched for what is worth asking about, after each turn and off its path.
    pub enabled: bool,
    /// So many turns of a session lie between two searches; a model is not asked before there were so many.
    pub inquiry_cooldown_turns: NonZeroU32,
    /// So many minutes lie between two searches that ask a model, whatever the session.
    pub inquiry_cooldown_minutes: u32,
    /// No more questions than these wait for an answer; while they do, nothing is searched.
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
