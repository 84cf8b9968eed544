//! What a project asks to be confirmed, put before the user.

use std::path::{Path, PathBuf};

use lango_domain::text;
use lango_knowledge::secrecy::Secrecy;
use lango_team::{MarkdownFile, MarkdownFolder};
use serde_json::Value;

use super::hiding::Placed;
use super::project::{Named, Said};
use super::{ConfigError, Loaded, Overrides, file, merge, project_file, trust};
use crate::environment::Environment;
use crate::settings::Settings;

/// A file with no more lines than this is shown whole; of a longer one, so many.
const MOST_LINES: usize = 40;
const MOST_LETTERS: usize = 4000;

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
    /// Its beginning, or all of it; why it is not shown where it seems to hold a secret.
    pub text: String,
}

impl Loaded {
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
        let files = named
            .folders
            .values()
            .flat_map(|folder| folder.files.iter().map(|file| shown(root, folder, file)));
        let settings = Placed::at_root(&schema).without_secrets(&closed.to_value());
        Ok(Some(Asked { file: path, settings, files: files.collect(), fingerprint }))
    }
}

impl Asked {
    /// Remembers exactly this. Only for what the user was shown.
    pub fn confirm(self, environment: &Environment) -> Result<(), ConfigError> {
        trust::confirm(environment, &self.file, self.fingerprint)
    }
}

fn shown(root: &Path, folder: &MarkdownFolder, file: &MarkdownFile) -> ShownFile {
    let place = folder.place_of(file);
    let content = file.content.as_deref().unwrap_or_default();
    let path = place.strip_prefix(root).unwrap_or(&place).to_owned();
    ShownFile { path, bytes: content.len(), text: beginning(&String::from_utf8_lossy(content)) }
}

/// The beginning of a text that a model will read; why it is not shown where it seems to hold a secret.
pub fn beginning(content: &str) -> String {
    if let Some(likeness) = Secrecy::default().secret_in(content) {
        return format!("(not shown: it seems to hold {likeness})");
    }
    let lines: Vec<&str> = content.lines().take(MOST_LINES).collect();
    let mut text: String = text::visible(&lines.join("\n")).chars().take(MOST_LETTERS).collect();
    let left = content.lines().count().saturating_sub(lines.len());
    if left > 0 {
        text.push_str(&format!("\n… and {left} more lines"));
    } else if text.chars().count() == MOST_LETTERS {
        text.push_str(" …");
    }
    text
}
