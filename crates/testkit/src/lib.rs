//! Shared test support. Development only: no shipped crate depends on it.

pub mod conformance;
pub mod endless;
pub mod golden;
pub mod invariants;
pub mod model_server;
pub mod paid_servers;
pub mod pdf;
pub mod script;
pub mod script_runner;
pub mod scripted;
pub mod scripted_secrets;
pub mod stores;
mod tool_context;
mod transcript;
pub mod usdc_chain;

use lango_domain::Tool;

pub use tool_context::{tool_context, tool_context_for};

/// One tool for each prefix of the partition table (S10): enough for the whole team.
pub const ONE_TOOL_PER_PREFIX: [&str; 21] = [
    "exec_shell",
    "fs_read",
    "skill_deploy",
    "browser_navigate",
    "crypto_sign",
    "secrets_get",
    "payment_send",
    "search_web",
    "rag_retrieve",
    "graph_traverse",
    "save_knowledge",
    "save_learning",
    "create_skill",
    "list_skills",
    "librarian_pending_inquiries",
    "memory_store",
    "observe_event",
    "reflect_summary",
    "cron_add",
    "bg_submit",
    "workflow_run",
];

/// Returns stub tools with these names.
pub fn stub_tools(names: &[&str]) -> Vec<Tool> {
    names.iter().map(|name| Tool::stub(*name)).collect()
}
