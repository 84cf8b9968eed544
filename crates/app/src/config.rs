//! Configuration: files, environment and `--set`, merged into [`Settings`] with every value's origin remembered.
//!
//! Later wins: the user's folder, the working folder (or only `--config`), the environment, `--set`.

mod asked;
mod file;
mod hiding;
mod merge;
mod project;
mod reference;
mod trust;
mod variables;

use std::path::{Path, PathBuf};

use lango_domain::spanned::SpannedValue;
use lango_team::MarkdownFolder;
use serde_json::Value;

use crate::environment::Environment;
use crate::settings::{AgentSettings, Settings};
use hiding::Placed;
use merge::Merged;
use project::{Folders, Named, Said, Withheld};

pub use asked::{Asked, Shown, ShownFile};
pub use merge::SettingOrigin;
pub use reference::{SettingDoc, commented_file, setting_docs, reference_page};

/// A configuration that cannot be used, said to whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    pub message: String,
    pub hint: Option<String>,
}

impl ConfigError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What the command line says about configuration.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Read this file and no other.
    pub config: Option<PathBuf>,
    /// `key=value`, applied last.
    pub set: Vec<String>,
}

/// Settings, and where they come from.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    pub settings: Settings,
    /// The files that were read, weakest first.
    pub files: Vec<PathBuf>,
    /// What a project's file says and is not used.
    pub warnings: Vec<String>,
    merged: Merged,
    /// The project's own file and the folders that it names, as they were confirmed.
    project: Option<(PathBuf, Folders)>,
}

/// Where the files of a folder in the settings come from.
pub(crate) enum FilesOf<'a> {
    /// From a project that was confirmed: they were read when that was checked.
    Project(&'a MarkdownFolder),
    /// From the user.
    User(PathBuf),
}

/// One source of settings.
struct Layer {
    source: ConfigSource,
    node: SpannedValue,
}

/// Who says so.
#[derive(Clone, Debug)]
enum ConfigSource {
    File(PathBuf),
    Variable(String),
    Set(String),
}

impl LoadedConfig {
    pub fn read(environment: &Environment, overrides: &Overrides) -> Result<Self, ConfigError> {
        let schema = Settings::schema();
        let files = files(environment, overrides.config.as_deref())?;
        let project = project_file(environment, overrides);
        let read = |path: &PathBuf| match &project {
            Some(own) if own == path => file::read_of_project(&environment.working_folder, path),
            _ => file::read(path),
        };
        let mut layers = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        layers.extend(variables::from_environment(&schema, environment));
        for assignment in &overrides.set {
            layers.push(variables::from_assignment(&schema, assignment)?);
        }
        merge::refuse_unknown_keys(&schema, &layers)?;
        let (mut folders, mut warnings) = (Folders::new(), Vec::new());
        for layer in &mut layers {
            if matches!((&layer.source, &project), (ConfigSource::File(path), Some(own)) if path == own) {
                let (confirmed, warning) = withhold(&schema, environment, layer);
                folders = confirmed;
                warnings.extend(warning);
            }
        }
        let merged = Merged::of(&schema, layers, environment)?;
        let agent = AgentSettings {
            team: merged.read("agent")?,
            engine: merged.read("agent")?,
            models: merged.read("agent")?,
        };
        let settings = Settings {
            agent,
            providers: merged.read("providers")?,
            prices: merged.read("prices")?,
            server: merged.read("server")?,
            store: merged.read("store")?,
            security: merged.read("security")?,
            tools: merged.read("tools")?,
            embedding: merged.read("embedding")?,
            rag: merged.read("rag")?,
            graph: merged.read("graph")?,
            observational_memory: merged.read("observationalMemory")?,
            knowledge: merged.read("knowledge")?,
            librarian: merged.read("librarian")?,
            search: merged.read("search")?,
            net: merged.read("net")?,
            a2a: merged.read("a2a")?,
        };
        Ok(Self { settings, files, warnings, merged, project: project.map(|path| (path, folders)) })
    }

    /// Where the value of a dotted key was set; nothing for a default.
    pub fn origin(&self, key: &str) -> Option<&SettingOrigin> {
        self.merged.origin(key)
    }

    /// Where a dotted key, or what stands below it, was set.
    pub fn origins_under(&self, key: &str) -> impl Iterator<Item = &SettingOrigin> {
        self.merged.origins_under(key)
    }

    /// Where the files of the folder that a setting names come from.
    pub(crate) fn files_of(
        &self,
        environment: &Environment,
        key: &str,
        folder: &Path,
    ) -> Result<FilesOf<'_>, ConfigError> {
        match (&self.project, self.origin(key)) {
            (Some((own, folders)), Some(SettingOrigin::File { path, .. })) if own == path => {
                let unread = || ConfigError::new(format!("`{key}`: this project's folder was not read"));
                folders.get(key).map(FilesOf::Project).ok_or_else(unread)
            }
            _ => Ok(FilesOf::User(self.resolve(environment, key, folder))),
        }
    }

    /// A path from the settings, relative to the file it was written in, else to the working folder.
    pub fn resolve(&self, environment: &Environment, key: &str, path: &Path) -> PathBuf {
        let base = match self.origin(key) {
            Some(SettingOrigin::File { path, .. }) => path.parent(),
            _ => None,
        };
        base.map_or_else(|| environment.working_folder.join(path), |base| base.join(path))
    }
}

/// Takes out of a project's layer what was not confirmed, and says so; gives the folders of one that was.
fn withhold(schema: &Value, environment: &Environment, layer: &mut Layer) -> (Folders, Option<String>) {
    let ConfigSource::File(path) = &layer.source else { return (Folders::new(), None) };
    let said = Said::of(schema, &layer.node);
    if said.is_all_open() {
        return (Folders::new(), None);
    }
    let why = match trust::confirmed(environment, path) {
        None => Withheld::Unconfirmed,
        Some(confirmed) => {
            let named = Named::read(&environment.working_folder, &said.closed);
            if named.fingerprint(&said.closed).as_ref() == Some(&confirmed) {
                return (named.folders, None);
            }
            Withheld::Changed
        }
    };
    let warning = said.withheld(path, why);
    layer.node = said.open;
    (Folders::new(), Some(warning))
}

/// The names a configuration file may have.
pub const FILE_NAMES: [&str; 4] = ["lango.toml", "lango.json", "lango.yaml", "lango.yml"];

fn files(environment: &Environment, named: Option<&Path>) -> Result<Vec<PathBuf>, ConfigError> {
    if let Some(named) = named {
        return Ok(vec![environment.working_folder.join(named)]);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in environment.config_folder().into_iter().chain([environment.working_folder.clone()]) {
        match file_in(&folder)? {
            Some(file) if !files.contains(&file) => files.push(file),
            _ => {}
        }
    }
    Ok(files)
}

/// The file of the working folder, where it is not the user's own and was not named.
fn project_file(environment: &Environment, overrides: &Overrides) -> Option<PathBuf> {
    let folder = &environment.working_folder;
    let is_own = overrides.config.is_some() || environment.config_folder().as_ref() == Some(folder);
    if is_own { None } else { file_in(folder).ok().flatten() }
}

fn file_in(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    // A link that leads nowhere is there, and will be reported when it is read.
    let is_there = |file: &PathBuf| file.symlink_metadata().is_ok();
    let mut present: Vec<PathBuf> =
        FILE_NAMES.iter().map(|name| folder.join(name)).filter(is_there).collect();
    if present.len() > 1 {
        let names: Vec<String> = present.iter().map(|file| file.display().to_string()).collect();
        return Err(ConfigError::new(format!(
            "more than one configuration file in one folder: {}",
            names.join(", ")
        ))
        .with_hint("keep one of them, or name the one to read with --config"));
    }
    Ok(present.pop())
}

/// The settings as JSON, for people and scripts: without keys, and without what looks like one.
pub fn to_json(settings: &Settings) -> Value {
    let value = serde_json::to_value(settings).unwrap_or_default();
    Placed::at_root(&Settings::schema()).without_secrets(&value)
}
