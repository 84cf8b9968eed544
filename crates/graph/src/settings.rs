//! `graph.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `graph`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GraphSettings {
    /// Gives the librarian tools for the knowledge graph.
    pub enabled: bool,
}

impl Default for GraphSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}
