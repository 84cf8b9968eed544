//! Every setting, put together from what each crate owns. The shape serves writing and the schema; reading goes
//! part by part, so that a wrong value is reported with its own key.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The team and how it works.
    pub agent: Agent,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Agent {
    #[serde(flatten)]
    pub team: lango_team::Settings,
}

impl Settings {
    /// The JSON Schema of a configuration file.
    pub fn schema() -> Value {
        schemars::schema_for!(Self).to_value()
    }
}
