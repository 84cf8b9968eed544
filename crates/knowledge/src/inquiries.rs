//! Questions that are worth asking: found after a turn, asked in passing, and answered by what the user says next.

mod answer_rules;
mod gap_rules;
mod model_review;
mod offer;
mod scan;
mod settings;
mod tools;

use std::sync::Arc;

use lango_domain::inquiries::InquiryStore;
use lango_domain::memory::MemoryStore;
use lango_domain::model::Model;
use lango_domain::session::SessionStore;
use tokio::sync::Mutex;

use crate::knowledge_base::KnowledgeBase;
use crate::lazy::Lazy;

pub use settings::LibrarianSettings;
pub use tools::{inquiry_line, tools};

/// What inquiries are found and kept with.
pub struct InquiryParts {
    pub store: Lazy<dyn InquiryStore>,
    /// What is known is not asked about, and answers become knowledge.
    pub knowledge_base: KnowledgeBase,
    pub sessions: Arc<dyn SessionStore>,
    /// Knows which events nothing may be learned from any more.
    pub memories: Arc<dyn MemoryStore>,
    /// Without a language model set rules look for gaps, and say so.
    pub model: Option<Arc<dyn Model>>,
    pub settings: LibrarianSettings,
}

/// Finds inquiries when a turn has ended, and offers one to a turn that begins. Cheap to clone.
#[derive(Clone)]
pub struct Inquiries {
    parts: Arc<InquiryParts>,
    /// One look at a time: nothing is paid for twice.
    scan_lock: Arc<Mutex<()>>,
}

impl Inquiries {
    pub fn new(means: InquiryParts) -> Self {
        Self {
            parts: Arc::new(means),
            scan_lock: Arc::default(),
        }
    }
}
