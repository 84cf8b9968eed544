//! Inquiries: questions to the user that are found after a turn, offered in a later turn, and answered
//! by the user's next messages.

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
use lango_domain::lazy::Lazy;

pub use settings::LibrarianSettings;
pub use tools::{inquiry_line, tools};

/// The dependencies of [`Inquiries`].
pub struct InquiryParts {
    pub store: Lazy<dyn InquiryStore>,
    /// Known topics are not asked about, and answers are saved as entries.
    pub knowledge_base: KnowledgeBase,
    pub sessions: Arc<dyn SessionStore>,
    /// Tracks the events that were forgotten, from which nothing may be learned.
    pub memories: Arc<dyn MemoryStore>,
    /// Reviews conversations. Without a model, fixed rules find gaps, and inquiries are marked so.
    pub model: Option<Arc<dyn Model>>,
    pub settings: LibrarianSettings,
}

/// Finds inquiries after a turn and offers one at the start of a turn. Cheap to clone.
#[derive(Clone)]
pub struct Inquiries {
    parts: Arc<InquiryParts>,
    /// Serializes scans, so that no model call is made twice.
    scan_lock: Arc<Mutex<()>>,
}

impl Inquiries {
    pub fn new(parts: InquiryParts) -> Self {
        Self {
            parts: Arc::new(parts),
            scan_lock: Arc::default(),
        }
    }
}
