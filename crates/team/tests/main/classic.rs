use std::path::Path;

use lango_team::{AgentRegistry, build_agent_tree};

use crate::setup::{agent, config, specialist_names, tool_names};

/// S06: the four-agent layout of earlier versions is data, not code.
#[test]
fn the_classic_team_can_be_defined_as_data() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/classic-team/agents");
    let registry = AgentRegistry::from_folder(&folder).unwrap();
    assert!(registry.errors.is_empty(), "{:?}", registry.errors);
    let mut config = config(&[
        "exec_shell",
        "crypto_sign",
        "graph_traverse",
        "graph_query",
        "memory_store",
        "odd_tool",
    ]);
    config.specs = registry.specs;
    let tree = build_agent_tree(config).unwrap();
    assert_eq!(tree.root.name.as_str(), "lango-orchestrator");
    assert_eq!(
        specialist_names(&tree),
        ["executor", "researcher", "planner", "memory-manager"]
    );
    assert_eq!(
        tool_names(&agent(&tree, "executor").tools),
        ["exec_shell", "crypto_sign", "odd_tool"]
    );
    assert_eq!(
        tool_names(&agent(&tree, "researcher").tools),
        ["graph_traverse", "graph_query"]
    );
    assert_eq!(
        tool_names(&agent(&tree, "memory-manager").tools),
        ["memory_store"]
    );
    assert!(
        tree.unmatched.is_empty(),
        "the executor claims all other tools"
    );
}
