//! The confirmations of the user: the command line of each server, and each tool by its content. Anything
//! else of a server reaches no model (B150).

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::definition::ToolDefinition;
use crate::manifest::Manifest;
use crate::private_file;
use crate::settings::ServerKey;

const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The file of confirmed servers.
#[derive(Clone, Debug)]
pub struct TrustFile {
    path: PathBuf,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct TrustedServers {
    #[serde(default)]
    servers: BTreeMap<String, TrustedServer>,
}

#[derive(Clone, Serialize, Deserialize)]
struct TrustedServer {
    /// Identifies the command line or the URL.
    launch: String,
    /// The fingerprints of tools by their names.
    tools: BTreeMap<String, String>,
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// Never confirmed.
    Unconfirmed,
    /// Its command line or URL is not the confirmed one.
    LaunchChanged,
    /// Confirmed. Single tools may still be new or changed.
    Trusted,
}

/// A difference between a tool and what was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustChange {
    Same,
    New,
    Changed,
}

impl TrustFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn state(&self, key: &ServerKey, launch: &str) -> TrustState {
        match read(&self.path).servers.get(key.as_str()) {
            None => TrustState::Unconfirmed,
            Some(server) if server.launch != launch => TrustState::LaunchChanged,
            Some(_) => TrustState::Trusted,
        }
    }

    /// Compares tools with what was confirmed.
    pub fn compare<'m>(
        &self,
        key: &ServerKey,
        manifest: &'m Manifest,
    ) -> Vec<(&'m ToolDefinition, TrustChange)> {
        let trusted = read(&self.path);
        let server = trusted
            .servers
            .get(key.as_str())
            .filter(|server| server.launch == manifest.launch);
        let change =
            |tool: &ToolDefinition| match server.and_then(|server| server.tools.get(&tool.name)) {
                None => TrustChange::New,
                Some(fingerprint) if *fingerprint == tool.fingerprint() => TrustChange::Same,
                Some(_) => TrustChange::Changed,
            };
        manifest
            .tools
            .iter()
            .map(|tool| (tool, change(tool)))
            .collect()
    }

    /// Confirms a server with exactly these tools. Call it only after the user has seen them.
    pub fn confirm(&self, key: &ServerKey, manifest: &Manifest) -> io::Result<()> {
        let fingerprints = manifest
            .tools
            .iter()
            .map(|tool| (tool.name.clone(), tool.fingerprint()));
        let server = TrustedServer {
            launch: manifest.launch.clone(),
            tools: fingerprints.collect(),
        };
        self.change(|trusted| _ = trusted.servers.insert(key.to_string(), server))
    }

    /// Forgets a server.
    pub fn remove(&self, key: &ServerKey) -> io::Result<()> {
        self.change(|trusted| _ = trusted.servers.remove(key.as_str()))
    }

    fn change(&self, edit: impl FnOnce(&mut TrustedServers)) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            private_file::create_folder(folder)?;
        }
        // Held while the file is read and rewritten, so that another process loses no entry.
        let lock = fs::File::create(self.path.with_extension("lock"))?;
        lock.lock()?;
        let mut trusted = read(&self.path);
        edit(&mut trusted);
        private_file::write(&self.path, &serde_json::to_vec_pretty(&trusted)?)
    }
}

/// Reads the file. Errors, links and files that others can write count as nothing confirmed.
fn read(path: &Path) -> TrustedServers {
    let read = || -> io::Result<TrustedServers> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.permissions().mode() & 0o022 != 0 {
            return Ok(TrustedServers::default());
        }
        let mut content = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut content)?;
        Ok(serde_json::from_slice(&content)?)
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            title: None,
            description: description.to_owned(),
            input_schema: json!({ "type": "object" }),
            output_schema: None,
            hints: None,
        }
    }

    fn manifest(launch: &str, tools: Vec<ToolDefinition>) -> Manifest {
        Manifest {
            launch: launch.to_owned(),
            revision: "2025-11-25".to_owned(),
            server: "x".to_owned(),
            tools,
            left_out: Vec::new(),
            has_resources: false,
            prompts: Vec::new(),
        }
    }

    /// B150
    #[test]
    fn a_changed_tool_is_out_until_it_is_confirmed() {
        let folder = tempfile::tempdir().unwrap();
        let file = TrustFile::new(folder.path().join("data/trusted.json"));
        let key = ServerKey::parse("a").unwrap();
        let first = manifest("l", vec![tool("x", "reads"), tool("y", "writes")]);
        assert_eq!(file.state(&key, "l"), TrustState::Unconfirmed);
        file.confirm(&key, &first).unwrap();
        assert_eq!(file.state(&key, "l"), TrustState::Trusted);
        assert_eq!(file.state(&key, "other"), TrustState::LaunchChanged);
        let later = manifest(
            "l",
            vec![tool("x", "reads"), tool("y", "writes more"), tool("z", "")],
        );
        let changes: Vec<TrustChange> = file
            .compare(&key, &later)
            .into_iter()
            .map(|(_, change)| change)
            .collect();
        assert_eq!(
            changes,
            [TrustChange::Same, TrustChange::Changed, TrustChange::New]
        );
        let moved = manifest("other", vec![tool("x", "reads")]);
        assert_eq!(file.compare(&key, &moved)[0].1, TrustChange::New);
        file.remove(&key).unwrap();
        assert_eq!(file.state(&key, "l"), TrustState::Unconfirmed);
    }

    #[test]
    fn errors_count_as_not_confirmed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted.json");
        let (file, key) = (TrustFile::new(path.clone()), ServerKey::parse("a").unwrap());
        file.confirm(&key, &manifest("l", Vec::new())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(file.state(&key, "l"), TrustState::Unconfirmed);
        fs::write(&path, "{ not json").unwrap();
        assert_eq!(file.state(&key, "l"), TrustState::Unconfirmed);
    }
}
