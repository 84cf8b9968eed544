//! The knowledge base: keyed entries with their history, and learnings from failed tool calls.

mod advice;
mod context;
mod entries;
mod matching;
mod outcomes;
mod settings;
mod tools;

use lango_domain::Clock;
use lango_domain::StoreError;
use lango_domain::knowledge::KnowledgeStore;

use lango_domain::lazy::Lazy;
use lango_text::secret_scan::SecretScanner;

pub use advice::{LearningAdvisor, OutcomeTracker};
pub use context::KnowledgeContext;
pub use entries::{EntryError, entry_line, normalize_key};
pub use settings::KnowledgeSettings;
pub use tools::tools;

/// Saves and finds entries and learnings. Cheap to clone.
#[derive(Clone)]
pub struct KnowledgeBase {
    pub store: Lazy<dyn KnowledgeStore>,
    pub secret_scanner: SecretScanner,
    pub now: Clock,
}

/// Error from reading or writing the knowledge base.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeBaseError {
    #[error("the knowledge base could not be read or written: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Entry(#[from] EntryError),
}
