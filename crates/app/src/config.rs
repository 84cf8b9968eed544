//! Configuration: files, environment and `--set`, merged into [`Settings`] with the origin of every
//! value.
//!
//! Later layers win: the user's folder, the working folder (or only `--config`), the environment,
//! `--set`.

mod file;
mod merge;
mod project;
mod redaction;
mod reference;
mod trust;
mod trust_request;
mod variables;

use std::path::{Path, PathBuf};

use lango_domain::spanned::SpannedValue;
use lango_team::MarkdownFolder;
use serde_json::Value;

use crate::environment::Environment;
use crate::settings::{AgentSettings, Settings};
use merge::MergedConfig;
use project::{MarkdownFolders, ProjectFolders, ProjectSettings, UntrustedReason};
use redaction::SchemaPosition;

pub use merge::SettingOrigin;
pub use reference::{SettingDoc, commented_file, reference_page, setting_docs};
pub use trust_request::{PreviewFile, TrustPreview, TrustRequest};

/// An invalid configuration, with a hint for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    pub message: String,
    pub hint: Option<String>,
}

impl ConfigError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Configuration from the command line.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Read only this file.
    pub config: Option<PathBuf>,
    /// `key=value`, applied last.
    pub set: Vec<String>,
}

/// The loaded settings and their origins.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    pub settings: Settings,
    /// The files that were read, lowest precedence first.
    pub files: Vec<PathBuf>,
    /// Warnings about project settings that are not used.
    pub warnings: Vec<String>,
    /// The settings that name a secret which cannot be read from the vault.
    pub(crate) unresolved: Vec<ConfigError>,
    merged: MergedConfig,
    /// The project's file and the folders that it names, if they are trusted.
    project: Option<(PathBuf, MarkdownFolders)>,
    overrides: Overrides,
}

/// The source of the files of a folder in the settings.
pub(crate) enum FolderSource<'a> {
    /// A trusted project. Its files were read when their trust was checked.
    Project(&'a MarkdownFolder),
    /// The user's own folder.
    User(PathBuf),
}

/// One source of settings.
struct ConfigLayer {
    source: ConfigSource,
    node: SpannedValue,
}

/// The source of a layer.
#[derive(Clone, Debug)]
enum ConfigSource {
    File(PathBuf),
    Variable(String),
    Set(String),
}

/// Reads the group that three crates share.
fn agent_settings(merged: &MergedConfig) -> Result<AgentSettings, ConfigError> {
    Ok(AgentSettings {
        team: merged.deserialize_group("agent")?,
        engine: merged.deserialize_group("agent")?,
        models: merged.deserialize_group("agent")?,
    })
}

impl LoadedConfig {
    pub fn load(environment: &Environment, overrides: &Overrides) -> Result<Self, ConfigError> {
        let schema = Settings::schema();
        let files = config_files(environment, overrides.config.as_deref())?;
        let project = project_file(environment, overrides);
        let read = |path: &PathBuf| match &project {
            Some(own) if own == path => file::read_project_file(&environment.working_folder, path),
            _ => file::read_file(path),
        };
        let mut layers = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        layers.extend(variables::from_environment(&schema, environment));
        let assignments = overrides.set.iter();
        let assigned = assignments.map(|text| variables::from_assignment(&schema, text));
        layers.extend(assigned.collect::<Result<Vec<_>, _>>()?);
        merge::check_unknown_keys(&schema, &layers)?;
        let (mut folders, mut warnings) = (MarkdownFolders::new(), Vec::new());
        for layer in &mut layers {
            if matches!((&layer.source, &project), (ConfigSource::File(path), Some(own)) if path == own)
            {
                let (confirmed, warning) = remove_untrusted(&schema, environment, layer);
                folders = confirmed;
                warnings.extend(warning);
            }
        }
        let merged = MergedConfig::new(&schema, layers, environment)?;
        let settings = Settings {
            agent: agent_settings(&merged)?,
            providers: merged.deserialize_group("providers")?,
            prices: merged.deserialize_group("prices")?,
            server: merged.deserialize_group("server")?,
            store: merged.deserialize_group("store")?,
            security: merged.deserialize_group("security")?,
            tools: merged.deserialize_group("tools")?,
            embedding: merged.deserialize_group("embedding")?,
            rag: merged.deserialize_group("rag")?,
            graph: merged.deserialize_group("graph")?,
            observational_memory: merged.deserialize_group("observationalMemory")?,
            knowledge: merged.deserialize_group("knowledge")?,
            librarian: merged.deserialize_group("librarian")?,
            cron: merged.deserialize_group("cron")?,
            background: merged.deserialize_group("background")?,
            workflow: merged.deserialize_group("workflow")?,
            automation: merged.deserialize_group("automation")?,
            payment: merged.deserialize_group("payment")?,
            browser: merged.deserialize_group("browser")?,
            search: merged.deserialize_group("search")?,
            net: merged.deserialize_group("net")?,
            a2a: merged.deserialize_group("a2a")?,
            mcp: merged.deserialize_group("mcp")?,
        };
        Ok(Self {
            settings,
            files,
            warnings,
            unresolved: Vec::new(),
            merged,
            project: project.map(|path| (path, folders)),
            overrides: overrides.clone(),
        })
    }

    /// Loads the settings that apply in another folder as the workspace, with the same command line.
    pub(crate) fn for_folder(
        &self,
        environment: &Environment,
        folder: &Path,
    ) -> Result<(Self, Environment), ConfigError> {
        let mut other = environment.clone();
        other.working_folder = folder.to_path_buf();
        if let Some(home) = environment.get("LANGO_HOME") {
            let home = environment.working_folder.join(home);
            let home = home.to_string_lossy().into_owned();
            other.variables.insert("LANGO_HOME".to_owned(), home);
        }
        let mut overrides = self.overrides.clone();
        let own_file = overrides.config.take();
        overrides.config = own_file.map(|file| environment.working_folder.join(file));
        let workspace = format!("tools.workspace={}", folder.display());
        overrides.set.push(workspace);
        Ok((Self::load(&other, &overrides)?, other))
    }

    /// Returns the origin of a dotted key, or none for a default.
    pub fn origin(&self, key: &str) -> Option<&SettingOrigin> {
        self.merged.origin(key)
    }

    /// Returns the origins of a dotted key and all keys below it.
    pub fn origins_under(&self, key: &str) -> impl Iterator<Item = &SettingOrigin> {
        self.merged.origins_under(key)
    }

    /// Returns the source of the files of the folder that a setting names.
    pub(crate) fn folder_source(
        &self,
        environment: &Environment,
        key: &str,
        folder: &Path,
    ) -> Result<FolderSource<'_>, ConfigError> {
        match (&self.project, self.origin(key)) {
            (Some((own, folders)), Some(SettingOrigin::File { path, .. })) if own == path => {
                let unread_error = || {
                    ConfigError::new(format!("`{key}`: the folder of this project was not read"))
                };
                folders
                    .get(key)
                    .map(FolderSource::Project)
                    .ok_or_else(unread_error)
            }
            _ => Ok(FolderSource::User(self.resolve(environment, key, folder))),
        }
    }

    /// Resolves a path from the settings, relative to the file that sets it, or else to the working
    /// folder.
    pub fn resolve(&self, environment: &Environment, key: &str, path: &Path) -> PathBuf {
        let base = match self.origin(key) {
            Some(SettingOrigin::File { path, .. }) => path.parent(),
            _ => None,
        };
        base.map_or_else(
            || environment.working_folder.join(path),
            |base| base.join(path),
        )
    }
}

/// Removes untrusted settings from a project's layer and returns a warning. Returns the folders of
/// a trusted project.
fn remove_untrusted(
    schema: &Value,
    environment: &Environment,
    layer: &mut ConfigLayer,
) -> (MarkdownFolders, Option<String>) {
    let ConfigSource::File(path) = &layer.source else {
        return (MarkdownFolders::new(), None);
    };
    let settings = ProjectSettings::new(schema, &layer.node);
    if settings.is_all_allowed() {
        return (MarkdownFolders::new(), None);
    }
    let reason = match trust::trusted_fingerprint(environment, path) {
        None => UntrustedReason::Unconfirmed,
        Some(confirmed) => {
            let project = ProjectFolders::load(&environment.working_folder, &settings.guarded);
            if project.fingerprint(&settings.guarded).as_ref() == Some(&confirmed) {
                return (project.folders, None);
            }
            UntrustedReason::Changed
        }
    };
    let warning = settings.untrusted_warning(path, reason);
    layer.node = settings.allowed;
    (MarkdownFolders::new(), Some(warning))
}

/// The names of configuration files.
pub const FILE_NAMES: [&str; 4] = ["lango.toml", "lango.json", "lango.yaml", "lango.yml"];

fn config_files(
    environment: &Environment,
    config_argument: Option<&Path>,
) -> Result<Vec<PathBuf>, ConfigError> {
    if let Some(file) = config_argument {
        return Ok(vec![environment.working_folder.join(file)]);
    }
    // Written by `lango mcp add`, so that the user's own file stays as it is.
    let servers = environment.servers_file().filter(|file| file.exists());
    let mut files: Vec<PathBuf> = servers.into_iter().collect();
    for folder in environment
        .config_folder()
        .into_iter()
        .chain([environment.working_folder.clone()])
    {
        match file_in(&folder)? {
            Some(file) if !files.contains(&file) => files.push(file),
            _ => {}
        }
    }
    Ok(files)
}

/// Returns the configuration file of the working folder, unless it is the user's own or `--config`
/// is used.
fn project_file(environment: &Environment, overrides: &Overrides) -> Option<PathBuf> {
    let folder = &environment.working_folder;
    let is_own = overrides.config.is_some() || environment.config_folder().as_ref() == Some(folder);
    if is_own {
        None
    } else {
        file_in(folder).ok().flatten()
    }
}

fn file_in(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    // A dangling link counts as existing; reading it reports the error.
    let exists = |file: &PathBuf| file.symlink_metadata().is_ok();
    let mut present: Vec<PathBuf> = FILE_NAMES
        .iter()
        .map(|name| folder.join(name))
        .filter(exists)
        .collect();
    if present.len() > 1 {
        let names: Vec<String> = present
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        return Err(ConfigError::new(format!(
            "several configuration files in one folder: {}",
            names.join(", ")
        ))
        .with_hint("keep one of them, or choose one with --config"));
    }
    Ok(present.pop())
}

/// Returns the settings as JSON, with secrets and everything that looks like one redacted.
pub fn to_json(settings: &Settings) -> Value {
    let value = serde_json::to_value(settings).unwrap_or_default();
    SchemaPosition::at_root(&Settings::schema()).redact(&value)
}
