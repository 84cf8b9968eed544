//! The shared prompt sections, the user's replacements for them, and the prompt of each kind of agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use lango_domain::{Prompt, Section};

use crate::embedded;

/// Section and file, in the order in which a prompt has them.
const SHARED: [(&str, &str); 4] = [
    (Section::IDENTITY, "AGENTS.md"),
    (Section::SAFETY, "SAFETY.md"),
    (Section::CONVERSATION, "CONVERSATION_RULES.md"),
    (Section::TOOL_USAGE, "TOOL_USAGE.md"),
];

/// In an agent's own folder, what replaces its instruction.
const AGENT_IDENTITY_FILE: &str = "IDENTITY.md";

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
}

impl Default for PromptSources {
    /// The sections embedded in the binary.
    fn default() -> Self {
        let shared = SHARED.map(|(id, file)| Section::new(id, embedded::prompt(file)));
        Self { shared: shared.into(), per_agent: BTreeMap::new() }
    }
}

impl PromptSources {
    /// The embedded sections, replaced and extended by the files of `folder`. Blank files change nothing.
    pub fn from_folder(folder: &Path) -> Result<Self, UnreadablePrompt> {
        let mut sources = Self::default();
        overlay(&mut sources.shared, read_sections(folder, Section::IDENTITY)?);
        let agents = folder.join("agents");
        if agents.is_dir() {
            for path in entries(&agents)?.into_iter().filter(|path| path.is_dir()) {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                sources.per_agent.insert(name, read_sections(&path, Section::INSTRUCTION)?);
            }
        }
        Ok(sources)
    }

    /// The single agent reads every section.
    pub fn single(&self) -> Prompt {
        Prompt::new(self.shared.clone())
    }

    /// The orchestrator: a delegation identity, no tool usage, and its generated instruction last (S31).
    pub fn orchestrator(&self, instruction: &str) -> Prompt {
        let identity = Section::new(Section::IDENTITY, embedded::prompt("ORCHESTRATOR_IDENTITY.md"));
        let shared = self.shared.iter().filter(|section| !is_about_tools(section)).cloned();
        let instruction =
            Section { id: Section::INSTRUCTION.to_owned(), text: instruction.trim().to_owned() };
        Prompt::new(std::iter::once(identity).chain(shared).chain([instruction]))
    }

    /// A specialist: the shared sections, its own replacements, and its instruction last (S39). What it is stands in
    /// the instruction, so the shared identity is left out; tool usage too when it never holds a tool.
    pub fn specialist(&self, name: &str, instruction: &str, takes_tools: bool) -> Prompt {
        let mut sections: Vec<Section> = self
            .shared
            .iter()
            .filter(|section| {
                section.id != Section::IDENTITY && (takes_tools || section.id != Section::TOOL_USAGE)
            })
            .cloned()
            .collect();
        sections.push(Section::new(Section::INSTRUCTION, instruction));
        if let Some(own) = self.per_agent.get(name) {
            overlay(&mut sections, own.clone());
        }
        let (instruction, shared): (Vec<_>, Vec<_>) =
            sections.into_iter().partition(|section| section.id == Section::INSTRUCTION);
        Prompt::new(shared.into_iter().chain(instruction))
    }

    /// The agents that have a folder of prompts.
    pub fn customised_agents(&self) -> impl Iterator<Item = &str> {
        self.per_agent.keys().map(String::as_str)
    }
}

/// The sections whose words are mistaken for agents by an orchestrator.
fn is_about_tools(section: &Section) -> bool {
    section.id == Section::IDENTITY || section.id == Section::TOOL_USAGE
}

/// A section of the same id is replaced in place; a new one is added at the end.
fn overlay(sections: &mut Vec<Section>, replacements: Vec<Section>) {
    for new in replacements {
        match sections.iter_mut().find(|section| section.id == new.id) {
            Some(section) => *section = new,
            None => sections.push(new),
        }
    }
}

/// The non-blank markdown files of one folder as sections; `identity` is the section that IDENTITY.md replaces.
fn read_sections(folder: &Path, identity: &str) -> Result<Vec<Section>, UnreadablePrompt> {
    let mut sections = Vec::new();
    for path in entries(folder)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !name.ends_with(".md") || path.is_dir() {
            continue;
        }
        let text =
            fs::read_to_string(&path).map_err(|source| UnreadablePrompt { path: path.clone(), source })?;
        if !text.trim().is_empty() {
            sections.push(Section::new(section_id(name, identity), &text));
        }
    }
    Ok(sections)
}

fn section_id(file: &str, identity: &str) -> String {
    if file == AGENT_IDENTITY_FILE {
        return identity.to_owned();
    }
    let shared = SHARED.iter().find(|(_, name)| *name == file);
    shared.map_or_else(|| file.trim_end_matches(".md").to_lowercase(), |(id, _)| (*id).to_owned())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, UnreadablePrompt> {
    let unreadable = |source| UnreadablePrompt { path: folder.to_owned(), source };
    let listed = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths =
        listed.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}
