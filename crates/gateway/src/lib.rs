//! The door: whoever comes in over HTTP with a token asks the same team through the same [`lango_engine::Runner`] as
//! everybody else.
//!
//! A request passes [`place`] (may this page speak to us at all), [`gate`] (whose token is it, what may it do),
//! [`pace`] (how often, how many at once), and then reaches its route. Every turn is started by [`turns`].

mod a2a;
mod api;
mod approvals;
mod auth;
mod client_context;
mod cors;
mod error;
mod extract;
mod gateway;
mod metrics;
mod openai;
mod openapi;
mod rate_limit;
mod router;
mod server;
mod settings;
mod sse;
mod stream_limit;
mod subscribers;
mod turns;
mod write_timeout;

pub use a2a::{
    A2aSettings, AnswerRight, CardAudience, TaskAssignment, TaskBackend, TaskRecovery, TaskStep,
    TaskSteps, TeamWorker, Worker,
};
pub use api::team::{AgentItem, AgentList, RankedAgent, RouteResponse, SkippedItem};
pub use approvals::ClientBridge;
pub use auth::Caller;
pub use error::ApiError;
pub use gateway::{
    DeleteSessionHook, Gateway, GatewayClockAndIds, GatewayParts, ServedTeam, TeamInfo,
    UnreachableAgents,
};
pub use openapi::document as openapi_document;
pub use settings::ServerSettings;
pub use turns::{OnDisconnect, TurnHandle, TurnInput, TurnSpec, TurnTarget};
