use serde_json::{Value, json};

use crate::setup::{TestDir, lango};

fn agent_names(tree: &Value) -> Vec<&str> {
    tree["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap())
        .collect()
}

/// S10, S11
#[test]
fn partition_assigns_every_tool() {
    let run = lango(&[
        "agent",
        "partition",
        "exec_shell",
        "fs_read",
        "skill_deploy",
        "browser_navigate",
        "crypto_sign",
        "secrets_get",
        "payment_send",
        "search_web",
        "rag_query",
        "graph_traverse",
        "save_knowledge_item",
        "create_skill_x",
        "list_skills",
        "librarian_pending_inquiries",
        "memory_store",
        "observe_event",
        "reflect_summary",
        "cron_add",
        "bg_submit",
        "workflow_run",
        "custom_action",
        "--json",
    ]);
    assert_eq!(
        run.json(),
        json!({
            "operator": ["exec_shell", "fs_read", "skill_deploy"],
            "navigator": ["browser_navigate"],
            "vault": ["crypto_sign", "secrets_get", "payment_send"],
            "librarian": ["search_web", "rag_query", "graph_traverse", "save_knowledge_item", "create_skill_x", "list_skills", "librarian_pending_inquiries"],
            "planner": [],
            "chronicler": ["memory_store", "observe_event", "reflect_summary"],
            "automator": ["cron_add", "bg_submit", "workflow_run"],
            "unmatched": ["custom_action"],
        })
    );
}

/// B14
#[test]
fn partition_lists_custom_agents_separately() {
    let dir = TestDir::new();
    dir.write(
        "a/reviewer.md",
        "---\ndescription: Reviews.\nprefixes: [review_]\n---\nReview.\n",
    );
    let run = dir.lango(&[
        "agent",
        "partition",
        "review_code",
        "github_x",
        "--json",
        "--set",
        "agent.agentsDir=a",
        "--set",
        "agent.routes={\"operator\":[\"github_\"]}",
    ]);
    let json = run.json();
    assert_eq!(json["custom"], json!({ "reviewer": ["review_code"] }));
    assert_eq!(json["operator"], json!(["github_x"]));
}

/// S04
#[test]
fn tree_contains_only_agents_with_tools_and_the_planner() {
    let tree = |tools: &str| lango(&["agent", "tree", "--tools", tools, "--json"]).json();
    assert_eq!(
        agent_names(&tree("exec_shell,search_web")),
        ["operator", "librarian", "planner"]
    );
    assert_eq!(agent_names(&tree("")), ["planner"]);
    let unmatched = tree("custom_x");
    assert_eq!(agent_names(&unmatched), ["planner"]);
    assert_eq!(unmatched["unmatched"], json!(["custom_x"]));
    assert_eq!(
        unmatched["root"],
        json!({ "name": "lango-orchestrator", "tools": [] })
    );
    assert_eq!(agent_names(&tree("all")).len(), 7);
}

/// S02
#[test]
fn single_agent_mode_has_one_agent_with_every_tool() {
    let single = [
        "--set",
        "agent.multiAgent=false",
        "--json",
        "--tools",
        "exec_shell,custom_x",
    ];
    let tree = lango(&[&["agent", "tree"][..], &single].concat()).json();
    assert_eq!(
        tree["root"],
        json!({ "name": "lango-agent", "tools": ["exec_shell", "custom_x"] })
    );
    assert_eq!(tree["agents"], json!([]));
    let prompt = lango(&[&["agent", "prompt"][..], &single].concat()).json();
    let ids: Vec<&str> = prompt["sections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["identity", "safety", "conversation", "tool_usage"]);
}

/// S02, through the environment
#[test]
fn environment_variable_sets_the_mode() {
    let run = TestDir::new().lango_with(
        &["agent", "list", "--json"],
        &[("LANGO_AGENT__MULTI_AGENT", "false")],
    );
    assert_eq!(run.json()["mode"], "single");
    assert_eq!(agent_names(&run.json()), ["lango-agent"]);
}

/// S32, S33, S34
#[test]
fn prompt_names_only_existing_agents() {
    let run = lango(&["agent", "prompt", "--tools", "exec_shell"]);
    for part in [
        "### operator",
        "### planner",
        "NEVER invent or abbreviate agent names",
        "At most 5",
    ] {
        assert!(run.stdout.contains(part), "{part}");
    }
    for part in [
        "navigator",
        "vault",
        "librarian",
        "automator",
        "chronicler",
        "exec_shell",
    ] {
        assert!(!run.stdout.contains(part), "{part}");
    }
}

#[test]
fn prompt_estimates_tokens_per_section() {
    let json = lango(&["agent", "prompt", "operator", "--tools", "all", "--json"]).json();
    assert_eq!(json["agent"], "operator");
    assert_eq!(json["estimate"], true);
    let sections = json["sections"].as_array().unwrap();
    let ids: Vec<&str> = sections
        .iter()
        .map(|section| section["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["safety", "conversation", "tool_usage", "instruction"]);
    let sum: u64 = sections
        .iter()
        .map(|section| section["tokens"].as_u64().unwrap())
        .sum();
    assert!(json["tokens"].as_u64().unwrap().abs_diff(sum) < 10);
}

#[test]
fn unknown_agent_gets_a_suggestion() {
    let run = lango(&["agent", "prompt", "operater", "--json"]);
    assert_eq!(run.exit, 2);
    assert_eq!(run.error()["hint"], "did you mean `operator`?");
    assert!(run.stdout.is_empty());
}

/// S21
#[test]
fn describe_prints_one_line() {
    assert_eq!(
        lango(&["agent", "describe", "exec_shell", "fs_read"]).stdout,
        "command execution, file operations\n"
    );
    let json = lango(&[
        "agent",
        "describe",
        "exec_shell",
        "exec_run",
        "odd",
        "--json",
    ])
    .json();
    assert_eq!(
        json,
        json!({ "description": "command execution, general actions", "capabilities": ["command execution", "general actions"] })
    );
}

#[test]
fn agent_list_shows_skipped_agents() {
    let dir = TestDir::new();
    dir.write("a/broken.md", "---\ndescription: x\noops: 1\n---\nx\n");
    let run = dir.lango(&[
        "agent",
        "list",
        "--json",
        "--set",
        "agent.agentsDir=a",
        "--tools",
        "exec_shell",
    ]);
    let json = run.json();
    assert_eq!(json["mode"], "multi");
    assert_eq!(agent_names(&json), ["operator", "planner"]);
    assert_eq!(json["agents"][0]["remote"], false);
    assert_eq!(
        json["agents"][0]["capabilities"],
        json!(["command execution"])
    );
    let skipped = json["skipped"].as_array().unwrap();
    assert!(skipped.iter().any(|agent| agent["name"] == "vault"));
    let broken = skipped
        .iter()
        .find(|agent| agent["name"] == "broken")
        .unwrap();
    assert!(
        broken["reason"]
            .as_str()
            .unwrap()
            .contains("broken.md:3: unknown key `oops`"),
        "{broken}"
    );
    assert!(run.stderr.contains("broken.md:3"), "{}", run.stderr);
}

#[test]
fn piped_output_has_no_color() {
    for command in [
        &["agent", "list", "--tools", "all"][..],
        &["agent", "tree", "--tools", "all,x"],
        &["config", "show"],
    ] {
        let run = lango(command);
        assert_eq!(run.exit, 0);
        assert!(!run.stdout.contains('\u{1b}'), "{command:?}");
    }
}

/// S38
#[test]
fn route_follows_the_keywords() {
    for (request, agent) in [
        ("schedule a backup", "automator"),
        ("an inquiry about tea", "librarian"),
        ("mind the gap", "librarian"),
    ] {
        let json = lango(&["route", request, "--tools", "all", "--json"]).json();
        assert_eq!(json["decision"], "agent");
        assert_eq!(json["agent"], agent);
        assert!(!json["ranking"][0]["matched"].as_array().unwrap().is_empty());
    }
    for (request, decision) in [
        ("hello", "direct"),
        ("…", "none"),
        ("send 5 usdc to bob", "none"),
    ] {
        // A team without the vault.
        let json = lango(&["route", request, "--tools", "fs_read", "--json"]).json();
        assert_eq!(
            (&json["decision"], &json["agent"]),
            (&json!(decision), &Value::Null),
            "{request}"
        );
    }
}
