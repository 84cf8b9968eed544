//! The projects that the user trusts, with a fingerprint of their settings and files.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lango_files::read_bounded;

use super::ConfigError;
use crate::environment::Environment;

const TRUST_FILE: &str = "trusted-projects.json";
/// The maximum size of the trust file, far above any real list.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Fingerprints by the path of a project's file. Only fingerprints are stored, since the settings
/// may contain secrets.
type TrustedProjects = BTreeMap<PathBuf, String>;

/// Returns the trusted fingerprint of the project with this file.
pub(super) fn trusted_fingerprint(environment: &Environment, path: &Path) -> Option<String> {
    load_all(environment).remove(path)
}

pub(super) fn save(
    environment: &Environment,
    path: &Path,
    fingerprint: String,
) -> Result<(), ConfigError> {
    let Some(folder) = environment.data_folder() else {
        return Err(
            ConfigError::new("cannot save the trusted project: there is no data folder")
                .with_hint("set HOME or LANGO_HOME"),
        );
    };
    let mut projects = load_all(environment);
    projects.insert(path.to_owned(), fingerprint);
    write_atomically(
        &folder,
        &serde_json::to_vec_pretty(&projects).unwrap_or_default(),
    )
    .map_err(|error| {
        ConfigError::new(format!(
            "cannot save the trusted project in {}: {error}",
            folder.display()
        ))
    })
}

/// Returns all trusted projects, or none if the file is missing or unreadable.
fn load_all(environment: &Environment) -> TrustedProjects {
    let file = environment
        .data_folder()
        .map(|folder| folder.join(TRUST_FILE));
    let bytes = file.and_then(|file| read_bounded(&file, MAX_BYTES).ok());
    bytes
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// Writes a temporary file and renames it, so that a crash leaves the old file or the new one.
fn write_atomically(folder: &Path, content: &[u8]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let temporary = folder.join(format!(".{TRUST_FILE}-{}", uuid::Uuid::now_v7().simple()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, folder.join(TRUST_FILE)));
    if written.is_err() {
        // Report the first error, not one of the cleanup.
        let _ = fs::remove_file(&temporary);
    }
    written
}
