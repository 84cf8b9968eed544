//! What a project asks to be confirmed, put before the user.

use std::path::{Path, PathBuf};

use lango_domain::text;
use lango_knowledge::secret_scan::masked;
use lango_team::{MarkdownFile, MarkdownFolder};
use serde_json::Value;

use super::hiding::Placed;
use super::project::{Named, Said};
use super::{ConfigError, LoadedConfig, Overrides, file, merge, project_file, trust};
use crate::environment::Environment;
use crate::settings::Settings;

/// Nobody reads more than this before confirming it.
const MOST_BYTES: usize = 256 * 1024;
/// So many pieces that look like keys may be masked; more of them could say something.
const MOST_MASKED: usize = 32;

/// Settings of a project's file that are not used by themselves, and the files that they name.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The project's file.
    pub file: PathBuf,
    /// Without keys, and without what looks like one.
    pub settings: Value,
    /// What models will read.
    pub files: Vec<ShownFile>,
    fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFile {
    /// Relative to the project.
    pub path: PathBuf,
    pub bytes: usize,
    /// All of it, without what looks like a key.
    pub text: String,
}

impl LoadedConfig {
    /// What the file of the working folder asks for; nothing where there is none that would need confirming.
    pub fn asked(environment: &Environment, overrides: &Overrides) -> Result<Option<Asked>, ConfigError> {
        let Some(path) = project_file(environment, overrides) else { return Ok(None) };
        let (schema, root) = (Settings::schema(), &environment.working_folder);
        let layer = file::read_of_project(root, &path)?;
        merge::refuse_unknown_keys(&schema, std::slice::from_ref(&layer))?;
        let closed = Said::of(&schema, &layer.node).closed;
        let named = Named::read(root, &closed);
        let Some(fingerprint) = named.fingerprint(&closed) else {
            let message = format!("this cannot be confirmed:\n{}", named.problems.join("\n"));
            let hint = "a project's files are regular ones below its folder; until this is changed, nothing of it is used";
            return Err(ConfigError::new(message).with_hint(hint));
        };
        let settings = Placed::at_root(&schema).without_secrets(&closed.to_value());
        let mut shown = Shown::default();
        shown.count(&settings.to_string(), 0)?;
        let mut files = Vec::new();
        for folder in named.folders.values() {
            for file in &folder.files {
                files.push(shown.file(root, folder, file)?);
            }
        }
        Ok(Some(Asked { file: path, settings, files, fingerprint }))
    }
}

impl Asked {
    /// Remembers exactly this. Only for what the user was shown.
    pub fn confirm(self, environment: &Environment) -> Result<(), ConfigError> {
        trust::confirm(environment, &self.file, self.fingerprint)
    }
}

/// What somebody is shown before it is confirmed. What cannot be shown cannot be confirmed.
#[derive(Debug, Default)]
pub struct Shown {
    bytes: usize,
    masked: usize,
}

impl Shown {
    /// A whole text that a model will read: what looks like a key is masked, and hidden characters are written out.
    pub fn text(&mut self, content: &str) -> Result<String, ConfigError> {
        let masked = masked(content);
        self.count(content, masked.count)?;
        Ok(text::with_hidden_escaped(&masked.text))
    }

    fn file(
        &mut self,
        root: &Path,
        folder: &MarkdownFolder,
        file: &MarkdownFile,
    ) -> Result<ShownFile, ConfigError> {
        let place = folder.place_of(file);
        let content = file.content.as_deref().unwrap_or_default();
        let path = place.strip_prefix(root).unwrap_or(&place).to_owned();
        Ok(ShownFile { path, bytes: content.len(), text: self.text(&String::from_utf8_lossy(content))? })
    }

    fn count(&mut self, content: &str, masked: usize) -> Result<(), ConfigError> {
        self.bytes += content.len();
        self.masked += masked;
        let refused = |why: String, hint: &str| {
            Err(ConfigError::new(format!("this cannot be confirmed: {why}")).with_hint(hint))
        };
        if self.bytes > MOST_BYTES {
            let why = format!("nobody can look through more than {MOST_BYTES} bytes of settings and files");
            return refused(why, "make the prompts, agents or skills of this folder shorter");
        }
        if self.masked > MOST_MASKED {
            let why = format!("more than {MOST_MASKED} places look like keys, which are not shown");
            return refused(why, "take keys and passwords out of the files of this folder");
        }
        Ok(())
    }
}
