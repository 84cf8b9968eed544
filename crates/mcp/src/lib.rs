//! Tool servers of the Model Context Protocol (B150).
//!
//! A server is started on first use, through the sandbox helper, so that none of its processes outlives
//! Lango. What a model reads of a server comes from its [`Manifest`] on disk, and only what the user has
//! confirmed ([`TrustFile`]) becomes a tool.

mod bounded_lines;
mod client_side;
mod connection;
mod definition;
mod error;
mod launch;
mod listing;
mod manifest;
mod private_file;
mod program_folders;
mod result;
mod server;
mod settings;
mod tool_name;
mod tools;
mod trust;

pub use definition::ToolDefinition;
pub use error::McpError;
pub use launch::{LaunchEnvironment, ServerAddress};
pub use manifest::{LeftOut, Manifest};
pub use private_file::write as write_private_file;
pub use server::{McpServer, ServerFiles};
pub use settings::{McpServerSettings, McpSettings, ServerKey, ToolLevel};
pub use tool_name::{TOOL_PREFIX, tool_prefix};
pub use tools::{MAX_LISTED_TOOLS, server_tools, trusted_definitions};
pub use trust::{TrustChange, TrustFile, TrustState};
