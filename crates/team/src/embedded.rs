//! The files of `agents/` and `prompts/`, as the build put them into the binary.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The text of one file of `prompts/`; the build breaks a test, not a user, when it is missing.
pub fn prompt(name: &str) -> &'static str {
    PROMPT_FILES
        .iter()
        .find(|(file, _)| *file == name)
        .map_or("", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prompt_that_the_code_names_is_there() {
        for name in [
            "AGENTS.md",
            "CONVERSATION_RULES.md",
            "HANDING_BACK.md",
            "ORCHESTRATOR.md",
            "ORCHESTRATOR_IDENTITY.md",
            "SAFETY.md",
            "TOOL_USAGE.md",
        ] {
            assert!(!prompt(name).trim().is_empty(), "{name}");
        }
        assert_eq!(AGENT_FILES.len(), 7);
    }
}
