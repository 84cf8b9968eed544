//! Hands: files of a workspace, commands in a sandbox, skills. Each part owns its tools and its settings.

pub mod files;
pub mod sandbox;
mod settings;
pub mod shell;
pub mod skills;

pub use settings::ToolsSettings;
