//! Assembly: configuration in, running system out. The only crate that reads the environment.

pub mod config;
mod conversation;
mod environment;
mod ollama;
mod settings;
mod team;

pub use config::{ConfigError, Loaded, Overrides};
pub use conversation::{CannotStart, Conversation, chosen_model, new_session};
pub use environment::Environment;
pub use settings::Settings;
pub use team::{Team, assemble_team, built_in_tools};
