//! The location of the store, retention and files of deleted sessions.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan};
use lango_domain::event::{Principal, SessionId};
use lango_domain::{StoreError, Stores};
use lango_store::{SqliteStore, StoreLocation};
use lango_tools::files::delete_turns;
use lango_tools::shell::delete_outputs;

use crate::config::LoadedConfig;
use crate::environment::Environment;

const STORE_FILE: &str = "lango.sqlite";

/// Returns the location of the store: in memory if there is no home folder.
pub(crate) fn store_location(loaded: &LoadedConfig, environment: &Environment) -> StoreLocation {
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

/// Returns the file of the store, or `None` for a store in memory.
pub fn store_file(loaded: &LoadedConfig, environment: &Environment) -> Option<PathBuf> {
    match store_location(loaded, environment) {
        StoreLocation::File(file) => Some(file),
        StoreLocation::Memory => None,
    }
}

/// Returns a warning if sessions are not saved and the settings do not ask for that.
pub(crate) fn unsaved_warning(loaded: &LoadedConfig, environment: &Environment) -> Option<String> {
    let has_path = loaded.settings.store.path.is_some();
    (!has_path && environment.data_folder().is_none()).then(|| {
        "sessions are not saved because there is no home folder; set HOME or LANGO_HOME, or `store.path` for the sessions alone"
            .to_owned()
    })
}

/// Deletes sessions older than `store.retentionDays` and returns their number.
pub async fn apply_retention(
    loaded: &LoadedConfig,
    environment: &Environment,
    stores: &Stores,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let Some(days) = loaded.settings.store.retention_days else {
        return Ok(0);
    };
    let hours = i64::from(days.get()).saturating_mul(24).min(24 * 365 * 100);
    let before = now.checked_sub(hours.hours()).unwrap_or(Timestamp::MIN);
    let mut count = 0;
    for principal in stores.catalog.principals().await? {
        let deleted = stores.catalog.prune(&principal, before).await?;
        deleted
            .iter()
            .for_each(|session| delete_session_files(environment, &principal, session));
        count += deleted.len();
    }
    Ok(count)
}

/// Deletes the files of a deleted session outside the store.
pub fn delete_session_files(environment: &Environment, principal: &Principal, session: &SessionId) {
    if let Some(data) = environment.data_folder() {
        delete_outputs(&data, principal, session);
        delete_turns(&data, principal, session);
    }
}

/// Replaces the content of the store with a backup. Returns the file in which the previous content
/// is kept.
pub async fn restore_store(
    loaded: &LoadedConfig,
    environment: &Environment,
    from: &Path,
    now: Timestamp,
) -> Result<PathBuf, StoreError> {
    let location = store_location(loaded, environment);
    let stamp = now.strftime("%Y%m%d-%H%M%S");
    let kept = location
        .path()
        .with_file_name(format!("before-restore-{stamp}.sqlite"));
    SqliteStore::restore(location, from, &kept).await?;
    Ok(kept)
}

/// Opens the stores in a file, apart from those of the settings.
pub fn open_stores_in(file: &Path) -> Result<Stores, StoreError> {
    Ok(SqliteStore::open(StoreLocation::File(file.to_path_buf()))?.stores())
}
