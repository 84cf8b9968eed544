//! From settings to the memory of conversations.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Tool;
use lango_engine::TurnHooks;
use lango_knowledge::Lazy;
use lango_knowledge::forget::Forgetter;
use lango_knowledge::memory::{MemoryParts, ObservationalMemory, Observer, tools};
use lango_knowledge::secret_scan::SecretScanner;
use lango_models::SelectedModel;
use lango_store::SqliteStore;

use crate::assistant::{StartError, jitter, known_secrets, observer_model};
use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::lazy_store::LazyStore;
use crate::recording::Recording;

/// The chronicler's tools, where memory is switched on (S82).
pub fn memory_tools(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &LazyStore,
) -> Vec<Tool> {
    if !loaded.settings.observational_memory.enabled {
        return Vec::new();
    }
    let (loaded, environment, stores) = (loaded.clone(), environment.clone(), stores.clone());
    tools(Lazy::new(move || {
        let store = stores.open().map_err(|trouble| trouble.to_string())?;
        open_memory(&loaded, &environment, store)
            .map(Arc::new)
            .map_err(|error| error.to_string())
    }))
}

/// The memory that is kept in this store. It can be looked at and forgotten where no model can be asked.
pub fn open_memory(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: SqliteStore,
) -> Result<ObservationalMemory, StartError> {
    let chosen = observer_model(loaded, environment, None).ok();
    build_memory(loaded, environment, store, chosen.as_ref())
}

/// What stands beside the turns of a conversation that asks this model. What is recorded must be the same when it is
/// played again, so nothing is recalled then.
pub(crate) fn memory_hooks(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: &SqliteStore,
    tape: &Recording,
    in_force: Option<&SelectedModel>,
) -> Result<TurnHooks, StartError> {
    let (true, Some(in_force)) = (loaded.settings.observational_memory.enabled, in_force) else {
        return Ok(TurnHooks::default());
    };
    let chosen = observer_model(loaded, environment, Some(in_force))?;
    let chronicle = Arc::new(build_memory(
        loaded,
        environment,
        store.clone(),
        Some(&chosen),
    )?);
    let mut beside = TurnHooks {
        after_turn: vec![Arc::clone(&chronicle) as _],
        ..TurnHooks::default()
    };
    if matches!(tape, Recording::Off) {
        beside.context_sources = vec![Arc::clone(&chronicle) as _];
        beside.digest_source = Some(chronicle);
    }
    Ok(beside)
}

fn build_memory(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: SqliteStore,
    chosen: Option<&SelectedModel>,
) -> Result<ObservationalMemory, StartError> {
    let observer = match chosen.filter(|chosen| !chosen.is_offline()) {
        None => Observer::Rules,
        Some(chosen) => {
            let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
            let model = chosen.connect_with_fallback(None, &jitter)?;
            Observer::Model {
                model,
                name: format!("{}/{}", chosen.provider, chosen.model),
            }
        }
    };
    Ok(ObservationalMemory::new(MemoryParts {
        memories: Arc::new(store.clone()),
        observer,
        settings: loaded.settings.observational_memory.clone(),
        secret_scanner: SecretScanner::with_known_secrets(known_secrets(loaded, environment)),
        forgetter: Forgetter::new(Arc::new(store)),
        now: Arc::new(Timestamp::now),
    }))
}
