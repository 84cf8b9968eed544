//! Restrictions inside a workspace.

use std::path::PathBuf;

/// Returns true if a path must not be read.
pub type DenyRead = Box<dyn Fn(&str) -> bool + Send + Sync>;

pub struct WorkspaceLimits {
    /// Folders that no tool may access.
    pub hidden: Vec<PathBuf>,
    /// Returns true for paths that lists and searches omit.
    pub deny_read: DenyRead,
    /// Paths from which Lango reads settings, agents and prompts. Changing them is dangerous.
    pub instruction_paths: Vec<PathBuf>,
}
