//! The door: whoever comes in over HTTP with a token asks the same team through the same [`lango_engine::Runner`] as
//! everybody else.
//!
//! A request passes [`place`] (may this page speak to us at all), [`gate`] (whose token is it, what may it do),
//! [`pace`] (how often, how many at once), and then reaches its route. Every turn is started by [`turns`].

mod a2a;
mod api;
mod approvals;
mod brought;
mod gate;
mod gateway;
mod listen;
mod listeners;
mod metrics;
mod openai;
mod openapi;
mod pace;
mod patient;
mod place;
mod reading;
mod refusal;
mod routes;
mod settings;
mod sse;
mod streams;
mod turns;

pub use a2a::{A2aSettings, Answer, Assignment, CardAudience, Found, Step, Steps, Tasks, TeamWorker, Worker};
pub use api::team::{AgentItem, AgentList, Ranked, RouteAnswer, SkippedItem};
pub use approvals::Lobby;
pub use gate::Caller;
pub use gateway::{Absent, Forget, Gateway, Parts, Surroundings, Team, TeamFacts};
pub use openapi::document as openapi_document;
pub use refusal::Refusal;
pub use settings::Settings;
pub use turns::{Addressee, Attached, Begin, Leaving, TurnWish};
