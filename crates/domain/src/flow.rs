//! Labels that follow content: where it comes from, and whether it is private (B101).
//!
//! A label names sources, not words: it stays with everything that was made from the content, however it is rephrased or
//! encoded. The engine joins the labels of all that an agent read and gives them to all that the agent says or does.

use std::fmt;

use serde::{Deserialize, Serialize};

/// So many sources of each kind are named; the label stands whether or not all of them are.
const MAX_SOURCES: usize = 4;
const MAX_SOURCE_CHARS: usize = 120;

/// What is known about a piece of content. A plain label is that of the user's and of Lango's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    /// Sources that neither the user nor Lango speaks for, as they are cited: a page, a document, a command's output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untrusted: Vec<String>,
    /// Sources that are not meant for others, as they are cited: files, memory, knowledge, documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    private: Vec<String>,
}

impl Label {
    pub fn untrusted(source: impl AsRef<str>) -> Self {
        let mut label = Self::default();
        add(&mut label.untrusted, source.as_ref());
        label
    }

    pub fn private(source: impl AsRef<str>) -> Self {
        let mut label = Self::default();
        add(&mut label.private, source.as_ref());
        label
    }

    /// Takes on whatever the other label says.
    pub fn join(&mut self, other: &Self) {
        other
            .untrusted
            .iter()
            .for_each(|source| add(&mut self.untrusted, source));
        other
            .private
            .iter()
            .for_each(|source| add(&mut self.private, source));
    }

    #[must_use]
    pub fn joined(mut self, other: &Self) -> Self {
        self.join(other);
        self
    }

    /// The same without sources that this is said of.
    #[must_use]
    pub fn without(mut self, is_meant: impl Fn(&str) -> bool) -> Self {
        self.untrusted.retain(|source| !is_meant(source));
        self.private.retain(|source| !is_meant(source));
        self
    }

    pub fn is_plain(&self) -> bool {
        self.untrusted.is_empty() && self.private.is_empty()
    }

    pub fn is_untrusted(&self) -> bool {
        !self.untrusted.is_empty()
    }

    pub fn is_private(&self) -> bool {
        !self.private.is_empty()
    }

    pub fn untrusted_sources(&self) -> &[String] {
        &self.untrusted
    }

    pub fn private_sources(&self) -> &[String] {
        &self.private
    }
}

/// For people: nothing about a plain label.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("untrusted", &self.untrusted), ("private", &self.private)];
        let named = parts.iter().filter(|(_, sources)| !sources.is_empty());
        let named: Vec<String> = named
            .map(|(kind, sources)| format!("{kind}: {}", sources.join(", ")))
            .collect();
        f.write_str(&named.join("; "))
    }
}

fn add(sources: &mut Vec<String>, source: &str) {
    let source = crate::text::one_line(source);
    let source = match source.char_indices().nth(MAX_SOURCE_CHARS) {
        Some((end, _)) => format!("{}…", &source[..end]),
        None if source.is_empty() => "an unnamed source".to_owned(),
        None => source,
    };
    if sources.len() < MAX_SOURCES && !sources.contains(&source) {
        sources.push(source);
    }
}

/// Text with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabeledText {
    pub text: String,
    pub label: Label,
}

impl LabeledText {
    /// The user's or Lango's own words, for anyone.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            label: Label::default(),
        }
    }
}

/// What a call would send to somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingData {
    pub to: Destination,
    /// Exactly what leaves.
    pub data: String,
}

/// Who gets what a call sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A host that the call names.
    Host(String),
    /// An agent in another process.
    Agent(String),
    /// Hosts that the settings name, whatever the call says.
    Configured(Vec<String>),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(name) | Self::Agent(name) => f.write_str(name),
            Self::Configured(hosts) => f.write_str(&hosts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B101
    #[test]
    fn joining_keeps_every_kind_and_names_a_few() {
        let mut label = Label::private("fs_read .env");
        for n in 0..100 {
            label.join(&Label::untrusted(format!("page {n}")));
        }
        assert!(label.is_private() && label.is_untrusted() && !label.is_plain());
        assert_eq!(
            label.untrusted_sources(),
            ["page 0", "page 1", "page 2", "page 3"]
        );
        assert!(Label::default().joined(&Label::default()).is_plain());
    }

    /// B101: a source cannot hide by having no name, nor fill the log by having a long one.
    #[test]
    fn every_source_has_a_bounded_name() {
        assert!(Label::untrusted("").is_untrusted() && Label::private(" \n").is_private());
        assert!(
            Label::untrusted("é".repeat(10_000)).untrusted_sources()[0]
                .chars()
                .count()
                < 130
        );
    }

    #[test]
    fn a_label_reads_back_as_it_was_written() {
        let label = Label::untrusted("a\nb").joined(&Label::private("c"));
        let json = serde_json::to_value(&label).unwrap();
        assert_eq!(
            json,
            serde_json::json!({ "untrusted": ["a b"], "private": ["c"] })
        );
        assert_eq!(serde_json::from_value::<Label>(json).unwrap(), label);
        assert_eq!(
            serde_json::from_str::<Label>("{}").unwrap(),
            Label::default()
        );
    }
}
