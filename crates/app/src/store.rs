//! Where sessions are kept, as the settings say.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan};
use lango_domain::event::{Principal, SessionId};
use lango_store::{SqliteStore, SqliteStoreError, StoreLocation};
use lango_tools::files::delete_turns;
use lango_tools::shell::delete_outputs;

use crate::config::LoadedConfig;
use crate::environment::Environment;

const STORE_FILE: &str = "lango.sqlite";

/// The file that is in force; a machine without a home folder keeps nothing.
pub fn store_location(loaded: &LoadedConfig, environment: &Environment) -> StoreLocation {
    match &loaded.settings.store.path {
        Some(path) if path == Path::new(":memory:") => StoreLocation::Memory,
        Some(path) => StoreLocation::File(loaded.resolve(environment, "store.path", path)),
        None => environment
            .data_folder()
            .map_or(StoreLocation::Memory, |folder| {
                StoreLocation::File(folder.join(STORE_FILE))
            }),
    }
}

/// Said where nobody chose that nothing is kept.
pub(crate) fn unsaved_warning(loaded: &LoadedConfig, environment: &Environment) -> Option<String> {
    let is_chosen = loaded.settings.store.path.is_some();
    (!is_chosen && environment.data_folder().is_none()).then(|| {
        "nothing of this is kept: there is no home folder; set HOME or LANGO_HOME, or `store.path` for the sessions alone"
            .to_owned()
    })
}

/// Deletes what `store.retentionDays` says, and gives the number of sessions that went.
pub async fn apply_retention(
    loaded: &LoadedConfig,
    environment: &Environment,
    store: &SqliteStore,
    now: Timestamp,
) -> Result<usize, SqliteStoreError> {
    let Some(days) = loaded.settings.store.retention_days else {
        return Ok(0);
    };
    let hours = i64::from(days.get()).saturating_mul(24).min(24 * 365 * 100);
    let before = now.checked_sub(hours.hours()).unwrap_or(Timestamp::MIN);
    let mut count = 0;
    for principal in store.principals().await? {
        let gone = store.prune(&principal, before).await?;
        gone.iter()
            .for_each(|session| delete_session_files(environment, &principal, session));
        count += gone.len();
    }
    Ok(count)
}

/// What a deleted session left outside the store.
pub fn delete_session_files(environment: &Environment, principal: &Principal, session: &SessionId) {
    if let Some(data) = environment.data_folder() {
        delete_outputs(&data, principal, session);
        delete_turns(&data, principal, session);
    }
}

/// Where what a restore replaces is kept.
pub fn pre_restore_backup_path(place: &StoreLocation, now: Timestamp) -> PathBuf {
    let stamp = now.strftime("%Y%m%d-%H%M%S");
    place
        .path()
        .with_file_name(format!("before-restore-{stamp}.sqlite"))
}
