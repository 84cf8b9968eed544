//! Questions that are worth asking: found after a turn, asked in passing, and answered by what the user says next.

mod answers;
mod asking;
mod gaps;
mod looking;
mod settings;
mod tools;
mod weaving;

use std::sync::Arc;

use lango_domain::inquiries::InquiryStore;
use lango_domain::memory::MemoryStore;
use lango_domain::model::Model;
use lango_domain::session::SessionStore;
use tokio::sync::Mutex;

use crate::knowing::Knowing;
use crate::lazily::Lazily;

pub use settings::Settings;
pub use tools::{line, tools};

/// What inquiries are found and kept with.
pub struct Means {
    pub store: Lazily<dyn InquiryStore>,
    /// What is known is not asked about, and answers become knowledge.
    pub knowing: Knowing,
    pub sessions: Arc<dyn SessionStore>,
    /// Knows which events nothing may be learned from any more.
    pub memories: Arc<dyn MemoryStore>,
    /// Without a language model set rules look for gaps, and say so.
    pub model: Option<Arc<dyn Model>>,
    pub settings: Settings,
}

/// Finds inquiries when a turn has ended, and offers one to a turn that begins. Cheap to clone.
#[derive(Clone)]
pub struct Inquiries {
    means: Arc<Means>,
    /// One look at a time: nothing is paid for twice.
    looking: Arc<Mutex<()>>,
}

impl Inquiries {
    pub fn new(means: Means) -> Self {
        Self { means: Arc::new(means), looking: Arc::default() }
    }
}
