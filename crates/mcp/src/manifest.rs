//! The tools of a server, kept on disk: no server has to run for the team to be built.

use std::path::Path;

use lango_files::read_bounded;
use serde::{Deserialize, Serialize};

use crate::definition::ToolDefinition;
use crate::private_file;

const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The state of a server when it was last started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Identifies the command line or the URL for which this was recorded.
    pub launch: String,
    /// The revision of the protocol that was negotiated.
    pub revision: String,
    /// The name and version that the server gives itself; for people only.
    pub server: String,
    /// In the order of their names.
    pub tools: Vec<ToolDefinition>,
    /// Tools that cannot be used, with the reason.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    #[serde(default)]
    pub has_resources: bool,
    /// The names of its prompts.
    #[serde(default)]
    pub prompts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub name: String,
    pub reason: String,
}

impl Manifest {
    /// Reads the manifest of a launch, if there is one. A damaged file counts as missing.
    pub(crate) fn load(path: &Path, launch: &str) -> Option<Self> {
        let bytes = read_bounded(path, MAX_BYTES).ok()?;
        let manifest: Self = serde_json::from_slice(&bytes).ok()?;
        (manifest.launch == launch).then_some(manifest)
    }

    pub(crate) fn save(&self, path: &Path) -> std::io::Result<()> {
        private_file::write(path, &serde_json::to_vec(self)?)
    }

    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
