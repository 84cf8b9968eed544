use lango_team::{AgentRegistry, CapabilityMap, capability_description, tool_capability};

use crate::setup::{agent, tree};

fn map() -> CapabilityMap {
    CapabilityMap::from_specs(&AgentRegistry::built_in().specs)
}

/// S20
#[test]
fn each_prefix_has_its_phrase() {
    let map = map();
    for (tool, phrase) in [
        ("exec_shell", "command execution"),
        ("fs_read", "file operations"),
        ("skill_run", "skill management"),
        ("browser_open", "web browsing"),
        ("crypto_sign", "cryptography"),
        ("secrets_get", "secret management"),
        ("payment_send", "blockchain payments (USDC on Base)"),
        ("search_web", "information search"),
        ("rag_retrieve", "knowledge retrieval (RAG)"),
        ("graph_query", "knowledge graph traversal"),
        ("save_knowledge_item", "knowledge persistence"),
        ("save_learning", "learning persistence"),
        ("create_skill", "skill creation"),
        ("list_skills", "skill listing"),
        (
            "librarian_pending_inquiries",
            "knowledge inquiries and gap detection",
        ),
        ("memory_store", "memory storage and recall"),
        ("observe_event", "event observation"),
        ("reflect_now", "reflection and summarization"),
        ("cron_add", "cron job scheduling"),
        ("bg_submit", "background task execution"),
        ("workflow_run", "workflow pipeline execution"),
        ("custom_action", "general actions"),
        ("", "general actions"),
    ] {
        assert_eq!(tool_capability(&map, tool), phrase, "{tool}");
    }
}

/// S20
#[test]
fn the_longest_prefix_wins() {
    let mut specs = AgentRegistry::built_in().specs;
    let mut web = crate::setup::user_spec("web", &["search_"]);
    web.prefixes[0].text = "search_web".into();
    web.prefixes[0].capability = Some("web search".into());
    specs.push(web);
    let map = CapabilityMap::from_specs(&specs);
    assert_eq!(tool_capability(&map, "search_web"), "web search");
    assert_eq!(tool_capability(&map, "search_docs"), "information search");
}

/// S21
#[test]
fn phrases_are_distinct_and_in_tool_order() {
    let describe = |tools: &[&str]| capability_description(&map(), tools.iter().copied());
    assert_eq!(
        describe(&["exec_shell", "fs_read"]),
        "command execution, file operations"
    );
    assert_eq!(
        describe(&["crypto_sign", "secrets_get", "payment_send"]),
        "cryptography, secret management, blockchain payments (USDC on Base)"
    );
    assert_eq!(describe(&["exec_shell", "exec_run"]), "command execution");
    assert_eq!(
        describe(&["fs_read", "exec_shell", "fs_write"]),
        "file operations, command execution"
    );
    assert_eq!(describe(&["custom_action"]), "general actions");
    assert_eq!(describe(&[]), "");
}

/// S22
#[test]
fn descriptions_carry_capabilities_and_no_tool_names() {
    let tree = tree(&[
        "exec_shell",
        "fs_read",
        "crypto_sign",
        "secrets_get",
        "payment_send",
    ]);
    assert!(
        agent(&tree, "operator")
            .description
            .contains("command execution, file operations")
    );
    assert!(
        agent(&tree, "vault")
            .description
            .contains("cryptography, secret management, blockchain payments (USDC on Base)")
    );
    for specialist in &tree.specialists {
        for tool in [
            "exec_shell",
            "fs_read",
            "crypto_sign",
            "secrets_get",
            "payment_send",
        ] {
            assert!(!specialist.description.contains(tool));
        }
    }
}

/// S20: a prefix that a definition lists without a phrase keeps the built-in one; the user's own comes first.
#[test]
fn phrases_do_not_depend_on_the_agent_that_lists_a_prefix() {
    let map = CapabilityMap::from_specs(&[crate::setup::user_spec("operator", &["exec", "fs_"])]);
    assert_eq!(tool_capability(&map, "exec_shell"), "command execution");
    let mut mine = crate::setup::user_spec("mine", &["fs_", "*"]);
    mine.prefixes[0].capability = Some("my files".into());
    mine.prefixes[1].capability = Some("odd jobs".into());
    for specs in [
        vec![mine.clone()],
        [AgentRegistry::built_in().specs, vec![mine.clone()]].concat(),
        [vec![mine], AgentRegistry::built_in().specs].concat(),
    ] {
        let map = CapabilityMap::from_specs(&specs);
        assert_eq!(tool_capability(&map, "fs_read"), "my files");
        assert_eq!(tool_capability(&map, "whatever"), "odd jobs");
    }
}
