//! Assembly: configuration in, running system out. The only crate that reads the environment.

mod hooks;
mod remote_agents;
pub mod config;
mod assistant;
mod environment;
mod gateway;
mod graph;
mod toolset;
mod knowledge_base;
mod documents;
mod memory;
mod ollama;
mod request;
mod store;
mod settings;
mod lazy_store;
mod recording;
mod team;

pub use remote_agents::{connect_remote_agents, refresh_in_background, no_remote_agents};
pub use config::{ConfigError, LoadedConfig, Overrides};
pub use assistant::{
    StartError, Assistant, AssistantOptions, check_models, selected_models, known_secrets, new_session,
};
pub use environment::Environment;
pub use gateway::{ToolFactory, GatewayServer, new_token_value, build_server};
pub use graph::{open_graph, lazy_graph};
pub use toolset::{Toolset, confinement, undo_storage, workspace_folder};
pub use knowledge_base::open_knowledge_base;
pub use documents::{knowledge_tools, open_document_index, user_ingest_source};
pub use memory::{open_memory, memory_tools};
pub use request::UserRequest;
pub use store::{pre_restore_backup_path, delete_session_files, apply_retention, store_location};
pub use settings::Settings;
pub use lazy_store::LazyStore;
pub use recording::{Replayer, Recorder, Strictness, Recording, RecordingError};
pub use team::{AssembledTeam, assemble_team, assemble_team_with};
