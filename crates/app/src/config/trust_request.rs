//! The settings and files of a project that the user must confirm.

use std::path::{Path, PathBuf};

use lango_team::{MarkdownFile, MarkdownFolder};
use lango_text::sanitize;
use lango_text::secret_scan::mask_secrets;
use serde_json::Value;

use super::project::{ProjectFolders, ProjectSettings};
use super::redaction::SchemaPosition;
use super::{ConfigError, LoadedConfig, Overrides, file, merge, project_file, trust};
use crate::environment::Environment;
use crate::settings::Settings;

/// The maximum size of a request. A user cannot review more.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of masked secrets. More of them could hide a text from the user.
const MAX_MASKED: usize = 32;

/// The settings of a project's file that need trust, and the files that they name.
#[derive(Clone, Debug)]
pub struct TrustRequest {
    /// The project's file.
    pub file: PathBuf,
    /// The settings, with secrets and everything that looks like one redacted.
    pub settings: Value,
    /// The files that models will read.
    pub files: Vec<PreviewFile>,
    fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewFile {
    /// Relative to the project.
    pub path: PathBuf,
    pub bytes: usize,
    /// The whole text, with secrets masked.
    pub text: String,
}

impl LoadedConfig {
    /// Returns the request of the working folder, or none if there is no project file.
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
        let guarded = ProjectSettings::new(&schema, &layer.node).guarded;
        let folders = ProjectFolders::load(root, &guarded);
        let Some(fingerprint) = folders.fingerprint(&guarded) else {
            let message = format!(
                "these files cannot be trusted:\n{}",
                folders.problems.join("\n")
            );
            let hint = "the files of a project must be regular files in its folder; until then, none of them is used";
            return Err(ConfigError::new(message).with_hint(hint));
        };
        let settings = SchemaPosition::at_root(&schema).redact(&guarded.to_value());
        let mut preview = TrustPreview::default();
        preview.add_size(&settings.to_string(), 0)?;
        let mut files = Vec::new();
        for folder in folders.folders.values() {
            for file in &folder.files {
                files.push(preview.add_file(root, folder, file)?);
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
    /// Saves the trust in exactly these settings and files. Call it only after the user saw them.
    pub fn confirm(self, environment: &Environment) -> Result<(), ConfigError> {
        trust::save(environment, &self.file, self.fingerprint)
    }
}

/// Collects the texts that the user sees before confirming, within limits. A text that cannot be
/// shown cannot be confirmed.
#[derive(Debug, Default)]
pub struct TrustPreview {
    bytes: usize,
    masked: usize,
}

impl TrustPreview {
    /// Adds a text that a model will read. Returns it with secrets masked and hidden characters
    /// escaped.
    pub fn add_text(&mut self, content: &str) -> Result<String, ConfigError> {
        let masked = mask_secrets(content);
        self.add_size(content, masked.count)?;
        Ok(sanitize::escape_hidden_chars(&masked.text))
    }

    fn add_file(
        &mut self,
        root: &Path,
        folder: &MarkdownFolder,
        file: &MarkdownFile,
    ) -> Result<PreviewFile, ConfigError> {
        let full_path = folder.full_path(file);
        let content = file.content.as_deref().unwrap_or_default();
        let path = full_path
            .strip_prefix(root)
            .unwrap_or(&full_path)
            .to_owned();
        Ok(PreviewFile {
            path,
            bytes: content.len(),
            text: self.add_text(&String::from_utf8_lossy(content))?,
        })
    }

    fn add_size(&mut self, content: &str, masked: usize) -> Result<(), ConfigError> {
        self.bytes += content.len();
        self.masked += masked;
        let refused = |reason: String, hint: &str| {
            Err(
                ConfigError::new(format!("this folder cannot be trusted: {reason}"))
                    .with_hint(hint),
            )
        };
        if self.bytes > MAX_BYTES {
            let reason = format!(
                "its settings and files are longer than {MAX_BYTES} bytes, which is too much to review"
            );
            return refused(
                reason,
                "make the prompts, agents or skills of this folder shorter",
            );
        }
        if self.masked > MAX_MASKED {
            let reason =
                format!("its files contain more than {MAX_MASKED} secrets, which are not shown");
            return refused(
                reason,
                "remove keys and passwords from the files of this folder",
            );
        }
        Ok(())
    }
}
