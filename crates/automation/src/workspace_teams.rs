//! The team of a folder. A run works in the folder that it was asked for in, whatever folder the scheduler was
//! started in (B121).

use std::path::Path;

use lango_engine::Runner;

/// Finds the team that works in a folder.
pub trait WorkspaceTeams: Send + Sync {
    /// Returns the runner of the team of a folder; `None` if the team of this process works there. Fails with
    /// the reason why no team can work there.
    fn runner(&self, folder: &Path) -> Result<Option<Runner>, String>;
}

/// The team of this process works in every folder. For tests, and for teams without tools.
pub struct OneTeam;

impl WorkspaceTeams for OneTeam {
    fn runner(&self, _: &Path) -> Result<Option<Runner>, String> {
        Ok(None)
    }
}
