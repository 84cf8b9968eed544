//! The built-in tools: workspace files, sandboxed commands and skills. Each module owns its tools
//! and its settings.

pub mod files;
pub mod sandbox;
mod settings;
pub mod shell;
pub mod skills;

pub use settings::{BrowserChoice, BrowserToolSettings, ToolsSettings};
