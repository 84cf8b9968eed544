//! What is known, with its history; and what helped when something failed.

mod advising;
mod entries;
mod matching;
mod outcomes;
mod recalling;
mod settings;
mod tools;

use lango_domain::Clock;
use lango_domain::knowledge::KnowledgeStore;
use lango_domain::session::StoreError;

use crate::lazy::Lazy;
use crate::secret_scan::SecretScanner;

pub use advising::{LearningAdvisor, OutcomeTracker};
pub use entries::{EntryError, entry_line, normalize_key};
pub use recalling::KnowledgeContext;
pub use settings::KnowledgeSettings;
pub use tools::tools;

/// Cheap to clone.
#[derive(Clone)]
pub struct KnowledgeBase {
    pub store: Lazy<dyn KnowledgeStore>,
    pub secret_scanner: SecretScanner,
    pub now: Clock,
}

/// Why nothing could be looked up or kept.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeBaseError {
    #[error("what is known cannot be read or written: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Entry(#[from] EntryError),
}
