//! Language models: pure dialects (a request in, bytes out; bytes in, fragments out), one HTTP driver for all of them,
//! and what happens on their bad days.

mod anthropic;
mod tool_call_assembly;
mod catalog;
mod selection;
mod dialect;
mod gemini;
mod http;
pub mod offline;
mod openai;
mod retry;
mod schema;
mod settings;
mod provider_error;
mod tool_names;

pub use catalog::{ModelCatalog, CatalogEntry, Price};
pub use selection::{SelectedModel, SelectionError, SelectionInput, select_model};
pub use dialect::{Decoder, Dialect, DecodeProgress, ModelEndpoint, WireRequest};
pub use http::{HttpModel, Timeouts, http_client};
pub use lango_domain::secret::Secret;
pub use lango_net::sse::{SseEvent, SseParser};
pub use retry::{RetryPolicy, FallbackModel};
pub use settings::{ModelSettings, ModelOverride, ProviderKind, ProviderSettings, Providers, RouterChoice};
