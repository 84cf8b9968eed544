//! What is known, with its history; and what helped when something failed.

mod advising;
mod entries;
mod matching;
mod outcomes;
mod recalling;
mod settings;
mod tools;

use lango_domain::knowledge::KnowledgeStore;
use lango_domain::session::StoreError;

use crate::lazily::{Clock, Lazily};
use crate::secrecy::Secrecy;

pub use advising::{Advice, Outcomes};
pub use entries::{NotKept, key_of, listed};
pub use recalling::Recalling;
pub use settings::Settings;
pub use tools::tools;

/// Cheap to clone.
#[derive(Clone)]
pub struct Knowing {
    pub store: Lazily<dyn KnowledgeStore>,
    pub secrecy: Secrecy,
    pub now: Clock,
}

/// Why nothing could be looked up or kept.
#[derive(Debug, thiserror::Error)]
pub enum KnowingError {
    #[error("what is known cannot be read or written: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    NotKept(#[from] NotKept),
}
