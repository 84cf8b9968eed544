//! Observational memory: conversations become dated observations, observations are condensed to
//! reflections, and relevant ones are recalled for a request. The session history is never changed.

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
use lango_domain::StoreError;
use lango_domain::event::{Event, Principal};
use lango_domain::memory::{Memory, MemoryId, MemoryOrigin, MemoryStore};
use lango_domain::model::Model;
use lango_domain::session::SessionKey;

use crate::forget::Forgetter;
use lango_text::secret_scan::SecretScanner;

pub use digest::memory_line;
pub use recall::{RecallMode, RecalledMemory, SOURCE};
pub(crate) use recall_query::RecallQuery;
pub use rules::detect_kind;
pub use settings::MemorySettings;
pub use tools::{memory_json, tools};

/// The writer of observations and reflections.
#[derive(Clone)]
pub enum Observer {
    /// Rules that find names, dates, preferences, decisions and promises in the user's messages.
    Rules,
    /// A language model with its name.
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

/// The dependencies of [`ObservationalMemory`].
pub struct MemoryParts {
    pub memories: Arc<dyn MemoryStore>,
    pub observer: Observer,
    pub settings: MemorySettings,
    /// Detects secrets, which are never remembered.
    pub secret_scanner: SecretScanner,
    /// Forgets items in memory and in all other stores.
    pub forgetter: Forgetter,
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The memory of conversations. Cheap to clone.
#[derive(Clone)]
pub struct ObservationalMemory {
    inner: Arc<ObservationalMemoryInner>,
}

struct ObservationalMemoryInner {
    parts: MemoryParts,
    /// Serializes the observers of a session.
    session_locks: Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>,
    indexes: Mutex<HashMap<Principal, Arc<tokio::sync::Mutex<recall::RecallIndex>>>>,
}

/// A memory with the observations and events that it comes from.
pub struct MemoryEvidence {
    pub memory: Memory,
    /// The observations that a reflection condenses.
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

    /// Returns a memory with the observations and events that it comes from.
    pub async fn evidence(
        &self,
        principal: &Principal,
        id: MemoryId,
    ) -> Result<Option<MemoryEvidence>, StoreError> {
        let Some(memory) = self.memories().memory(principal, id).await? else {
            return Ok(None);
        };
        let mut observations = Vec::new();
        for id in &memory.condenses {
            observations.extend(
                self.memories()
                    .memory(principal, MemoryId::Observation(*id))
                    .await?,
            );
        }
        let key = SessionKey {
            session: memory.session.clone(),
            principal: principal.clone(),
        };
        let events = self.memories().events(&key, memory.sources.clone()).await?;
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

    fn session_lock(&self, key: &SessionKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self
            .inner
            .session_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(key.clone()).or_default())
    }
}
