//! From settings to the memory of conversations.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::Tool;
use lango_domain::event::{Body, Principal};
use lango_domain::graph::{GraphStore, Source, SourceRange};
use lango_domain::memory::{Forgets, Memory};
use lango_domain::session::{Answer, Reach, SessionKey, SessionStore, StoreError};
use lango_engine::Beside;
use lango_knowledge::Lazily;
use lango_knowledge::memory::{Chronicle, Observer, Parts, tools};
use lango_knowledge::secrecy::Secrecy;
use lango_models::Chosen;
use lango_store::SqliteStore;

use crate::config::Loaded;
use crate::conversation::{CannotStart, jitter, known_secrets, observing_model};
use crate::environment::Environment;
use crate::stores::Stores;
use crate::tape::Tape;

/// The chronicler's tools, where memory is switched on (S82).
pub fn memory_tools(loaded: &Loaded, environment: &Environment, stores: &Stores) -> Vec<Tool> {
    if !loaded.settings.observational_memory.enabled {
        return Vec::new();
    }
    let (loaded, environment, stores) = (loaded.clone(), environment.clone(), stores.clone());
    tools(Lazily::new(move || {
        let store = stores.open().map_err(|trouble| trouble.to_string())?;
        chronicle(&loaded, &environment, store).map(Arc::new).map_err(|error| error.to_string())
    }))
}

/// The memory that is kept in this store. It can be looked at and forgotten where no model can be asked.
pub fn chronicle(
    loaded: &Loaded,
    environment: &Environment,
    store: SqliteStore,
) -> Result<Chronicle, CannotStart> {
    let chosen = observing_model(loaded, environment, None).ok();
    put_together(loaded, environment, store, chosen.as_ref())
}

/// What stands beside the turns of a conversation that asks this model. What is recorded must be the same when it is
/// played again, so nothing is recalled then.
pub(crate) fn beside(
    loaded: &Loaded,
    environment: &Environment,
    store: &SqliteStore,
    tape: &Tape,
    in_force: Option<&Chosen>,
) -> Result<Beside, CannotStart> {
    let (true, Some(in_force)) = (loaded.settings.observational_memory.enabled, in_force) else {
        return Ok(Beside::default());
    };
    let chosen = observing_model(loaded, environment, Some(in_force))?;
    let chronicle = Arc::new(put_together(loaded, environment, store.clone(), Some(&chosen))?);
    let mut beside = Beside { afterwards: vec![Arc::clone(&chronicle) as _], ..Beside::default() };
    if matches!(tape, Tape::Off) {
        beside.sources = vec![Arc::clone(&chronicle) as _];
        beside.digests = Some(chronicle);
    }
    Ok(beside)
}

fn put_together(
    loaded: &Loaded,
    environment: &Environment,
    store: SqliteStore,
    chosen: Option<&Chosen>,
) -> Result<Chronicle, CannotStart> {
    let observer = match chosen.filter(|chosen| !chosen.is_offline()) {
        None => Observer::Rules,
        Some(chosen) => {
            let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
            let model = chosen.connect_with_fallback(None, &jitter)?;
            Observer::Model { model, name: format!("{}/{}", chosen.provider, chosen.model) }
        }
    };
    Ok(Chronicle::new(Parts {
        memories: Arc::new(store.clone()),
        observer,
        settings: loaded.settings.observational_memory.clone(),
        secrecy: Secrecy::knowing(known_secrets(loaded, environment)),
        forgets: vec![Arc::new(FactsOfTurns(store))],
        now: Arc::new(Timestamp::now),
    }))
}

/// Facts that were told in the turns which a forgotten memory comes from go with it.
struct FactsOfTurns(SqliteStore);

impl Forgets for FactsOfTurns {
    fn forget<'a>(&'a self, of: &'a Principal, gone: &'a [Memory]) -> Answer<'a, ()> {
        async move {
            for memory in gone {
                self.forget_one(of, memory).await?;
            }
            Ok(())
        }
        .boxed()
    }
}

impl FactsOfTurns {
    async fn forget_one(&self, of: &Principal, memory: &Memory) -> Result<(), StoreError> {
        let key = SessionKey { session: &memory.session, principal: of };
        let log = self.0.load(key, Reach::Everything).await?;
        let cited = log.iter().filter(|event| memory.sources.contains(&event.seq));
        let turns: HashSet<_> = cited.map(|event| &event.turn).collect();
        for event in log.iter().filter(|event| turns.contains(&event.turn)) {
            if let Body::ToolCall { id, .. } = &event.body {
                let source = Source::Session { session: memory.session.clone(), event: id.to_string() };
                GraphStore::forget(&self.0, of, SourceRange::One(source)).await?;
            }
        }
        Ok(())
    }
}
