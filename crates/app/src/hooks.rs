//! Everything that stands beside turns: what is recalled, what was learned, what is observed.

use lango_engine::TurnHooks;
use lango_store::SqliteStore;

use crate::assistant::{ConnectedModels, StartError};
use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::recording::Recording;
use crate::{knowledge_base, memory};

/// A recording holds what a turn took from outside, so nothing else reaches into turns that are recorded or played.
pub(crate) fn turn_hooks(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: &SqliteStore,
    tape: &Recording,
    connected: &ConnectedModels,
) -> Result<TurnHooks, StartError> {
    let mut beside = memory::memory_hooks(
        loaded,
        environment,
        store,
        tape,
        connected.selected.as_ref(),
    )?;
    if matches!(tape, Recording::Off) {
        let known = knowledge_base::knowledge_hooks(
            loaded,
            environment,
            store,
            connected.librarian.clone(),
        );
        beside.context_sources.extend(known.context_sources);
        beside.after_turn.extend(known.after_turn);
        beside.advisor = known.advisor;
    }
    Ok(beside)
}
