//! Assembles the turn hooks of memory and the knowledge base.

use lango_domain::Stores;
use lango_engine::TurnHooks;

use crate::assistant::StartError;
use crate::config::LoadedConfig;
use crate::connected_models::ConnectedModels;
use crate::environment::Environment;
use crate::recording::Recording;
use crate::{knowledge_base, memory};

/// Returns the turn hooks. A recorded or replayed turn gets no context from hooks, since a
/// recording must contain everything that a turn reads.
pub(crate) fn turn_hooks(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &Stores,
    recording: &Recording,
    connected: &ConnectedModels,
) -> Result<TurnHooks, StartError> {
    let mut hooks = memory::memory_hooks(
        loaded,
        environment,
        stores,
        recording,
        connected.selected.as_ref(),
    )?;
    if matches!(recording, Recording::Off) {
        let knowledge = knowledge_base::knowledge_hooks(
            loaded,
            environment,
            stores,
            connected.librarian.clone(),
        );
        hooks.context_sources.extend(knowledge.context_sources);
        hooks.after_turn.extend(knowledge.after_turn);
        hooks.advisor = knowledge.advisor;
    }
    Ok(hooks)
}
