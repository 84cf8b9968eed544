//! The files of `agents/` and `prompts/`, embedded by the build script.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Returns the text of a file in `prompts/`. A test ensures that every file used exists.
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
    fn all_used_prompts_exist() {
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
