//! Assembly: configuration in, running system out. The only crate that reads the environment.

pub mod config;
mod environment;
mod settings;
mod team;

pub use config::{ConfigError, Loaded, Overrides};
pub use environment::Environment;
pub use settings::Settings;
pub use team::{Team, assemble_team, built_in_tools};
