//! The agent registry: every definition that may join the team, including the user's.

use std::path::Path;

use lango_domain::spanned::SpannedError;
use lango_domain::{AgentSpec, Prefix, SpecOrigin};
use lango_files::FolderReader;

use crate::agent_file::{AgentFileError, parse_agent_file};
use crate::embedded;
use crate::instruction::{confusable_words, contains_word};
use crate::markdown_folder::{MarkdownFile, MarkdownFolder, MarkdownFolderError};

/// The size limit for a definition.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Reads the definitions in a folder. `display_path` is the path for messages.
pub fn agent_files(
    folder: &FolderReader,
    display_path: &Path,
) -> Result<MarkdownFolder, MarkdownFolderError> {
    let mut files = MarkdownFolder::new(display_path);
    files.add(folder, Path::new(""), |_| true, MAX_FILE_BYTES)?;
    Ok(files)
}

/// Definitions in order, and the errors of files that are not valid definitions.
#[derive(Debug, Default)]
pub struct AgentRegistry {
    pub specs: Vec<AgentSpec>,
    pub errors: Vec<AgentFileError>,
}

impl AgentRegistry {
    /// Returns the definitions embedded in the binary.
    pub fn built_in() -> Self {
        let mut registry = Self::default();
        for (name, text) in embedded::AGENT_FILES {
            registry.push(parse_agent_file(Path::new(name), text, SpecOrigin::BuiltIn));
        }
        registry.sort();
        registry
    }

    /// Reads the definitions in `folder`. Follows its links.
    pub fn from_folder(folder: &Path) -> Result<Self, MarkdownFolderError> {
        let reader =
            FolderReader::open_unconfined(folder).map_err(|reason| MarkdownFolderError {
                folder: folder.to_owned(),
                reason,
            })?;
        Ok(Self::from_files(&agent_files(&reader, folder)?))
    }

    /// Parses the definitions in these files. A file with an error does not affect the others.
    pub fn from_files(folder: &MarkdownFolder) -> Self {
        let mut registry = Self::default();
        for file in &folder.files {
            registry.push(parse_definition(&folder.full_path(file), file));
        }
        registry.sort();
        registry
    }

    /// Merges `others` into this registry. A definition replaces one with the same name.
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

    /// Returns warnings about valid definitions: words that mislead the orchestrator (S33).
    pub fn warnings(&self) -> Vec<String> {
        // The name of a tool server is often an ordinary word, such as `files`.
        let written = || {
            self.specs
                .iter()
                .filter(|spec| spec.origin != SpecOrigin::ToolServer)
        };
        let names: Vec<&str> = written().map(|spec| spec.name.as_str()).collect();
        let mut warnings = Vec::new();
        for spec in written() {
            let file = match &spec.origin {
                SpecOrigin::BuiltIn => format!("agents/{}.md", spec.name),
                SpecOrigin::User(file) => file.display().to_string(),
                SpecOrigin::ToolServer => format!("mcp.servers ({})", spec.name),
            };
            let facts = spec.routing_texts().join("\n");
            let confusing = confusable_words(&facts);
            let confusing = confusing
                .iter()
                .filter(|word| !names.contains(&word.as_str()));
            warnings.extend(
                confusing
                    .map(|word| format!("{file}: `{word}` could be mistaken for an agent name")),
            );
            let text = format!("{facts}\n{}", spec.instruction);
            let others = names
                .iter()
                .filter(|name| spec.name.as_str() != **name && contains_word(&text, name));
            warnings.extend(others.map(|name| format!("{file}: it names another agent, {name}")));
        }
        warnings
    }

    fn push(&mut self, parsed: Result<AgentSpec, AgentFileError>) {
        match parsed {
            Ok(spec) => self.specs.push(spec),
            Err(error) => self.errors.push(error),
        }
    }

    /// Sorts the definitions, so that their order does not depend on the directory listing.
    fn sort(&mut self) {
        self.specs.sort_by(|a, b| {
            (a.order.unwrap_or(u32::MAX), &a.name).cmp(&(b.order.unwrap_or(u32::MAX), &b.name))
        });
        self.errors.sort_by(|a, b| a.file.cmp(&b.file));
    }
}

fn parse_definition(path: &Path, file: &MarkdownFile) -> Result<AgentSpec, AgentFileError> {
    let error_at = |line, message: String| AgentFileError {
        file: path.to_owned(),
        error: SpannedError::new(line, message),
    };
    let bytes = file
        .content
        .as_ref()
        .map_err(|error| error_at(1, format!("cannot be read: {error}")))?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        error_at(line, "is not valid UTF-8".to_owned())
    })?;
    parse_agent_file(path, text, SpecOrigin::User(path.to_owned()))
}

/// Returns a tool name for each prefix of the built-in roles: enough for a full team.
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
