//! Where the words of every built-in tool come from, and which of them send data out.

use lango_app::{LazyStore, Toolset, knowledge_tools};
use lango_domain::{Tool, Trust};

use crate::setup::Machine;

/// Words of others that are not meant for others.
const PRIVATE_DATA: [&str; 20] = [
    "exec_shell",
    "exec_status",
    "exec_output",
    "fs_read",
    "fs_list",
    "fs_stat",
    "fs_edit",
    "fs_search",
    "graph_query",
    "graph_traverse",
    "graph_path",
    "librarian_pending_inquiries",
    "memory_list_observations",
    "memory_list_reflections",
    "memory_recall",
    "rag_index",
    "rag_retrieve",
    "reflect_summary",
    "search_knowledge",
    "search_learnings",
];
/// Words of others that anyone may read; getting them sends data out.
const PUBLIC_DATA: [&str; 2] = ["search_fetch", "search_web"];
/// Words of others: what a skill says, or what it is called.
const UNTRUSTED_DATA: [&str; 1] = ["list_skills"];
/// Lango's own words about what it did.
const OWN_DATA: [&str; 14] = [
    "create_skill",
    "exec_start",
    "exec_stop",
    "fs_delete",
    "fs_mkdir",
    "fs_write",
    "graph_add_fact",
    "graph_retire_fact",
    "librarian_dismiss_inquiry",
    "memory_forget",
    "memory_store",
    "observe_event",
    "save_knowledge",
    "save_learning",
];

fn tools(set: &[&str]) -> Vec<Tool> {
    let machine = Machine::new();
    let loaded = machine.load(set).unwrap();
    let hands = Toolset::new(&loaded, &machine.environment).unwrap();
    let stores = LazyStore::new(&loaded, &machine.environment);
    let mut tools = hands.tools();
    tools.extend(knowledge_tools(&loaded, &machine.environment, &hands, &stores).unwrap());
    tools
}

/// B101: a new tool says on purpose where its words come from.
#[test]
fn every_tool_says_where_its_words_come_from() {
    let wanted = |name: &str| match () {
        () if PRIVATE_DATA.contains(&name) => Some((Trust::Untrusted, true, false)),
        () if PUBLIC_DATA.contains(&name) => Some((Trust::Untrusted, false, true)),
        () if UNTRUSTED_DATA.contains(&name) => Some((Trust::Untrusted, false, false)),
        () if OWN_DATA.contains(&name) => Some((Trust::Own, false, false)),
        () => None,
    };
    let wrong: Vec<String> = tools(&[])
        .iter()
        .filter(|tool| {
            wanted(&tool.name) != Some((tool.trust, tool.is_private, tool.has_outgoing()))
        })
        .map(|tool| {
            format!(
                "{}: {:?}, private {}, sends {}",
                tool.name,
                tool.trust,
                tool.is_private,
                tool.has_outgoing()
            )
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

/// B103: a command that has a network may send anything anywhere.
#[test]
fn commands_with_a_network_send_data_out() {
    let sends = |set: &[&str]| {
        let tools = tools(set);
        let tools = tools
            .iter()
            .filter(|tool| tool.has_outgoing() && tool.name.starts_with("exec_"));
        tools.map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(sends(&[]), Vec::<String>::new());
    assert_eq!(
        sends(&["tools.exec.network=true"]),
        ["exec_shell", "exec_start"]
    );
}
