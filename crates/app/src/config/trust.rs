//! Which projects the user has confirmed, by what their files said then.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lango_files::read_bounded;

use super::ConfigError;
use crate::environment::Environment;

const TRUST_FILE: &str = "trusted-projects.json";
/// More than anybody's list; a longer file is not ours.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// By the path of a project's file, the fingerprint of what was confirmed: there may be keys in it.
type TrustedProjects = BTreeMap<PathBuf, String>;

/// What was confirmed of the project with this file.
pub(super) fn trusted_fingerprint(environment: &Environment, path: &Path) -> Option<String> {
    load_all(environment).remove(path)
}

pub(super) fn save(
    environment: &Environment,
    path: &Path,
    fingerprint: String,
) -> Result<(), ConfigError> {
    let Some(folder) = environment.data_folder() else {
        return Err(ConfigError::new("there is no folder to remember this in")
            .with_hint("set HOME or LANGO_HOME"));
    };
    let mut all = load_all(environment);
    all.insert(path.to_owned(), fingerprint);
    write_atomically(
        &folder,
        &serde_json::to_vec_pretty(&all).unwrap_or_default(),
    )
    .map_err(|error| {
        ConfigError::new(format!(
            "cannot remember this in {}: {error}",
            folder.display()
        ))
    })
}

/// Nothing where there is no such file, or none that can be read.
fn load_all(environment: &Environment) -> TrustedProjects {
    let file = environment
        .data_folder()
        .map(|folder| folder.join(TRUST_FILE));
    let bytes = file.and_then(|file| read_bounded(&file, MAX_BYTES).ok());
    bytes
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// Beside it first, then over it: a crash leaves the old file or the new one.
fn write_atomically(folder: &Path, content: &[u8]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let beside = folder.join(format!(".{TRUST_FILE}-{}", uuid::Uuid::now_v7().simple()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, folder.join(TRUST_FILE)));
    if written.is_err() {
        // What went wrong first is what is told.
        let _ = fs::remove_file(&beside);
    }
    written
}
