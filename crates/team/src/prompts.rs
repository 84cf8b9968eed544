//! The shared prompt sections, their replacements by the user, and the prompts of all kinds of agents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lango_domain::{Prompt, Section};
use lango_files::{FolderReader, ReadError};
use lango_text::sanitize;

use crate::agent_file::with_hand_back;
use crate::embedded;
use crate::markdown_folder::{MarkdownFile, MarkdownFolder, MarkdownFolderError};

/// The shared sections and their files, in prompt order.
const SHARED_FILES: [(&str, &str); 4] = [
    (Section::IDENTITY, "AGENTS.md"),
    (Section::SAFETY, "SAFETY.md"),
    (Section::CONVERSATION, "CONVERSATION_RULES.md"),
    (Section::TOOL_USAGE, "TOOL_USAGE.md"),
];

/// The sections and files in an agent's own folder.
const PER_AGENT_FILES: [(&str, &str); 4] = [
    (Section::SAFETY, "SAFETY.md"),
    (Section::CONVERSATION, "CONVERSATION_RULES.md"),
    (Section::TOOL_USAGE, "TOOL_USAGE.md"),
    (Section::INSTRUCTION, "IDENTITY.md"),
];

/// Far more than the cap of any section.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The folder with the folders of single agents.
const AGENTS_FOLDER: &str = "agents";

#[derive(Debug, thiserror::Error)]
pub enum PromptReadError {
    #[error("cannot read the prompt {}: {reason}", sanitize::strip_control_chars(&path.to_string_lossy()))]
    File { path: PathBuf, reason: ReadError },
    #[error("cannot read the prompt {}: it is not valid UTF-8", sanitize::strip_control_chars(&path.to_string_lossy()))]
    NotText { path: PathBuf },
    #[error(transparent)]
    Folder(#[from] MarkdownFolderError),
}

/// Reads the prompts in a folder. `display_path` is the path for messages.
pub fn prompt_files(
    folder: &FolderReader,
    display_path: &Path,
) -> Result<MarkdownFolder, MarkdownFolderError> {
    let mut files = MarkdownFolder::new(display_path);
    files.add(
        folder,
        Path::new(""),
        |name| section_for_file(&SHARED_FILES, name).is_some(),
        MAX_FILE_BYTES,
    )?;
    let agents = match folder.read_dir(Path::new(AGENTS_FOLDER)) {
        Ok(agents) => agents,
        Err(ReadError::Missing | ReadError::NotAFolder) => return Ok(files),
        Err(reason) => {
            return Err(MarkdownFolderError {
                folder: display_path.join(AGENTS_FOLDER),
                reason,
            });
        }
    };
    for (name, _) in agents {
        let own = Path::new(AGENTS_FOLDER).join(name);
        match files.add(
            folder,
            &own,
            |name| section_for_file(&PER_AGENT_FILES, name).is_some(),
            MAX_FILE_BYTES,
        ) {
            Ok(()) => {}
            // The folder may also contain files, which are ignored.
            Err(MarkdownFolderError {
                folder,
                reason: ReadError::NotAFolder,
            }) if folder == display_path.join(&own) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// Returns the section of a file name.
fn section_for_file(known: &[(&'static str, &str)], name: &str) -> Option<&'static str> {
    known
        .iter()
        .find(|(_, file)| *file == name)
        .map(|(id, _)| *id)
}

/// The sections that prompts are composed of (S30).
#[derive(Clone, Debug)]
pub struct PromptSources {
    shared: Vec<Section>,
    per_agent: BTreeMap<String, Vec<Section>>,
    /// Markdown files with unknown names.
    pub ignored: Vec<PathBuf>,
}

impl Default for PromptSources {
    /// Returns the sections embedded in the binary.
    fn default() -> Self {
        let shared = SHARED_FILES.map(|(id, file)| Section::new(id, embedded::prompt(file)));
        Self {
            shared: shared.into(),
            per_agent: BTreeMap::new(),
            ignored: Vec::new(),
        }
    }
}

impl PromptSources {
    /// Returns the embedded sections, replaced by the files of `folder`. Follows its links.
    pub fn from_folder(folder: &Path) -> Result<Self, PromptReadError> {
        let reader =
            FolderReader::open_unconfined(folder).map_err(|reason| MarkdownFolderError {
                folder: folder.to_owned(),
                reason,
            })?;
        Self::from_files(&prompt_files(&reader, folder)?)
    }

    /// Returns the embedded sections, replaced by these files. Ignores blank files.
    pub fn from_files(folder: &MarkdownFolder) -> Result<Self, PromptReadError> {
        let mut sources = Self::default();
        for file in &folder.files {
            let text = read_text(folder, file)?;
            let agent = agent_folder_name(&file.path);
            let known = if agent.is_some() {
                &PER_AGENT_FILES
            } else {
                &SHARED_FILES
            };
            let name = file
                .path
                .file_name()
                .map(|name| name.to_string_lossy())
                .unwrap_or_default();
            let Some(id) = section_for_file(known, &name).filter(|_| !text.trim().is_empty())
            else {
                continue;
            };
            let text = if id == Section::INSTRUCTION {
                with_hand_back(&text)
            } else {
                text
            };
            let sections = match agent {
                Some(agent) => sources.per_agent.entry(agent).or_default(),
                None => &mut sources.shared,
            };
            overlay(sections, vec![Section::new(id, &text)]);
        }
        let paths = folder
            .files
            .iter()
            .map(|file| &file.path)
            .chain(&folder.ignored);
        for agent in paths.filter_map(|path| agent_folder_name(path)) {
            sources.per_agent.entry(agent).or_default();
        }
        sources.ignored = folder
            .ignored
            .iter()
            .map(|path| folder.path.join(path))
            .collect();
        Ok(sources)
    }

    /// Returns the prompt of the single agent: every section.
    pub fn single(&self) -> Prompt {
        Prompt::new(self.shared.clone())
    }

    /// Returns the orchestrator's prompt: a delegation identity, no tool usage, and the generated
    /// instruction last (S31).
    pub fn orchestrator(&self, instruction: &str) -> Prompt {
        let identity = Section::new(
            Section::IDENTITY,
            embedded::prompt("ORCHESTRATOR_IDENTITY.md"),
        );
        let shared = self
            .shared
            .iter()
            .filter(|section| !is_confusing(section))
            .cloned();
        // Not capped here: the routing table's entries and their number are.
        let instruction = Section::with_max_tokens(Section::INSTRUCTION, instruction, usize::MAX);
        Prompt::new(std::iter::once(identity).chain(shared).chain([instruction]))
    }

    /// Returns a specialist's prompt: the shared sections, its own replacements, and its instruction last
    /// (S39). The instruction contains its identity, so the shared identity is omitted. Without tools, so
    /// is the tool usage.
    pub fn specialist(&self, name: &str, instruction: &str, can_hold_tools: bool) -> Prompt {
        let mut sections: Vec<Section> = self
            .shared
            .iter()
            .filter(|section| {
                section.id() != Section::IDENTITY
                    && (can_hold_tools || section.id() != Section::TOOL_USAGE)
            })
            .cloned()
            .collect();
        sections.push(Section::new(Section::INSTRUCTION, instruction));
        if let Some(own) = self.per_agent.get(name) {
            overlay(&mut sections, own.clone());
        }
        let (instruction, shared): (Vec<_>, Vec<_>) = sections
            .into_iter()
            .partition(|section| section.id() == Section::INSTRUCTION);
        Prompt::new(shared.into_iter().chain(instruction))
    }

    /// Returns the agents that have their own prompt folder.
    pub fn customized_agents(&self) -> impl Iterator<Item = &str> {
        self.per_agent.keys().map(String::as_str)
    }
}

/// Returns true for sections with words that an orchestrator mistakes for agents.
fn is_confusing(section: &Section) -> bool {
    section.id() == Section::IDENTITY || section.id() == Section::TOOL_USAGE
}

/// Replaces sections with the same id in place and appends new ones.
fn overlay(sections: &mut Vec<Section>, replacements: Vec<Section>) {
    for new in replacements {
        match sections.iter_mut().find(|section| section.id() == new.id()) {
            Some(section) => *section = new,
            None => sections.push(new),
        }
    }
}

/// Returns the agent whose folder contains a file.
fn agent_folder_name(path: &Path) -> Option<String> {
    let folder = path.strip_prefix(AGENTS_FOLDER).ok()?.parent()?;
    Some(folder.to_string_lossy().into_owned()).filter(|name| !name.is_empty())
}

fn read_text(folder: &MarkdownFolder, file: &MarkdownFile) -> Result<String, PromptReadError> {
    let path = || folder.full_path(file);
    let bytes = file
        .content
        .as_ref()
        .map_err(|reason| PromptReadError::File {
            path: path(),
            reason: reason.clone(),
        })?;
    let text = std::str::from_utf8(bytes).map_err(|_| PromptReadError::NotText { path: path() })?;
    Ok(sanitize::strip_control_chars(text))
}
