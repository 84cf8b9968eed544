//! Language models: pure dialects (a request in, bytes out; bytes in, fragments out), one HTTP driver for all of them,
//! and what happens on their bad days.

mod anthropic;
mod calls;
mod catalogue;
mod choice;
mod dialect;
mod gemini;
mod http;
pub mod offline;
mod openai;
mod retry;
mod schema;
mod settings;
mod status;
mod tool_names;

pub use catalogue::{Catalogue, Entry, Price};
pub use choice::{Chosen, NoModel, Plan, choose};
pub use dialect::{Decoder, Dialect, Progress, Target, WireRequest};
pub use http::{HttpModel, Timing, client};
pub use lango_domain::secret::Secret;
pub use lango_net::sse::{SseEvent, SseParser};
pub use retry::{Policy, Resilient};
pub use settings::{AgentSettings, ModelOverride, ProviderKind, ProviderSettings, Providers, RouterChoice};
