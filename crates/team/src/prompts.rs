//! The shared prompt sections, the user's replacements for them, and the prompt of each kind of agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lango_domain::{Prompt, Section, text};
use lango_files::{FolderReader, ReadError};

use crate::agent_file::with_hand_back;
use crate::embedded;
use crate::markdown_folder::{MarkdownFile, MarkdownFolder, MarkdownFolderError};

/// Section and file, in the order in which a prompt has them.
const SHARED_FILES: [(&str, &str); 4] = [
    (Section::IDENTITY, "AGENTS.md"),
    (Section::SAFETY, "SAFETY.md"),
    (Section::CONVERSATION, "CONVERSATION_RULES.md"),
    (Section::TOOL_USAGE, "TOOL_USAGE.md"),
];

/// The same in an agent's own folder.
const PER_AGENT_FILES: [(&str, &str); 4] = [
    (Section::SAFETY, "SAFETY.md"),
    (Section::CONVERSATION, "CONVERSATION_RULES.md"),
    (Section::TOOL_USAGE, "TOOL_USAGE.md"),
    (Section::INSTRUCTION, "IDENTITY.md"),
];

/// Far more than any section may hold.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Where the folders of single agents are.
const AGENTS_FOLDER: &str = "agents";

#[derive(Debug, thiserror::Error)]
pub enum PromptReadError {
    #[error("cannot read the prompt {}: {reason}", text::strip_control_chars(&path.to_string_lossy()))]
    File { path: PathBuf, reason: ReadError },
    #[error("cannot read the prompt {}: it is not valid UTF-8", text::strip_control_chars(&path.to_string_lossy()))]
    NotText { path: PathBuf },
    #[error(transparent)]
    Folder(#[from] MarkdownFolderError),
}

/// The prompts in a folder, `shown` being its path for people.
pub fn prompt_files(
    folder: &FolderReader,
    shown: &Path,
) -> Result<MarkdownFolder, MarkdownFolderError> {
    let mut found = MarkdownFolder::new(shown);
    found.add(
        folder,
        Path::new(""),
        |name| section_for_file(&SHARED_FILES, name).is_some(),
        MAX_FILE_BYTES,
    )?;
    let agents = match folder.read_dir(Path::new(AGENTS_FOLDER)) {
        Ok(agents) => agents,
        Err(ReadError::Missing | ReadError::NotAFolder) => return Ok(found),
        Err(why) => {
            return Err(MarkdownFolderError {
                folder: shown.join(AGENTS_FOLDER),
                reason: why,
            });
        }
    };
    for (name, _) in agents {
        let own = Path::new(AGENTS_FOLDER).join(name);
        match found.add(
            folder,
            &own,
            |name| section_for_file(&PER_AGENT_FILES, name).is_some(),
            MAX_FILE_BYTES,
        ) {
            Ok(()) => {}
            // Other things may lie beside the agents' folders.
            Err(MarkdownFolderError {
                folder,
                reason: ReadError::NotAFolder,
            }) if folder == shown.join(&own) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The section that a file of this name stands for.
fn section_for_file(known: &[(&'static str, &str)], name: &str) -> Option<&'static str> {
    known
        .iter()
        .find(|(_, file)| *file == name)
        .map(|(id, _)| *id)
}

/// Everything that prompts are put together from (S30).
#[derive(Clone, Debug)]
pub struct PromptSources {
    shared: Vec<Section>,
    per_agent: BTreeMap<String, Vec<Section>>,
    /// Markdown files whose names mean nothing here.
    pub ignored: Vec<PathBuf>,
}

impl Default for PromptSources {
    /// The sections embedded in the binary.
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
    /// The embedded sections, replaced by the files of `folder`, wherever its links lead.
    pub fn from_folder(folder: &Path) -> Result<Self, PromptReadError> {
        let opened = FolderReader::open_unconfined(folder).map_err(|why| MarkdownFolderError {
            folder: folder.to_owned(),
            reason: why,
        })?;
        Self::from_files(&prompt_files(&opened, folder)?)
    }

    /// The embedded sections, replaced by these files. Blank files change nothing.
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

    /// The single agent reads every section.
    pub fn single(&self) -> Prompt {
        Prompt::new(self.shared.clone())
    }

    /// The orchestrator: a delegation identity, no tool usage, and its generated instruction last (S31).
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
        // Each entry of the routing table has its cap, and so has their number: together they are bounded.
        let instruction = Section::with_max_tokens(Section::INSTRUCTION, instruction, usize::MAX);
        Prompt::new(std::iter::once(identity).chain(shared).chain([instruction]))
    }

    /// A specialist: the shared sections, its own replacements, and its instruction last (S39). What it is stands in
    /// the instruction, so the shared identity is left out; tool usage too when it never holds a tool.
    pub fn specialist(&self, name: &str, instruction: &str, takes_tools: bool) -> Prompt {
        let mut sections: Vec<Section> = self
            .shared
            .iter()
            .filter(|section| {
                section.id() != Section::IDENTITY
                    && (takes_tools || section.id() != Section::TOOL_USAGE)
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

    /// The agents that have a folder of prompts.
    pub fn customized_agents(&self) -> impl Iterator<Item = &str> {
        self.per_agent.keys().map(String::as_str)
    }
}

/// The sections whose words are mistaken for agents by an orchestrator.
fn is_confusing(section: &Section) -> bool {
    section.id() == Section::IDENTITY || section.id() == Section::TOOL_USAGE
}

/// A section of the same id is replaced in place; a new one is added at the end.
fn overlay(sections: &mut Vec<Section>, replacements: Vec<Section>) {
    for new in replacements {
        match sections.iter_mut().find(|section| section.id() == new.id()) {
            Some(section) => *section = new,
            None => sections.push(new),
        }
    }
}

/// The agent whose own folder a file is in.
fn agent_folder_name(path: &Path) -> Option<String> {
    let folder = path.strip_prefix(AGENTS_FOLDER).ok()?.parent()?;
    Some(folder.to_string_lossy().into_owned()).filter(|name| !name.is_empty())
}

fn read_text(folder: &MarkdownFolder, file: &MarkdownFile) -> Result<String, PromptReadError> {
    let path = || folder.full_path(file);
    let bytes = file.content.as_ref().map_err(|why| PromptReadError::File {
        path: path(),
        reason: why.clone(),
    })?;
    let text = std::str::from_utf8(bytes).map_err(|_| PromptReadError::NotText { path: path() })?;
    Ok(text::strip_control_chars(text))
}
