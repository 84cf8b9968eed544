//! The roster: every definition that may join the team, the user's among them.

use std::path::Path;

use lango_domain::spanned::SpannedError;
use lango_domain::{AgentSpec, Prefix, SpecOrigin};
use lango_files::FolderReader;

use crate::agent_file::{AgentFileError, parse_agent_file};
use crate::embedded;
use crate::instruction::{confusable_words, contains_word};
use crate::markdown_folder::{MarkdownFile, MarkdownFolder, MarkdownFolderError};

/// A definition larger than this is a mistake, not an agent.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The definitions in a folder, `shown` being its path for people.
pub fn agent_files(
    folder: &FolderReader,
    shown: &Path,
) -> Result<MarkdownFolder, MarkdownFolderError> {
    let mut found = MarkdownFolder::new(shown);
    found.add(folder, Path::new(""), |_| true, MAX_FILE_BYTES)?;
    Ok(found)
}

/// Definitions in their order, and the files that could not be read as one.
#[derive(Debug, Default)]
pub struct AgentRegistry {
    pub specs: Vec<AgentSpec>,
    pub errors: Vec<AgentFileError>,
}

impl AgentRegistry {
    /// The definitions embedded in the binary.
    pub fn built_in() -> Self {
        let mut roster = Self::default();
        for (name, text) in embedded::AGENT_FILES {
            roster.push(parse_agent_file(Path::new(name), text, SpecOrigin::BuiltIn));
        }
        roster.sort();
        roster
    }

    /// The definitions in `folder`, wherever its links lead.
    pub fn from_folder(folder: &Path) -> Result<Self, MarkdownFolderError> {
        let opened = FolderReader::open_unconfined(folder).map_err(|why| MarkdownFolderError {
            folder: folder.to_owned(),
            reason: why,
        })?;
        Ok(Self::from_files(&agent_files(&opened, folder)?))
    }

    /// The definitions in these files; a bad one is reported and the others load.
    pub fn from_files(folder: &MarkdownFolder) -> Self {
        let mut roster = Self::default();
        for file in &folder.files {
            roster.push(parse_definition(&folder.full_path(file), file));
        }
        roster.sort();
        roster
    }

    /// This roster with `others` joined in: a definition of the same name takes its predecessor's place.
    #[must_use]
    pub fn merge(mut self, others: Self) -> Self {
        for mut spec in others.specs {
            match self
                .specs
                .iter_mut()
                .find(|existing| existing.name == spec.name)
            {
                Some(existing) => {
                    spec.order = spec.order.or(existing.order);
                    *existing = spec;
                }
                None => self.specs.push(spec),
            }
        }
        self.errors.extend(others.errors);
        self.sort();
        self
    }

    /// What is unwise about definitions that can be read: words that mislead whoever delegates (S33).
    pub fn warnings(&self) -> Vec<String> {
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        let mut complaints = Vec::new();
        for spec in &self.specs {
            let file = match &spec.origin {
                SpecOrigin::BuiltIn => format!("agents/{}.md", spec.name),
                SpecOrigin::User(file) => file.display().to_string(),
            };
            let facts = spec.routing_texts().join("\n");
            let confusing = confusable_words(&facts);
            let confusing = confusing
                .iter()
                .filter(|word| !names.contains(&word.as_str()));
            complaints.extend(
                confusing.map(|word| format!("{file}: `{word}` may be taken for an agent")),
            );
            let read = format!("{facts}\n{}", spec.instruction);
            let others = names
                .iter()
                .filter(|name| spec.name.as_str() != **name && contains_word(&read, name));
            complaints.extend(others.map(|name| format!("{file}: it names another agent, {name}")));
        }
        complaints
    }

    fn push(&mut self, read: Result<AgentSpec, AgentFileError>) {
        match read {
            Ok(spec) => self.specs.push(spec),
            Err(mistake) => self.errors.push(mistake),
        }
    }

    /// The order never depends on how a folder happens to be listed.
    fn sort(&mut self) {
        self.specs.sort_by(|a, b| {
            (a.order.unwrap_or(u32::MAX), &a.name).cmp(&(b.order.unwrap_or(u32::MAX), &b.name))
        });
        self.errors.sort_by(|a, b| a.file.cmp(&b.file));
    }
}

fn parse_definition(place: &Path, file: &MarkdownFile) -> Result<AgentSpec, AgentFileError> {
    let mistake = |line, message: String| AgentFileError {
        file: place.to_owned(),
        error: SpannedError::new(line, message),
    };
    let bytes = file
        .content
        .as_ref()
        .map_err(|why| mistake(1, format!("cannot be read: {why}")))?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        mistake(line, "is not valid UTF-8".to_owned())
    })?;
    parse_agent_file(place, text, SpecOrigin::User(place.to_owned()))
}

/// The name of a tool for each prefix of the built-in roles: enough for a full team.
pub fn sample_tool_names() -> Vec<String> {
    let specs = AgentRegistry::built_in().specs;
    let prefixes = specs
        .iter()
        .flat_map(|spec| &spec.prefixes)
        .filter(|prefix| prefix.text != Prefix::ANY);
    prefixes
        .map(|prefix| format!("{}_any", prefix.text.trim_end_matches('_')))
        .collect()
}
