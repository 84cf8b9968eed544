//! Observational memory: conversations become dated observations, observations become reflections, and what fits a request
//! is recalled. Raw history is never touched.

mod digest;
mod model_writer;
mod observe;
mod recall;
mod recall_query;
mod reflect;
mod rule_phrases;
mod rules;
mod settings;
mod tools;
mod topics;
mod transcript;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use lango_domain::event::{Event, Principal};
use lango_domain::memory::{Memory, MemoryId, MemoryOrigin, MemoryStore};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;
use lango_domain::session::StoreError;

use crate::forget::Forgetter;
use crate::secret_scan::SecretScanner;

pub use digest::memory_line;
pub use recall::{RecallMode, RecalledMemory, SOURCE};
pub(crate) use recall_query::RecallQuery;
pub use rules::detect_kind;
pub(crate) use rules::normalize_words;
pub use settings::MemorySettings;
pub use tools::{memory_json, tools};

/// Who puts conversations into words.
#[derive(Clone)]
pub enum Observer {
    /// Rules: names, dates, preferences, decisions and promises in the user's own words.
    Rules,
    /// A language model, and its name.
    Model { model: Arc<dyn Model>, name: String },
}

impl Observer {
    pub fn origin(&self) -> MemoryOrigin {
        match self {
            Self::Rules => MemoryOrigin::Rules,
            Self::Model { name, .. } => MemoryOrigin::Model(name.clone()),
        }
    }
}

/// What a chronicle is put together from.
pub struct MemoryParts {
    pub memories: Arc<dyn MemoryStore>,
    pub observer: Observer,
    pub settings: MemorySettings,
    /// What nobody may keep.
    pub secret_scanner: SecretScanner,
    /// Forgets here and everywhere else.
    pub forgetter: Forgetter,
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The memory of conversations; cheap to clone.
#[derive(Clone)]
pub struct ObservationalMemory {
    inner: Arc<ObservationalMemoryInner>,
}

struct ObservationalMemoryInner {
    parts: MemoryParts,
    /// One observer at a time for a session.
    session_locks: Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>,
    indexes: Mutex<HashMap<Principal, Arc<tokio::sync::Mutex<recall::RecallIndex>>>>,
}

/// Something that is remembered, down to the words that it comes from.
pub struct MemoryEvidence {
    pub memory: Memory,
    /// What a reflection condenses.
    pub observations: Vec<Memory>,
    pub events: Vec<Arc<Event>>,
}

impl ObservationalMemory {
    pub fn new(parts: MemoryParts) -> Self {
        Self {
            inner: Arc::new(ObservationalMemoryInner {
                parts,
                session_locks: Mutex::default(),
                indexes: Mutex::default(),
            }),
        }
    }

    pub fn memories(&self) -> &dyn MemoryStore {
        &*self.parts().memories
    }

    pub fn settings(&self) -> &MemorySettings {
        &self.parts().settings
    }

    pub fn forgetter(&self) -> &Forgetter {
        &self.parts().forgetter
    }

    pub fn observer(&self) -> &Observer {
        &self.parts().observer
    }

    /// Where a memory comes from: session, events and their words.
    pub async fn evidence(
        &self,
        of: &Principal,
        id: MemoryId,
    ) -> Result<Option<MemoryEvidence>, StoreError> {
        let Some(memory) = self.memories().memory(of, id).await? else {
            return Ok(None);
        };
        let mut observations = Vec::new();
        for id in &memory.condenses {
            observations.extend(
                self.memories()
                    .memory(of, MemoryId::Observation(*id))
                    .await?,
            );
        }
        let session = SessionKey {
            session: memory.session.clone(),
            principal: of.clone(),
        };
        let events = self
            .memories()
            .events(&session, memory.sources.clone())
            .await?;
        Ok(Some(MemoryEvidence {
            memory,
            observations,
            events,
        }))
    }

    fn parts(&self) -> &MemoryParts {
        &self.inner.parts
    }

    fn now(&self) -> Timestamp {
        (self.parts().now)()
    }

    fn is_secret(&self, text: &str) -> bool {
        self.parts().secret_scanner.find_secret(text).is_some()
    }

    fn session_lock(&self, of: &SessionKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self
            .inner
            .session_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        busy.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(busy.entry(of.clone()).or_default())
    }
}
