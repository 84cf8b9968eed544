//! System prompts: ordered, named sections, each with a cap (B41), joined into one text.

use lango_text::token_estimate;

/// One named part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    id: String,
    text: String,
}

impl Section {
    pub const IDENTITY: &'static str = "identity";
    pub const SAFETY: &'static str = "safety";
    pub const CONVERSATION: &'static str = "conversation";
    pub const TOOL_USAGE: &'static str = "tool_usage";
    pub const INSTRUCTION: &'static str = "instruction";
    /// The default cap of a section, in tokens.
    pub const MAX_TOKENS: usize = 8_000;

    /// Returns a section within [`Section::MAX_TOKENS`].
    pub fn new(id: &str, text: &str) -> Self {
        Self::with_max_tokens(id, text, Self::MAX_TOKENS)
    }

    /// Returns a section within a cap. A truncated text ends with a marker, which counts toward the cap.
    pub fn with_max_tokens(id: &str, text: &str, cap: usize) -> Self {
        const TRUNCATED_MARKER: &str = "\n[cut here: this section is longer than its cap]";
        let text = text.trim();
        let text = if token_estimate::estimate(text) > cap {
            let cap = cap.saturating_sub(token_estimate::estimate(TRUNCATED_MARKER));
            format!("{}{TRUNCATED_MARKER}", token_estimate::truncate(text, cap))
        } else {
            text.to_owned()
        };
        Self {
            id: id.to_owned(),
            text,
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A prompt: sections in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    sections: Vec<Section>,
}

impl Prompt {
    /// Returns a prompt of the sections that are not empty.
    pub fn new(sections: impl IntoIterator<Item = Section>) -> Self {
        Self {
            sections: sections
                .into_iter()
                .filter(|section| !section.text.is_empty())
                .collect(),
        }
    }

    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the text of all sections, separated by blank lines.
    pub fn render(&self) -> String {
        let texts: Vec<&str> = self
            .sections
            .iter()
            .map(|section| section.text.as_str())
            .collect();
        texts.join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B41
    #[test]
    fn a_section_over_its_cap_is_truncated_with_a_marker() {
        let long = Section::new("safety", &"be careful ".repeat(20_000));
        assert!(token_estimate::estimate(&long.text) <= Section::MAX_TOKENS);
        assert!(long.text.ends_with("its cap]"));
    }

    #[test]
    fn empty_sections_are_omitted() {
        let prompt = Prompt::new([
            Section::new("a", " one "),
            Section::new("b", "\n"),
            Section::new("c", "two"),
        ]);
        assert_eq!(prompt.render(), "one\n\ntwo");
        assert_eq!(prompt.sections().len(), 2);
    }
}
