//! The roster: every definition that may join the team, the user's among them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use lango_domain::located::Mistake;
use lango_domain::{AgentSpec, Origin, Prefix};

use crate::agent_file::{AgentFileMistake, parse_agent_file};
use crate::embedded;
use crate::files::read_bounded;
use crate::instruction::{confusable_words, contains_word};

/// A definition larger than this is a mistake, not an agent.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The folder of the user's agents could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the agents folder {}: {source}", folder.display())]
pub struct UnreadableFolder {
    pub folder: PathBuf,
    source: io::Error,
}

/// Definitions in their order, and the files that could not be read as one.
#[derive(Debug, Default)]
pub struct Roster {
    pub specs: Vec<AgentSpec>,
    pub mistakes: Vec<AgentFileMistake>,
}

impl Roster {
    /// The definitions embedded in the binary.
    pub fn built_in() -> Self {
        let mut roster = Self::default();
        for (name, text) in embedded::AGENT_FILES {
            roster.take(parse_agent_file(Path::new(name), text, Origin::BuiltIn));
        }
        roster.sort();
        roster
    }

    /// The definitions in `folder`; a bad file is reported and the others load.
    pub fn from_folder(folder: &Path) -> Result<Self, UnreadableFolder> {
        let unreadable = |source| UnreadableFolder { folder: folder.to_owned(), source };
        let mut roster = Self::default();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if file.extension().is_some_and(|extension| extension == "md") {
                roster.take(read_definition(&file));
            }
        }
        roster.sort();
        Ok(roster)
    }

    /// This roster with `others` joined in: a definition of the same name takes its predecessor's place.
    #[must_use]
    pub fn joined_by(mut self, others: Self) -> Self {
        for mut spec in others.specs {
            match self.specs.iter_mut().find(|existing| existing.name == spec.name) {
                Some(existing) => {
                    spec.order = spec.order.or(existing.order);
                    *existing = spec;
                }
                None => self.specs.push(spec),
            }
        }
        self.mistakes.extend(others.mistakes);
        self.sort();
        self
    }

    /// What is unwise about definitions that can be read: words that mislead whoever delegates (S33).
    pub fn complaints(&self) -> Vec<String> {
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        let mut complaints = Vec::new();
        for spec in &self.specs {
            let file = match &spec.origin {
                Origin::BuiltIn => format!("agents/{}.md", spec.name),
                Origin::User(file) => file.display().to_string(),
            };
            let facts = spec.facts().join("\n");
            let confusing = confusable_words(&facts);
            let confusing = confusing.iter().filter(|word| !names.contains(&word.as_str()));
            complaints.extend(confusing.map(|word| format!("{file}: `{word}` may be taken for an agent")));
            let read = format!("{facts}\n{}", spec.instruction);
            let others =
                names.iter().filter(|name| spec.name.as_str() != **name && contains_word(&read, name));
            complaints.extend(others.map(|name| format!("{file}: it names another agent, {name}")));
        }
        complaints
    }

    fn take(&mut self, read: Result<AgentSpec, AgentFileMistake>) {
        match read {
            Ok(spec) => self.specs.push(spec),
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    /// The order never depends on how a folder happens to be listed.
    fn sort(&mut self) {
        self.specs.sort_by(|a, b| {
            (a.order.unwrap_or(u32::MAX), &a.name).cmp(&(b.order.unwrap_or(u32::MAX), &b.name))
        });
        self.mistakes.sort_by(|a, b| a.file.cmp(&b.file));
    }
}

fn read_definition(file: &Path) -> Result<AgentSpec, AgentFileMistake> {
    let mistake =
        |message: String| AgentFileMistake { file: file.to_owned(), mistake: Mistake::new(1, message) };
    let bytes =
        read_bounded(file, MAX_FILE_BYTES).map_err(|error| mistake(format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        AgentFileMistake { file: file.to_owned(), mistake: Mistake::new(line, "is not valid UTF-8") }
    })?;
    parse_agent_file(file, &text, Origin::User(file.to_owned()))
}

/// The name of a tool for each prefix of the built-in roles: enough for a full team.
pub fn one_tool_of_each_kind() -> Vec<String> {
    let specs = Roster::built_in().specs;
    let prefixes = specs.iter().flat_map(|spec| &spec.prefixes).filter(|prefix| prefix.text != Prefix::ANY);
    prefixes.map(|prefix| format!("{}_any", prefix.text.trim_end_matches('_'))).collect()
}
