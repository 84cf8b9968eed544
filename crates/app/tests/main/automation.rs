//! The automator's tools within the assembled team.

use lango_app::{
    Assistant, AssistantOptions, CapabilityContext, LazyStores, Recording, Toolset,
    capability_tools,
};
use lango_testkit::tool_context;
use serde_json::json;

use crate::setup::Machine;

/// Agents and tools are known to the automator's tools as soon as the team is built.
#[tokio::test]
async fn unknown_agents_and_tools_are_found_by_the_automators_tools() {
    let machine = Machine::new();
    let loaded = machine.load(&["agent.provider=offline"]).unwrap();
    let toolset = Toolset::new(&loaded, &machine.environment).unwrap();
    let stores = LazyStores::new(&loaded, &machine.environment);
    let tools = || {
        let context = CapabilityContext::new(&loaded, &machine.environment, &toolset, &stores);
        capability_tools(&context).unwrap()
    };
    let options = AssistantOptions {
        stores: &stores,
        tools: tools(),
        catalog: toolset.catalog().clone(),
        approver: None,
        recording: &Recording::Off,
        secrets: None,
        remote_agents: None,
    };
    let _assistant = Assistant::open(&loaded, &machine.environment, options).unwrap();
    let step = |step: &str| json!({ "yaml_content": format!("name: a\nsteps:\n  - {step}\n") });
    for (tool, args, expected) in [
        (
            "workflow_run",
            step("{id: a, agent: operater, prompt: x}"),
            "did you mean `operator`?",
        ),
        (
            "workflow_run",
            step("{id: a, tool: exec_shel}"),
            "did you mean `exec_shell`?",
        ),
        (
            "cron_add",
            json!({ "when": "every day at 8", "prompt": "x", "agent": "libarian" }),
            "did you mean `librarian`?",
        ),
        (
            "cron_add",
            json!({ "when": "every day at 8", "prompt": "x", "allow": ["fs_reed"] }),
            "did you mean `fs_read`?",
        ),
    ] {
        let tools = tools();
        let found = tools.iter().find(|found| found.name == tool).unwrap();
        let error = found.call(tool_context(), args).await.unwrap_err().0;
        assert!(error.contains(expected), "{tool}: {error}");
    }
}
