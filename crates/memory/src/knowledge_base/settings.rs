//! `knowledge.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `knowledge`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KnowledgeSettings {
    /// Lets the librarian save facts and learnings, and shows a matching learning when a call fails.
    pub enabled: bool,
}

impl Default for KnowledgeSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}
