//! The team of the benchmarks: all agents, with four tools each except for the planner.

use lango_domain::{AgentTree, Safety, Tool};
use lango_team::{Config, build_agent_tree};
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of the tools.
#[derive(Deserialize, JsonSchema)]
struct BenchToolArgs {
    /// Path relative to the workspace.
    #[serde(default)]
    path: String,
}

const TOOL_NAMES: [&str; 24] = [
    "exec_shell",
    "fs_read",
    "fs_write",
    "fs_list",
    "browser_navigate",
    "browser_extract",
    "browser_action",
    "browser_screenshot",
    "crypto_sign",
    "crypto_hash",
    "secrets_get",
    "payment_send",
    "search_web",
    "rag_retrieve",
    "graph_query",
    "save_knowledge",
    "cron_add",
    "cron_list",
    "bg_submit",
    "workflow_run",
    "memory_store",
    "memory_recall",
    "observe_event",
    "reflect_summary",
];

pub fn build_tree() -> anyhow::Result<AgentTree> {
    let tool = |name: &str| {
        Tool::new(
            name,
            format!("Does what {name} says."),
            Safety::Safe,
            |_, args: BenchToolArgs| async move { Ok(format!("contents of {}", args.path)) },
        )
    };
    let tools = TOOL_NAMES.iter().map(|name| tool(name)).collect();
    Ok(build_agent_tree(Config {
        tools,
        ..Config::default()
    })?)
}

/// The request of every turn.
pub const REQUEST: &str = "task: read the file";
