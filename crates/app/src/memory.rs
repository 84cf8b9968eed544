//! Opens conversation memory, with its tools and hooks.

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::Stores;
use lango_domain::Tool;
use lango_domain::lazy::Lazy;
use lango_engine::TurnHooks;
use lango_graph::GraphBatchFormat;
use lango_memory::forget::Forgetter;
use lango_memory::observational_memory::{MemoryParts, ObservationalMemory, Observer, tools};
use lango_models::SelectedModel;
use lango_text::secret_scan::SecretScanner;

use crate::assistant::{StartError, known_secrets};
use crate::capabilities::CapabilityContext;
use crate::config::{ConfigError, LoadedConfig};
use crate::connected_models::{jitter, observer_model};
use crate::environment::Environment;
use crate::recording::Recording;

/// Returns the chronicler's tools, if memory is enabled (S82).
pub(crate) fn memory_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    if !context.loaded.settings.observational_memory.enabled {
        return Ok(Vec::new());
    }
    let (loaded, environment) = (context.loaded.clone(), context.environment.clone());
    let stores = context.stores.clone();
    Ok(tools(Lazy::new(move || {
        let stores = stores.open().map_err(|error| error.to_string())?;
        open_memory(&loaded, &environment, stores)
            .map(Arc::new)
            .map_err(|error| error.to_string())
    })))
}

/// Opens the memory in these stores. Works without a model, so that memories can be listed and
/// forgotten.
pub fn open_memory(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: Stores,
) -> Result<ObservationalMemory, StartError> {
    let selected = observer_model(loaded, environment, None).ok();
    build_memory(loaded, environment, stores, selected.as_ref())
}

/// Returns the turn hooks of memory. A recorded turn recalls nothing, since it must be the same in
/// a replay.
pub(crate) fn memory_hooks(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &Stores,
    recording: &Recording,
    default_model: Option<&SelectedModel>,
) -> Result<TurnHooks, StartError> {
    let (true, Some(default_model)) = (loaded.settings.observational_memory.enabled, default_model)
    else {
        return Ok(TurnHooks::default());
    };
    let selected = observer_model(loaded, environment, Some(default_model))?;
    let memory = Arc::new(build_memory(
        loaded,
        environment,
        stores.clone(),
        Some(&selected),
    )?);
    let mut hooks = TurnHooks {
        after_turn: vec![Arc::clone(&memory) as _],
        ..TurnHooks::default()
    };
    if matches!(recording, Recording::Off) {
        hooks.context_sources = vec![Arc::clone(&memory) as _];
        hooks.digest_source = Some(memory);
    }
    Ok(hooks)
}

/// Returns the forgetter of everything that was learned in these stores.
pub fn open_forgetter(stores: Stores) -> Forgetter {
    Forgetter::new(stores.learned, Arc::new(GraphBatchFormat))
}

fn build_memory(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: Stores,
    selected: Option<&SelectedModel>,
) -> Result<ObservationalMemory, StartError> {
    let observer = match selected.filter(|selected| !selected.is_offline()) {
        None => Observer::Rules,
        Some(selected) => {
            let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
            let model = selected.connect_with_fallback(None, &jitter)?;
            Observer::Model {
                model,
                name: format!("{}/{}", selected.provider, selected.model),
            }
        }
    };
    Ok(ObservationalMemory::new(MemoryParts {
        memories: Arc::clone(&stores.memory),
        observer,
        settings: loaded.settings.observational_memory.clone(),
        secret_scanner: SecretScanner::with_known_secrets(known_secrets(loaded, environment)),
        forgetter: open_forgetter(stores),
        now: Arc::new(Timestamp::now),
    }))
}
