//! What is special inside a workspace.

use std::path::PathBuf;

/// Whether a path is closed to looks.
pub type DenyRead = Box<dyn Fn(&str) -> bool + Send + Sync>;

pub struct WorkspaceLimits {
    /// Folders that no tool touches.
    pub hidden: Vec<PathBuf>,
    /// Paths that are not even looked at from above.
    pub deny_read: DenyRead,
    /// Where Lango itself reads settings, agents and prompts from: changing those is dangerous.
    pub instruction_paths: Vec<PathBuf>,
}
