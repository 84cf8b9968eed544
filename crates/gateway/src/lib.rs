//! The door: whoever comes in over HTTP with a token asks the same team through the same [`lango_engine::Runner`] as
//! everybody else.
//!
//! A request passes [`place`] (may this page speak to us at all), [`gate`] (whose token is it, what may it do),
//! [`pace`] (how often, how many at once), and then reaches its route. Every turn is started by [`turns`].

mod a2a;
mod api;
mod approvals;
mod client_context;
mod auth;
mod gateway;
mod server;
mod subscribers;
mod metrics;
mod openai;
mod openapi;
mod rate_limit;
mod write_timeout;
mod cors;
mod extract;
mod error;
mod router;
mod settings;
mod sse;
mod stream_limit;
mod turns;

pub use a2a::{A2aSettings, AnswerRight, TaskAssignment, CardAudience, TaskRecovery, TaskStep, TaskSteps, TaskBackend, TeamWorker, Worker};
pub use api::team::{AgentItem, AgentList, RankedAgent, RouteResponse, SkippedItem};
pub use approvals::ClientBridge;
pub use auth::Caller;
pub use gateway::{UnreachableAgents, DeleteSessionHook, Gateway, GatewayParts, GatewayClockAndIds, ServedTeam, TeamInfo};
pub use openapi::document as openapi_document;
pub use error::ApiError;
pub use settings::ServerSettings;
pub use turns::{TurnTarget, TurnHandle, TurnInput, OnDisconnect, TurnSpec};
