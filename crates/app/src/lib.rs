//! Assembly: configuration in, running system out. The only crate that reads the environment.

mod beside;
mod colleagues;
pub mod config;
mod conversation;
mod environment;
mod gateway;
mod graph;
mod hands;
mod knowing;
mod library;
mod memory;
mod ollama;
mod request;
mod sessions;
mod settings;
mod stores;
mod tape;
mod team;

pub use colleagues::{colleagues, keep_looking_for, no_colleagues};
pub use config::{ConfigError, Loaded, Overrides};
pub use conversation::{
    CannotStart, Conversation, Means, check_models, chosen_models, known_secrets, new_session,
};
pub use environment::Environment;
pub use gateway::{MakeTools, Served, new_token_value, serve};
pub use graph::{graph, lazy_graph};
pub use hands::{Hands, confinement, keeping, workspace_folder};
pub use knowing::knowing;
pub use library::{knowledge_tools, library, typed};
pub use memory::{chronicle, memory_tools};
pub use request::Request;
pub use sessions::{before_restore, forget_files, keep_retention, store_place};
pub use settings::Settings;
pub use stores::Stores;
pub use tape::{Player, Recorder, Strictness, Tape, TapeError};
pub use team::{Team, assemble_team, assemble_team_with};
