//! Colleagues in other processes.
//!
//! [`a2a`] is the protocol, without IO. The rest speaks it: [`RemoteTeam`] fetches cards and knows who can be reached, each
//! colleague carries out tasks as a [`lango_domain::seams::RemoteAgent`]. Whatever a colleague says is data from outside
//! (B92).

pub mod a2a;
mod answer;
mod card;
mod circuit;
mod colleague;
mod endpoint;
mod exchange;
mod names;
mod outgoing;
mod peer;
mod report;
mod settings;
mod team;

pub use card::CardTrouble;
pub use report::{CardReport, InterfaceReport, SkillReport, check_card};
pub use settings::{RemoteAgentSettings, Settings};
pub use team::{Loaded, RemoteMember, RemoteStatus, RemoteTeam, Standing, load_remote_agents};
