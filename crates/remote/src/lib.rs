//! Colleagues in other processes.
//!
//! [`a2a`] is the protocol, without IO. The rest speaks it: [`RemoteTeam`] fetches cards and knows who can be reached, each
//! colleague carries out tasks as a [`lango_domain::remote_agent::RemoteAgent`]. Whatever a colleague says is data from outside
//! (B92).

pub mod a2a;
mod agent_names;
mod answer;
mod card_fetch;
mod card_report;
mod circuit_breaker;
mod client;
mod endpoint;
mod outbound;
mod remote_agent;
mod settings;
mod task_run;
mod team;

pub use card_fetch::CardError;
pub use card_report::{CardReport, InterfaceReport, SkillReport, check_card};
pub use settings::{RemoteAgentSettings, RemoteSettings};
pub use team::{
    LoadedRemoteAgents, RemoteAvailability, RemoteMember, RemoteStatus, RemoteTeam,
    load_remote_agents,
};
