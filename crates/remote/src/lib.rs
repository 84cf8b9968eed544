//! Remote agents (A2A).
//!
//! [`a2a`] is the protocol, without IO. [`RemoteTeam`] fetches the agent cards and tracks which
//! agents are available; each agent runs tasks as a [`lango_domain::remote_agent::RemoteAgent`].
//! The output of remote agents is untrusted data (B92).

pub mod a2a;
mod agent_names;
mod answer;
mod card_fetch;
mod card_report;
mod client;
mod endpoint;
mod outbound;
mod remote_agent;
mod settings;
mod task_ref;
mod task_run;
mod task_text;
mod team;

pub use card_fetch::CardError;
pub use card_report::{CardReport, InterfaceReport, SkillReport, check_card};
pub use settings::{RemoteAgentSettings, RemoteSettings};
pub use team::{
    LoadedRemoteAgents, RemoteAvailability, RemoteMember, RemoteStatus, RemoteTeam,
    load_remote_agents,
};
