//! Loads the configuration and assembles the assistant from it. The only crate that reads the
//! environment.

mod assistant;
mod automation;
mod browser;
mod capabilities;
pub mod config;
mod connected_models;
mod doctor;
mod documents;
mod environment;
mod folder_teams;
mod gateway;
mod graph;
mod hooks;
mod knowledge_base;
mod lazy_stores;
mod mcp;
mod memory;
mod ollama;
mod payments;
mod recording;
mod remote_agents;
mod request;
mod secrets;
mod servers_file;
mod settings;
mod store;
mod team;
mod toolset;
mod vault;
mod vault_settings;
mod wallet_keys;

/// The crates of the capabilities, for commands that work on them directly.
pub mod capability {
    pub use lango_automation as automation;
    pub use lango_browser as browser;
    pub use lango_documents as documents;
    pub use lango_graph as graph;
    pub use lango_mcp as mcp;
    pub use lango_memory as memory;
    pub use lango_payments as payments;
    pub use lango_tools as tools;
    pub use lango_vault as vault;
}

pub use assistant::{Assistant, AssistantOptions, StartError, known_secrets, new_session};
pub use automation::{
    RunningScheduler, SchedulerOptions, build_scheduler, plan_limits, team_catalog,
};
pub use browser::{browser_profiles, navigator_for_user};
pub use capabilities::{CapabilityContext, capability_tools};
pub use config::{ConfigError, LoadedConfig, Overrides};
pub use connected_models::{check_models, selected_models};
pub use doctor::{CheckStatus, DoctorCheck, doctor_checks};
pub use documents::{open_document_index, user_ingest_source};
pub use environment::Environment;
pub use gateway::{GatewayServer, build_server, new_token_value};
pub use graph::open_graph;
pub use knowledge_base::open_knowledge_base;
pub use lazy_stores::LazyStores;
pub use mcp::{ServerStatus, open_servers, server_statuses};
pub use memory::{open_forgetter, open_memory};
pub use payments::open_payments;
pub use recording::{Recorder, Recording, RecordingError, Replayer, Strictness};
pub use remote_agents::{connect_remote_agents, no_remote_agents, refresh_in_background};
pub use request::UserRequest;
pub use secrets::secret_source;
pub use servers_file::{ImportedServers, ServersFile};
pub use settings::Settings;
pub use store::{apply_retention, delete_session_files, open_stores_in, restore_store, store_file};
pub use team::{AssembledTeam, assemble_team, assemble_team_with};
pub use toolset::{Toolset, confinement, undo_storage, workspace_folder};
pub use vault_settings::resolve_vault_settings;

pub use lango_files::read_bounded;

pub use lango_engine::{LegacyMessage, replay_author};
pub use lango_gateway::RouteResponse;
pub use lango_models::{SelectedModel, SelectionError, offline};
pub use lango_net::json::check_value_count;
pub use lango_net::{
    ContentKind, FetchLimits, FetchedPage, GuardedClient, parse_url, policy_for_user_url,
};
pub use lango_remote::{
    CardReport, InterfaceReport, RemoteAgentSettings, RemoteAvailability, RemoteStatus, RemoteTeam,
    check_card,
};
pub use lango_runtime::{Runtime, StartTurnError, TurnHandle, TurnSpec};
pub use lango_team::{
    CapabilityMap, RoleToolSet, ToolClaims, capability_description, partition_tools,
    sample_tool_names,
};
