//! A system prompt: ordered, named sections, each with a cap (B41), joined into one text.

use crate::token_estimate;

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
    /// The most that one section may hold, in tokens.
    pub const MAX_TOKENS: usize = 8_000;

    /// A section within [`Section::CAP`].
    pub fn new(id: &str, text: &str) -> Self {
        Self::with_max_tokens(id, text, Self::MAX_TOKENS)
    }

    /// Invariant: what is kept stays within the cap; what was cut says so where it ends.
    pub fn with_max_tokens(id: &str, text: &str, cap: usize) -> Self {
        const TRUNCATED_MARKER: &str = "\n[cut here: this section is longer than its cap]";
        let text = text.trim();
        let text = if token_estimate::estimate(text) > cap {
            format!(
                "{}{TRUNCATED_MARKER}",
                token_estimate::truncate(
                    text,
                    cap.saturating_sub(token_estimate::estimate(TRUNCATED_MARKER))
                )
            )
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

/// The sections in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    sections: Vec<Section>,
}

impl Prompt {
    /// Empty sections are left out.
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

    /// The whole text: sections in order, one blank line between them.
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
    fn a_section_over_its_cap_is_cut_and_says_so() {
        let long = Section::new("safety", &"be careful ".repeat(20_000));
        assert!(token_estimate::estimate(&long.text) <= Section::MAX_TOKENS);
        assert!(long.text.ends_with("its cap]"));
    }

    #[test]
    fn empty_sections_leave_no_trace() {
        let prompt = Prompt::new([
            Section::new("a", " one "),
            Section::new("b", "\n"),
            Section::new("c", "two"),
        ]);
        assert_eq!(prompt.render(), "one\n\ntwo");
        assert_eq!(prompt.sections().len(), 2);
    }
}
