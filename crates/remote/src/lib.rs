//! Colleagues in other processes.
//!
//! [`a2a`] is the protocol, without IO. The rest speaks it: [`RemoteTeam`] fetches cards and knows who can be reached, each
//! colleague carries out tasks as a [`lango_domain::remote_agent::RemoteAgent`]. Whatever a colleague says is data from outside
//! (B92).

pub mod a2a;
mod answer;
mod card_fetch;
mod circuit_breaker;
mod remote_agent;
mod endpoint;
mod task_run;
mod agent_names;
mod outbound;
mod client;
mod card_report;
mod settings;
mod team;

pub use card_fetch::CardError;
pub use card_report::{CardReport, InterfaceReport, SkillReport, check_card};
pub use settings::{RemoteAgentSettings, RemoteSettings};
pub use team::{LoadedRemoteAgents, RemoteMember, RemoteStatus, RemoteTeam, RemoteAvailability, load_remote_agents};
