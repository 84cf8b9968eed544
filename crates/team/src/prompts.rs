//! The shared prompt sections, the user's replacements for them, and the prompt of each kind of agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lango_domain::{Prompt, Section, text};
use lango_files::{Folder, Unreadable};

use crate::agent_file::with_hand_back;
use crate::embedded;
use crate::bounded_read::{MarkdownFile, MarkdownFolder, UnreadableFolder};

/// Section and file, in the order in which a prompt has them.
const SHARED: [(&str, &str); 4] = [
    (Section::IDENTITY, "AGENTS.md"),
    (Section::SAFETY, "SAFETY.md"),
    (Section::CONVERSATION, "CONVERSATION_RULES.md"),
    (Section::TOOL_USAGE, "TOOL_USAGE.md"),
];

/// The same in an agent's own folder.
const OWN: [(&str, &str); 4] = [
    (Section::SAFETY, "SAFETY.md"),
    (Section::CONVERSATION, "CONVERSATION_RULES.md"),
    (Section::TOOL_USAGE, "TOOL_USAGE.md"),
    (Section::INSTRUCTION, "IDENTITY.md"),
];

/// Far more than any section may hold.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Where the folders of single agents are.
const PER_AGENT: &str = "agents";

#[derive(Debug, thiserror::Error)]
pub enum PromptReadError {
    #[error("cannot read the prompt {}: {why}", text::strip_control_chars(&path.to_string_lossy()))]
    File { path: PathBuf, why: Unreadable },
    #[error("cannot read the prompt {}: it is not valid UTF-8", text::strip_control_chars(&path.to_string_lossy()))]
    NotText { path: PathBuf },
    #[error(transparent)]
    Folder(#[from] UnreadableFolder),
}

/// The prompts in a folder, `shown` being its path for people.
pub fn prompt_files(folder: &Folder, shown: &Path) -> Result<MarkdownFolder, UnreadableFolder> {
    let mut found = MarkdownFolder::new(shown);
    found.add(folder, Path::new(""), |name| meaning(&SHARED, name).is_some(), MAX_FILE_BYTES)?;
    let agents = match folder.names(Path::new(PER_AGENT)) {
        Ok(agents) => agents,
        Err(Unreadable::Missing | Unreadable::NotAFolder) => return Ok(found),
        Err(why) => return Err(UnreadableFolder { folder: shown.join(PER_AGENT), why }),
    };
    for (name, _) in agents {
        let own = Path::new(PER_AGENT).join(name);
        match found.add(folder, &own, |name| meaning(&OWN, name).is_some(), MAX_FILE_BYTES) {
            Ok(()) => {}
            // Other things may lie beside the agents' folders.
            Err(UnreadableFolder { folder, why: Unreadable::NotAFolder }) if folder == shown.join(&own) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The section that a file of this name stands for.
fn meaning(known: &[(&'static str, &str)], name: &str) -> Option<&'static str> {
    known.iter().find(|(_, file)| *file == name).map(|(id, _)| *id)
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
        let shared = SHARED.map(|(id, file)| Section::new(id, embedded::prompt(file)));
        Self { shared: shared.into(), per_agent: BTreeMap::new(), ignored: Vec::new() }
    }
}

impl PromptSources {
    /// The embedded sections, replaced by the files of `folder`, wherever its links lead.
    pub fn from_folder(folder: &Path) -> Result<Self, PromptReadError> {
        let opened =
            Folder::free(folder).map_err(|why| UnreadableFolder { folder: folder.to_owned(), why })?;
        Self::from_files(&prompt_files(&opened, folder)?)
    }

    /// The embedded sections, replaced by these files. Blank files change nothing.
    pub fn from_files(folder: &MarkdownFolder) -> Result<Self, PromptReadError> {
        let mut sources = Self::default();
        for file in &folder.files {
            let text = text_of(folder, file)?;
            let agent = agent_of(&file.path);
            let known = if agent.is_some() { &OWN } else { &SHARED };
            let name = file.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            let Some(id) = meaning(known, &name).filter(|_| !text.trim().is_empty()) else { continue };
            let text = if id == Section::INSTRUCTION { with_hand_back(&text) } else { text };
            let sections = match agent {
                Some(agent) => sources.per_agent.entry(agent).or_default(),
                None => &mut sources.shared,
            };
            overlay(sections, vec![Section::new(id, &text)]);
        }
        let paths = folder.files.iter().map(|file| &file.path).chain(&folder.ignored);
        for agent in paths.filter_map(|path| agent_of(path)) {
            sources.per_agent.entry(agent).or_default();
        }
        sources.ignored = folder.ignored.iter().map(|path| folder.path.join(path)).collect();
        Ok(sources)
    }

    /// The single agent reads every section.
    pub fn single(&self) -> Prompt {
        Prompt::new(self.shared.clone())
    }

    /// The orchestrator: a delegation identity, no tool usage, and its generated instruction last (S31).
    pub fn orchestrator(&self, instruction: &str) -> Prompt {
        let identity = Section::new(Section::IDENTITY, embedded::prompt("ORCHESTRATOR_IDENTITY.md"));
        let shared = self.shared.iter().filter(|section| !is_confusing(section)).cloned();
        // Each entry of the routing table has its cap, and so has their number: together they are bounded.
        let instruction = Section::capped(Section::INSTRUCTION, instruction, usize::MAX);
        Prompt::new(std::iter::once(identity).chain(shared).chain([instruction]))
    }

    /// A specialist: the shared sections, its own replacements, and its instruction last (S39). What it is stands in
    /// the instruction, so the shared identity is left out; tool usage too when it never holds a tool.
    pub fn specialist(&self, name: &str, instruction: &str, takes_tools: bool) -> Prompt {
        let mut sections: Vec<Section> = self
            .shared
            .iter()
            .filter(|section| {
                section.id() != Section::IDENTITY && (takes_tools || section.id() != Section::TOOL_USAGE)
            })
            .cloned()
            .collect();
        sections.push(Section::new(Section::INSTRUCTION, instruction));
        if let Some(own) = self.per_agent.get(name) {
            overlay(&mut sections, own.clone());
        }
        let (instruction, shared): (Vec<_>, Vec<_>) =
            sections.into_iter().partition(|section| section.id() == Section::INSTRUCTION);
        Prompt::new(shared.into_iter().chain(instruction))
    }

    /// The agents that have a folder of prompts.
    pub fn customised_agents(&self) -> impl Iterator<Item = &str> {
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
fn agent_of(path: &Path) -> Option<String> {
    let folder = path.strip_prefix(PER_AGENT).ok()?.parent()?;
    Some(folder.to_string_lossy().into_owned()).filter(|name| !name.is_empty())
}

fn text_of(folder: &MarkdownFolder, file: &MarkdownFile) -> Result<String, PromptReadError> {
    let path = || folder.place_of(file);
    let bytes =
        file.content.as_ref().map_err(|why| PromptReadError::File { path: path(), why: why.clone() })?;
    let text = std::str::from_utf8(bytes).map_err(|_| PromptReadError::NotText { path: path() })?;
    Ok(text::strip_control_chars(text))
}
