//! All stores of a process.

use std::sync::Arc;

use crate::access_tokens::AccessTokenStore;
use crate::automation::AutomationStore;
use crate::blobs::BlobStore;
use crate::documents::DocumentStore;
use crate::forget::LearnedDataStore;
use crate::graph::GraphStore;
use crate::inquiries::InquiryStore;
use crate::knowledge::KnowledgeStore;
use crate::maintenance::StoreMaintenance;
use crate::memory::MemoryStore;
use crate::payments::PaymentStore;
use crate::session::SessionStore;
use crate::session_catalog::SessionCatalog;
use crate::tasks::TaskStore;
use crate::vault::VaultStore;

/// The stores of a process, opened once and handed down. Cheap to clone.
#[derive(Clone)]
pub struct Stores {
    pub sessions: Arc<dyn SessionStore>,
    pub catalog: Arc<dyn SessionCatalog>,
    pub blobs: Arc<dyn BlobStore>,
    pub access_tokens: Arc<dyn AccessTokenStore>,
    pub tasks: Arc<dyn TaskStore>,
    pub documents: Arc<dyn DocumentStore>,
    pub graph: Arc<dyn GraphStore>,
    pub memory: Arc<dyn MemoryStore>,
    pub knowledge: Arc<dyn KnowledgeStore>,
    pub inquiries: Arc<dyn InquiryStore>,
    pub automation: Arc<dyn AutomationStore>,
    pub vault: Arc<dyn VaultStore>,
    pub payments: Arc<dyn PaymentStore>,
    /// Everything that is learned, to forget it in one step.
    pub learned: Arc<dyn LearnedDataStore>,
    pub maintenance: Arc<dyn StoreMaintenance>,
}
