//! The trust of the output of every built-in tool, and the tools that send data out.

use lango_app::{CapabilityContext, LazyStores, Toolset, capability_tools};
use lango_domain::{Tool, Trust};

use crate::setup::Machine;

/// Tools with untrusted, private output.
const PRIVATE_DATA: [&str; 29] = [
    "payment_history",
    "bg_list",
    "bg_result",
    "bg_status",
    "cron_history",
    "cron_list",
    "workflow_list",
    "workflow_status",
    "workflow_validate",
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
/// Tools with untrusted, public output, whose calls send data out.
const PUBLIC_DATA: [&str; 8] = [
    "browser_action",
    "browser_extract",
    "browser_navigate",
    "browser_screenshot",
    "browser_search",
    "payment_x402_fetch",
    "search_fetch",
    "search_web",
];
/// Tools with untrusted output that send nothing.
const UNTRUSTED_DATA: [&str; 2] = ["browser_observe", "list_skills"];
/// Tools with trusted output: Lango's own reports.
const OWN_DATA: [&str; 33] = [
    "crypto_decrypt",
    "crypto_encrypt",
    "crypto_hash",
    "crypto_sign",
    "crypto_verify",
    "secrets_delete",
    "secrets_get",
    "secrets_store",
    "payment_create_wallet",
    "payment_send",
    "bg_cancel",
    "cron_pause",
    "cron_remove",
    "cron_resume",
    "cron_run",
    "workflow_approve",
    "workflow_cancel",
    "workflow_retry",
    "workflow_save",
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

/// Tools with trusted, private output: names in the vault.
const PRIVATE_NAMES: [&str; 2] = ["crypto_keys", "secrets_list"];
/// Tools with trusted, private output: the user's money.
const OWN_PRIVATE_DATA: [&str; 3] = ["payment_balance", "payment_limits", "payment_wallet_info"];

/// Tools with trusted output whose work may deliver its results to others.
const DELIVERING: [&str; 3] = ["bg_submit", "cron_add", "workflow_run"];

fn tools(set: &[&str]) -> Vec<Tool> {
    let machine = Machine::new();
    let loaded = machine.load(set).unwrap();
    let toolset = Toolset::new(&loaded, &machine.environment).unwrap();
    let store = LazyStores::new(&loaded, &machine.environment);
    let context = CapabilityContext::new(&loaded, &machine.environment, &toolset, &store);
    capability_tools(&context).unwrap()
}

/// B101: every tool, including new ones, is listed here.
#[test]
fn every_tool_declares_trust_of_its_output() {
    let expected = |name: &str| match () {
        () if PRIVATE_DATA.contains(&name) => Some((Trust::Untrusted, true, false)),
        () if PUBLIC_DATA.contains(&name) => Some((Trust::Untrusted, false, true)),
        () if UNTRUSTED_DATA.contains(&name) => Some((Trust::Untrusted, false, false)),
        () if OWN_DATA.contains(&name) => Some((Trust::Own, false, false)),
        () if PRIVATE_NAMES.contains(&name) => Some((Trust::Own, true, false)),
        () if OWN_PRIVATE_DATA.contains(&name) => Some((Trust::Own, true, false)),
        () if DELIVERING.contains(&name) => Some((Trust::Own, false, true)),
        () => None,
    };
    let payments = [
        "payment.enabled=true",
        "payment.network.rpcUrl=http://127.0.0.1:1",
    ];
    let wrong: Vec<String> = tools(&payments)
        .iter()
        .filter(|tool| {
            expected(&tool.name) != Some((tool.trust, tool.is_private, tool.has_outgoing()))
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

/// B103: a command with network access may send any data.
#[test]
fn networked_commands_are_outgoing() {
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
