//! The `tools` section of the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shell;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolsSettings {
    /// The folder that the file tools and commands work in (`--workspace`); the current folder by default. A home folder or `/`
    /// is used only if it is set here.
    pub workspace: Option<PathBuf>,
    /// Settings for commands.
    pub exec: shell::ExecSettings,
}
