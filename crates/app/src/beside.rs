//! Everything that stands beside turns: what is recalled, what was learned, what is observed.

use lango_engine::TurnHooks;
use lango_store::SqliteStore;

use crate::config::Loaded;
use crate::conversation::{CannotStart, Connected};
use crate::environment::Environment;
use crate::tape::Tape;
use crate::{knowing, memory};

/// A recording holds what a turn took from outside, so nothing else reaches into turns that are recorded or played.
pub(crate) fn beside(
    loaded: &Loaded,
    environment: &Environment,
    store: &SqliteStore,
    tape: &Tape,
    connected: &Connected,
) -> Result<TurnHooks, CannotStart> {
    let mut beside = memory::beside(loaded, environment, store, tape, connected.chosen.as_ref())?;
    if matches!(tape, Tape::Off) {
        let known = knowing::beside(loaded, environment, store, connected.librarian.clone());
        beside.sources.extend(known.sources);
        beside.afterwards.extend(known.afterwards);
        beside.advisor = known.advisor;
    }
    Ok(beside)
}
