//! The HTTP gateway: serves the team over Lango's own API, an OpenAI-compatible API and A2A.
//!
//! A request passes through [`cors`] (Host and Origin), [`auth`] (bearer token to [`Caller`], then
//! scopes) and [`rate_limit`] before it reaches its route in [`api`], [`openai`], [`a2a`] or
//! [`status`]. [`router`] and [`openapi`] are both built from the records of the routes ([`route`]).
//! Every turn runs through a [`lango_runtime::Runtime`], as on the command line.

mod a2a;
mod api;
mod attachments;
mod auth;
mod body_memory;
mod cors;
mod error;
mod extract;
mod gateway;
mod metrics;
mod openai;
mod openapi;
mod rate_limit;
mod route;
mod router;
mod server;
mod settings;
mod sse;
mod status;
mod stream_limit;
mod write_timeout;

pub use a2a::{
    A2aSettings, AnswerRight, CardAudience, TaskAssignment, TaskBackend, TaskRecovery, TaskStep,
    TaskSteps, TeamWorker, Worker,
};
pub use api::team::{AgentItem, AgentList, RankedAgent, RouteResponse, SkippedItem};
pub use auth::Caller;
pub use error::ApiError;
pub use gateway::{
    DeleteSessionHook, Gateway, GatewayClockAndIds, GatewayParts, ServedTeam, UnreachableAgents,
};
pub use openapi::document as openapi_document;
pub use settings::ServerSettings;
