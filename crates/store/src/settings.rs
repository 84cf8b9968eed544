//! Settings of `store.*`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StoreSettings {
    /// The SQLite file of the store; `lango.sqlite` in the data folder when not set, `:memory:` for a store in memory.
    pub path: Option<PathBuf>,
    /// Delete sessions that were not used for this many days; sessions are never deleted by age when not set.
    pub retention_days: Option<NonZeroU32>,
}
