//! Labels of content: its untrusted and private sources (B101).
//!
//! A label names sources, not text. It applies to everything derived from the content, even if it is
//! rephrased or encoded. The engine joins the labels of everything an agent has read and applies the
//! result to everything the agent says or does.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of sources of each kind that are named. The label applies even if some are not named.
const MAX_SOURCES: usize = 4;
const MAX_SOURCE_CHARS: usize = 120;

/// The sources of a piece of content. Text of the user and of Lango itself has a plain label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    /// Citations of untrusted sources, such as a page, a document or a command's output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untrusted: Vec<String>,
    /// Citations of private sources, such as files, memory, knowledge or documents.
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

    /// Returns the label of a file that the user attached: the user chose it, but did not write what is in
    /// it.
    pub fn attachment(name: &str) -> Self {
        let source = format!("the attachment {name}");
        Self::untrusted(&source).joined(&Self::private(&source))
    }

    /// Adds the sources of another label.
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

    pub(crate) fn sources_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.untrusted.iter_mut().chain(&mut self.private)
    }

    /// Returns the label without the sources for which `is_removed` returns true.
    #[must_use]
    pub fn without(mut self, is_removed: impl Fn(&str) -> bool) -> Self {
        self.untrusted.retain(|source| !is_removed(source));
        self.private.retain(|source| !is_removed(source));
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

/// Formats the sources for people. A plain label is empty.
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
    let source = lango_text::sanitize::one_line(source);
    let source = match source.char_indices().nth(MAX_SOURCE_CHARS) {
        Some((end, _)) => format!("{}…", &source[..end]),
        None if source.is_empty() => "an unnamed source".to_owned(),
        None => source,
    };
    if sources.len() < MAX_SOURCES && !sources.contains(&source) {
        sources.push(source);
    }
}

/// A text with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabeledText {
    pub text: String,
    pub label: Label,
}

impl LabeledText {
    /// Returns text of the user or of Lango itself.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            label: Label::default(),
        }
    }
}

/// The data that a call would send out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingData {
    pub to: Destination,
    /// The exact data.
    pub data: String,
}

/// The name of the host of a call that may contact any host, such as a command with network access.
pub const ANY_ADDRESS: &str = "any address";

/// The recipient of outgoing data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A host that the call names.
    Host(String),
    /// A remote agent.
    Agent(String),
    /// Hosts from the settings, independent of the call.
    Configured(Vec<String>),
}

impl Destination {
    /// Returns the hosts, or none if they are not known before the call runs.
    pub fn known_hosts(&self) -> Vec<String> {
        match self {
            Self::Host(name) if name == ANY_ADDRESS => Vec::new(),
            Self::Host(name) | Self::Agent(name) => vec![name.clone()],
            Self::Configured(hosts) => hosts.clone(),
        }
    }
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
    fn joining_keeps_both_kinds_and_names_a_few_sources() {
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

    /// B101: a source without a name is still named, and a long name is truncated.
    #[test]
    fn source_names_are_never_empty_and_limited() {
        assert!(Label::untrusted("").is_untrusted() && Label::private(" \n").is_private());
        assert!(
            Label::untrusted("é".repeat(10_000)).untrusted_sources()[0]
                .chars()
                .count()
                < 130
        );
    }

    #[test]
    fn labels_round_trip() {
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
