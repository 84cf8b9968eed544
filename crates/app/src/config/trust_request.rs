//! What a project asks to be confirmed, put before the user.

use std::path::{Path, PathBuf};

use lango_domain::text;
use lango_knowledge::secret_scan::mask_secrets;
use lango_team::{MarkdownFile, MarkdownFolder};
use serde_json::Value;

use super::project::{ProjectFolders, ProjectSettings};
use super::redaction::SchemaPosition;
use super::{ConfigError, LoadedConfig, Overrides, file, merge, project_file, trust};
use crate::environment::Environment;
use crate::settings::Settings;

/// Nobody reads more than this before confirming it.
const MAX_BYTES: usize = 256 * 1024;
/// So many pieces that look like keys may be masked; more of them could say something.
const MAX_MASKED: usize = 32;

/// Settings of a project's file that are not used by themselves, and the files that they name.
#[derive(Clone, Debug)]
pub struct TrustRequest {
    /// The project's file.
    pub file: PathBuf,
    /// Without keys, and without what looks like one.
    pub settings: Value,
    /// What models will read.
    pub files: Vec<PreviewFile>,
    fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewFile {
    /// Relative to the project.
    pub path: PathBuf,
    pub bytes: usize,
    /// All of it, without what looks like a key.
    pub text: String,
}

impl LoadedConfig {
    /// What the file of the working folder asks for; nothing where there is none that would need confirming.
    pub fn trust_request(
        environment: &Environment,
        overrides: &Overrides,
    ) -> Result<Option<TrustRequest>, ConfigError> {
        let Some(path) = project_file(environment, overrides) else {
            return Ok(None);
        };
        let (schema, root) = (Settings::schema(), &environment.working_folder);
        let layer = file::read_project_file(root, &path)?;
        merge::check_unknown_keys(&schema, std::slice::from_ref(&layer))?;
        let closed = ProjectSettings::new(&schema, &layer.node).guarded;
        let named = ProjectFolders::load(root, &closed);
        let Some(fingerprint) = named.fingerprint(&closed) else {
            let message = format!("this cannot be confirmed:\n{}", named.problems.join("\n"));
            let hint = "a project's files are regular ones below its folder; until this is changed, nothing of it is used";
            return Err(ConfigError::new(message).with_hint(hint));
        };
        let settings = SchemaPosition::at_root(&schema).redact(&closed.to_value());
        let mut shown = TrustPreview::default();
        shown.add_size(&settings.to_string(), 0)?;
        let mut files = Vec::new();
        for folder in named.folders.values() {
            for file in &folder.files {
                files.push(shown.add_file(root, folder, file)?);
            }
        }
        Ok(Some(TrustRequest {
            file: path,
            settings,
            files,
            fingerprint,
        }))
    }
}

impl TrustRequest {
    /// Remembers exactly this. Only for what the user was shown.
    pub fn confirm(self, environment: &Environment) -> Result<(), ConfigError> {
        trust::save(environment, &self.file, self.fingerprint)
    }
}

/// What somebody is shown before it is confirmed. What cannot be shown cannot be confirmed.
#[derive(Debug, Default)]
pub struct TrustPreview {
    bytes: usize,
    masked: usize,
}

impl TrustPreview {
    /// A whole text that a model will read: what looks like a key is masked, and hidden characters are written out.
    pub fn add_text(&mut self, content: &str) -> Result<String, ConfigError> {
        let masked = mask_secrets(content);
        self.add_size(content, masked.count)?;
        Ok(text::escape_hidden_chars(&masked.text))
    }

    fn add_file(
        &mut self,
        root: &Path,
        folder: &MarkdownFolder,
        file: &MarkdownFile,
    ) -> Result<PreviewFile, ConfigError> {
        let place = folder.full_path(file);
        let content = file.content.as_deref().unwrap_or_default();
        let path = place.strip_prefix(root).unwrap_or(&place).to_owned();
        Ok(PreviewFile {
            path,
            bytes: content.len(),
            text: self.add_text(&String::from_utf8_lossy(content))?,
        })
    }

    fn add_size(&mut self, content: &str, masked: usize) -> Result<(), ConfigError> {
        self.bytes += content.len();
        self.masked += masked;
        let refused = |why: String, hint: &str| {
            Err(ConfigError::new(format!("this cannot be confirmed: {why}")).with_hint(hint))
        };
        if self.bytes > MAX_BYTES {
            let why = format!(
                "nobody can look through more than {MAX_BYTES} bytes of settings and files"
            );
            return refused(
                why,
                "make the prompts, agents or skills of this folder shorter",
            );
        }
        if self.masked > MAX_MASKED {
            let why = format!("more than {MAX_MASKED} places look like keys, which are not shown");
            return refused(
                why,
                "take keys and passwords out of the files of this folder",
            );
        }
        Ok(())
    }
}
