//! Parses the routing table in the orchestrator's prompt, which is the same text that other models
//! read.

use super::words::{RequestWord, split_words};

/// One agent of the routing table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingEntry {
    pub agent: String,
    pub keywords: Vec<Phrase>,
    /// Keywords that decide a request on their own.
    pub always: Vec<Phrase>,
    pub examples: Vec<Phrase>,
    pub cannot: Vec<Phrase>,
    /// Stems of the name, description, inputs and outputs.
    pub stems: Vec<String>,
}

/// A phrase of the table, as text and as stems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    pub text: String,
    pub stems: Vec<String>,
}

/// Ignored in phrases: "water the plants" also matches "water my plants".
const ARTICLES: [&str; 8] = ["the", "a", "an", "my", "our", "your", "this", "that"];

impl Phrase {
    fn new(text: &str) -> Self {
        let text = text.trim().trim_matches('"').to_owned();
        let all = split_words(&text);
        let significant = all
            .iter()
            .filter(|word| !ARTICLES.contains(&word.normalized.as_str()));
        let stems: Vec<String> = significant.map(|word| word.stem.clone()).collect();
        Self {
            stems: if stems.is_empty() {
                self::stems(&text)
            } else {
                stems
            },
            text,
        }
    }

    /// Returns true if the request contains the stems in order, with at most two other words
    /// between them: "read the file" contains "read file".
    pub fn is_in(&self, request: &[RequestWord]) -> bool {
        const MAX_GAP: usize = 3;
        let Some((first, rest)) = self.stems.split_first() else {
            return false;
        };
        let starts = request
            .iter()
            .enumerate()
            .filter(|(_, word)| word.stem == *first)
            .map(|(at, _)| at);
        starts.into_iter().any(|start| {
            let next = |at: usize, stem: &String| {
                (at + 1..=at + MAX_GAP)
                    .find(|next| request.get(*next).is_some_and(|word| word.stem == *stem))
            };
            rest.iter().try_fold(start, next).is_some()
        })
    }
}

/// Returns the entries of the table; none if the prompt has no table.
pub fn parse(prompt: &str) -> Vec<RoutingEntry> {
    let Some((_, table)) = prompt.split_once("## Routing Table\n") else {
        return Vec::new();
    };
    let table = table.split("\n## ").next().unwrap_or_default();
    table.split("### ").filter_map(parse_entry).collect()
}

fn parse_entry(text: &str) -> Option<RoutingEntry> {
    let mut lines = text.lines();
    let agent = lines.next()?.trim().to_owned();
    if agent.is_empty() {
        return None;
    }
    let mut entry = RoutingEntry {
        agent,
        ..RoutingEntry::default()
    };
    let name = entry.agent.replace(['-', '_'], " ");
    entry.stems = stems(&name);
    for line in lines {
        let list = |text: &str| text.split(", ").map(Phrase::new).collect();
        match line.split_once(": ") {
            Some(("Keywords", keywords)) => entry.keywords = list(keywords),
            Some(("Always", always)) => entry.always = list(always),
            Some(("Cannot", cannot)) => entry.cannot = list(cannot),
            Some(("Examples", examples)) => {
                entry.examples = examples.split("\", \"").map(Phrase::new).collect()
            }
            _ => entry.stems.extend(stems(line)),
        }
    }
    Some(entry)
}

fn stems(text: &str) -> Vec<String> {
    split_words(text)
        .into_iter()
        .map(|word| word.stem)
        .collect()
}
