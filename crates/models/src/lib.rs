//! Language models: pure provider dialects (request to bytes, bytes to fragments), one HTTP driver
//! for all of them, retries and fallback, and the offline model.

mod anthropic;
mod catalog;
mod dialect;
mod gemini;
mod http;
pub mod offline;
mod openai;
mod provider_error;
mod retry;
mod schema;
mod selection;
mod settings;
mod tool_call_assembly;
mod tool_names;

pub use catalog::{CatalogEntry, ModelCatalog, Price, ReadableInput};
pub use dialect::{DecodeProgress, Decoder, Dialect, ModelEndpoint, WireRequest};
pub use http::{HttpModel, Timeouts, http_client};
pub use lango_domain::secret::Secret;
pub use lango_net::sse::{SseEvent, SseParser};
pub use retry::{FallbackModel, RetryPolicy};
pub use selection::{SelectedModel, SelectionError, SelectionInput, select_model};
pub use settings::{
    ModelOverride, ModelSettings, ProviderKind, ProviderSettings, Providers, RouterChoice,
};
