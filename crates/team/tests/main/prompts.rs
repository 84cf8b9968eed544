use std::fs;
use std::path::Path;

use lango_domain::{Prompt, Section};
use lango_team::PromptSources;

fn ids(prompt: &Prompt) -> Vec<&str> {
    prompt
        .sections()
        .iter()
        .map(|section| section.id())
        .collect()
}

fn text<'a>(prompt: &'a Prompt, id: &str) -> &'a str {
    prompt
        .sections()
        .iter()
        .find(|section| section.id() == id)
        .unwrap()
        .text()
}

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// S30, S31
#[test]
fn each_kind_of_agent_has_its_sections_in_order() {
    let sources = PromptSources::default();
    assert_eq!(
        ids(&sources.single()),
        ["identity", "safety", "conversation", "tool_usage"]
    );
    assert_eq!(
        ids(&sources.orchestrator("table")),
        ["identity", "safety", "conversation", "instruction"]
    );
    assert_eq!(
        ids(&sources.specialist("x", "do", true)),
        ["safety", "conversation", "tool_usage", "instruction"]
    );
    assert_eq!(
        ids(&sources.specialist("x", "do", false)),
        ["safety", "conversation", "instruction"]
    );
    assert_ne!(
        text(&sources.single(), "identity"),
        text(&sources.orchestrator("t"), "identity")
    );
}

/// S30
#[test]
fn files_replace_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("AGENTS.md", "I am mine."),
        ("SAFETY.md", "Be safe."),
        ("CONVERSATION_RULES.md", "  \n"),
        ("TOOL_USAGE.md", "Use tools."),
        ("HOUSE_STYLE.md", "Rhyme."),
        ("notes.txt", "ignored"),
    ] {
        write(folder.path(), name, text);
    }
    let sources = PromptSources::from_folder(folder.path()).unwrap();
    let single = sources.single();
    assert_eq!(
        ids(&single),
        ["identity", "safety", "conversation", "tool_usage"]
    );
    assert_eq!(sources.ignored, [folder.path().join("HOUSE_STYLE.md")]);
    assert_eq!(text(&single, "identity"), "I am mine.");
    assert_eq!(text(&single, "safety"), "Be safe.");
    assert_eq!(
        text(&single, "conversation"),
        text(&PromptSources::default().single(), "conversation"),
        "blank"
    );
}

/// S31
#[test]
fn the_users_identity_and_tool_usage_are_not_in_the_orchestrators_prompt() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "AGENTS.md", "Use Exec and the Browser.");
    write(folder.path(), "TOOL_USAGE.md", "Crypto first.");
    let prompt = PromptSources::from_folder(folder.path())
        .unwrap()
        .orchestrator("table")
        .render();
    assert!(!prompt.contains("Exec") && !prompt.contains("Crypto"));
}

/// S39
#[test]
fn an_agents_folder_replaces_only_its_sections() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "agents/vault/IDENTITY.md",
        "You are a dragon.",
    );
    write(folder.path(), "agents/vault/SAFETY.md", "Guard the gold.");
    let sources = PromptSources::from_folder(folder.path()).unwrap();
    let vault = sources.specialist("vault", "default", true);
    assert!(text(&vault, "instruction").starts_with("You are a dragon."));
    assert!(
        text(&vault, "instruction").contains("\n[REJECT] "),
        "a replaced instruction still explains how to reject a task"
    );
    assert_eq!(text(&vault, "safety"), "Guard the gold.");
    assert_eq!(vault.sections().last().unwrap().id(), Section::INSTRUCTION);
    let operator = sources.specialist("operator", "default", true);
    assert_eq!(text(&operator, "instruction"), "default");
    assert_ne!(text(&operator, "safety"), "Guard the gold.");
    assert_eq!(sources.customized_agents().collect::<Vec<_>>(), ["vault"]);
}

#[test]
fn a_prompt_that_is_not_utf8_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("SAFETY.md"), [0xff, 0xfe]).unwrap();
    let error = PromptSources::from_folder(folder.path())
        .unwrap_err()
        .to_string();
    assert!(error.contains("SAFETY.md"), "{error}");
}
