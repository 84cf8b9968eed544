//! `store.*`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StoreSettings {
    /// The file that sessions are kept in; `lango.sqlite` in the data folder when not set, `:memory:` for none.
    pub path: Option<PathBuf>,
    /// Sessions that nobody used for so many days are deleted; kept for good when not set.
    pub retention_days: Option<NonZeroU32>,
}
