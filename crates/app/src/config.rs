//! Configuration: files, environment and `--set`, merged into [`Settings`] with every value's origin remembered.
//!
//! Later wins: the user's folder, the working folder (or only `--config`), the environment, `--set`.

mod file;
mod merge;
mod reference;
mod trust;
mod variables;

use std::path::{Path, PathBuf};

use lango_domain::located::Node;
use serde_json::Value;

use crate::environment::Environment;
use crate::settings::{Agent, Settings};
use merge::Merged;

pub use merge::Origin;
pub use reference::{Entry, commented_file, entries, reference_page};

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
pub struct Loaded {
    pub settings: Settings,
    /// The files that were read, weakest first.
    pub files: Vec<PathBuf>,
    /// What a project's file says and is not used.
    pub warnings: Vec<String>,
    merged: Merged,
}

/// One source of settings.
struct Layer {
    source: Source,
    node: Node,
}

/// Who says so.
#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Variable(String),
    Set(String),
}

impl Loaded {
    pub fn read(environment: &Environment, overrides: &Overrides) -> Result<Self, ConfigError> {
        let schema = Settings::schema();
        let files = files(environment, overrides.config.as_deref())?;
        let mut layers = files.iter().map(|path| file::read(path)).collect::<Result<Vec<_>, _>>()?;
        let project = project_file(environment, overrides);
        let mut warnings = Vec::new();
        for (path, layer) in files.iter().zip(&mut layers).filter(|(path, _)| Some(*path) == project.as_ref())
        {
            warnings.extend(trust::withhold(environment, path, &mut layer.node));
        }
        layers.extend(variables::from_environment(&schema, environment));
        for assignment in &overrides.set {
            layers.push(variables::from_assignment(&schema, assignment)?);
        }
        let merged = Merged::of(&schema, layers, environment)?;
        let agent = Agent {
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
        Ok(Self { settings, files, warnings, merged })
    }

    /// Confirms what the file of the working folder says about tools and permission; gives the file and those settings.
    pub fn trust(environment: &Environment, overrides: &Overrides) -> Result<(PathBuf, Value), ConfigError> {
        let Some(path) = project_file(environment, overrides) else {
            return Err(ConfigError::new("there is no configuration file in this folder that would need it"));
        };
        let said = trust::confirm(environment, &path, &file::read(&path)?.node)?;
        Ok((path, said))
    }

    /// Where the value of a dotted key was set; nothing for a default.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.merged.origin(key)
    }

    /// Where a dotted key, or what stands below it, was set.
    pub fn origins_under(&self, key: &str) -> impl Iterator<Item = &Origin> {
        self.merged.origins_under(key)
    }

    /// A path from the settings, relative to the file it was written in, else to the working folder.
    pub fn resolve(&self, environment: &Environment, key: &str, path: &Path) -> PathBuf {
        let base = match self.origin(key) {
            Some(Origin::File { path, .. }) => path.parent(),
            _ => None,
        };
        base.map_or_else(|| environment.working_folder.join(path), |base| base.join(path))
    }
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

/// The settings as JSON, for people and scripts.
pub fn to_json(settings: &Settings) -> Value {
    serde_json::to_value(settings).unwrap_or_default()
}
