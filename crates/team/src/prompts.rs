//! The shared prompt sections, the user's replacements for them, and the prompt of each kind of agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use lango_domain::{Prompt, Section, text};

use crate::agent_file::with_hand_back;
use crate::embedded;
use crate::files::read_bounded;

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

#[derive(Debug, thiserror::Error)]
#[error("cannot read the prompt {}: {source}", path.display())]
pub struct UnreadablePrompt {
    pub path: PathBuf,
    source: io::Error,
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
    /// The embedded sections, replaced by the files of `folder`. Blank files change nothing.
    pub fn from_folder(folder: &Path) -> Result<Self, UnreadablePrompt> {
        let mut sources = Self::default();
        let shared = sources.read_sections(folder, &SHARED)?;
        overlay(&mut sources.shared, shared);
        let agents = folder.join("agents");
        if agents.is_dir() {
            for path in entries(&agents)?.into_iter().filter(|path| path.is_dir()) {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let own = sources.read_sections(&path, &OWN)?;
                sources.per_agent.insert(name, own);
            }
        }
        Ok(sources)
    }

    /// The non-blank files of one folder that have a meaning there, as sections.
    fn read_sections(
        &mut self,
        folder: &Path,
        known: &[(&str, &str)],
    ) -> Result<Vec<Section>, UnreadablePrompt> {
        let mut sections = Vec::new();
        for path in entries(folder)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if !name.ends_with(".md") || path.is_dir() {
                continue;
            }
            let Some((id, _)) = known.iter().find(|(_, file)| *file == name) else {
                self.ignored.push(path);
                continue;
            };
            let text = read_text(&path).map_err(|source| UnreadablePrompt { path, source })?;
            if !text.trim().is_empty() {
                let text = if *id == Section::INSTRUCTION { with_hand_back(&text) } else { text };
                sections.push(Section::new(id, &text));
            }
        }
        Ok(sections)
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

fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_bounded(path, MAX_FILE_BYTES)?;
    String::from_utf8(bytes)
        .map(|text| text::visible(&text))
        .map_err(|_| io::Error::other("it is not valid UTF-8"))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, UnreadablePrompt> {
    let unreadable = |source| UnreadablePrompt { path: folder.to_owned(), source };
    let listed = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths =
        listed.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}
