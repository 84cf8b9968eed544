//! Observational memory: conversations become dated observations, observations become reflections, and what fits a request
//! is recalled. Raw history is never touched.

mod digest;
mod observing;
mod phrases;
mod question;
mod recall;
mod reflecting;
mod rules;
mod settings;
mod tools;
mod topics;
mod transcript;
mod writing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use lango_domain::event::{Event, Principal};
use lango_domain::memory::{MemoryStore, Memory, MemoryId, MemoryOrigin};
use lango_domain::model::Model;
use lango_domain::seams::SessionKey;
use lango_domain::session::StoreError;

use crate::forgetting::Forgetting;
use crate::secrecy::Secrecy;

pub use digest::line;
pub(crate) use question::Question;
pub use recall::{Care, Recalled, SOURCE};
pub use rules::kind_of;
pub(crate) use rules::plain_words;
pub use settings::Settings;
pub use tools::{item, tools};

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
pub struct Parts {
    pub memories: Arc<dyn MemoryStore>,
    pub observer: Observer,
    pub settings: Settings,
    /// What nobody may keep.
    pub secrecy: Secrecy,
    /// Forgets here and everywhere else.
    pub forgetting: Forgetting,
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The memory of conversations; cheap to clone.
#[derive(Clone)]
pub struct Chronicle {
    shared: Arc<Shared>,
}

struct Shared {
    parts: Parts,
    /// One observer at a time for a session.
    busy: Mutex<HashMap<SessionKey, Arc<tokio::sync::Mutex<()>>>>,
    indexes: Mutex<HashMap<Principal, Arc<tokio::sync::Mutex<recall::Index>>>>,
}

/// Something that is remembered, down to the words that it comes from.
pub struct Reason {
    pub memory: Memory,
    /// What a reflection condenses.
    pub observations: Vec<Memory>,
    pub events: Vec<Arc<Event>>,
}

impl Chronicle {
    pub fn new(parts: Parts) -> Self {
        Self { shared: Arc::new(Shared { parts, busy: Mutex::default(), indexes: Mutex::default() }) }
    }

    pub fn memories(&self) -> &dyn MemoryStore {
        &*self.parts().memories
    }

    pub fn settings(&self) -> &Settings {
        &self.parts().settings
    }

    pub fn forgetting(&self) -> &Forgetting {
        &self.parts().forgetting
    }

    pub fn observer(&self) -> &Observer {
        &self.parts().observer
    }

    /// Where a memory comes from: session, events and their words.
    pub async fn why(&self, of: &Principal, id: MemoryId) -> Result<Option<Reason>, StoreError> {
        let Some(memory) = self.memories().memory(of, id).await? else { return Ok(None) };
        let mut observations = Vec::new();
        for id in &memory.condenses {
            observations.extend(self.memories().memory(of, MemoryId::Observation(*id)).await?);
        }
        let session = SessionKey { session: memory.session.clone(), principal: of.clone() };
        let events = self.memories().events(&session, memory.sources.clone()).await?;
        Ok(Some(Reason { memory, observations, events }))
    }

    fn parts(&self) -> &Parts {
        &self.shared.parts
    }

    fn now(&self) -> Timestamp {
        (self.parts().now)()
    }

    fn is_secret(&self, text: &str) -> bool {
        self.parts().secrecy.secret_in(text).is_some()
    }

    fn turn_of(&self, of: &SessionKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut busy = self.shared.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(busy.entry(of.clone()).or_default())
    }
}
