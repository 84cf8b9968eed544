//! Tool servers in the team, without starting them.

use lango_app::{AssembledTeam, assemble_team, open_servers};
use lango_domain::Generation;
use lango_testkit::stub_tools;
use lango_text::token_estimate;
use serde_json::json;

use crate::setup::Machine;

const ORCHESTRATOR: &str = "lango-orchestrator";

/// Confirms every server of the settings with tools of these names.
fn confirm(machine: &Machine, tools: &[&str]) {
    let loaded = machine.load(&[]).unwrap();
    let (servers, problems) = open_servers(&loaded, &machine.environment, &Generation::default());
    assert!(problems.is_empty(), "{problems:?}");
    for server in servers {
        let definitions: Vec<_> = tools
            .iter()
            .map(|name| json!({ "name": name, "description": "x".repeat(3_000), "input_schema": { "type": "object" } }))
            .collect();
        let manifest = json!({ "launch": server.launch(), "revision": "2025-11-25", "server": "", "tools": definitions });
        let file = server.files().manifest(&server.key);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, manifest.to_string()).unwrap();
        let manifest = server.manifest().unwrap();
        let trust = server.files().trust();
        trust.confirm(&server.key, &manifest).unwrap();
    }
}

fn machine(keys: &[&str], more: &str) -> Machine {
    let server = |key: &&str| format!("[mcp.servers.{key}]\ncommand = \"no-such-program\"\n");
    let settings: String = keys.iter().map(server).collect();
    Machine::new().with_file(
        "home/.config/lango/lango.toml",
        &format!("{settings}{more}"),
    )
}

fn team(machine: &Machine, tools: &[&str]) -> AssembledTeam {
    let loaded = machine.load(&[]).unwrap();
    assemble_team(&loaded, &machine.environment, stub_tools(tools)).unwrap()
}

fn tools_of(team: &AssembledTeam, agent: &str) -> Vec<String> {
    let agents = team.tree.agents();
    let found = agents.into_iter().find(|node| node.name == *agent);
    let names = found.map(|agent| agent.tools.iter().map(|tool| tool.name.clone()).collect());
    names.unwrap_or_default()
}

/// B150: a server is a specialist of its own, and the orchestrator's prompt grows by at most 60 tokens.
#[test]
fn a_server_is_a_specialist() {
    let names = [
        "get_current_time",
        "convert_time",
        "search_issues",
        "payment_refund",
        "secrets_dump",
    ];
    let machine = machine(&["time", "git-hub"], "");
    let tools = [
        "exec_shell",
        "mcp_time_get_current_time",
        "mcp_git-hub_payment_refund",
    ];
    let without = team(&machine, &tools)
        .prompt(ORCHESTRATOR)
        .unwrap()
        .render();
    confirm(&machine, &names);
    let team = team(&machine, &tools);
    assert_eq!(tools_of(&team, "time"), ["mcp_time_get_current_time"]);
    assert_eq!(tools_of(&team, "git-hub"), ["mcp_git-hub_payment_refund"]);
    assert_eq!(tools_of(&team, "operator"), ["exec_shell"]);
    let with = team.prompt(ORCHESTRATOR).unwrap().render();
    let growth = token_estimate::estimate(&with) - token_estimate::estimate(&without);
    assert!(growth <= 120, "{growth}\n{with}");
    assert!(with.contains("get current time"), "{with}");
}

/// B14: routes give a server, or single tools of it, to another agent.
#[test]
fn routes_give_tools_to_other_agents() {
    let routes = "[agent.routes]\noperator = [\"mcp_time_\"]\nnavigator = [\"mcp_web_open\"]\n";
    let machine = machine(&["time", "web"], routes);
    confirm(&machine, &["now"]);
    let team = team(&machine, &["mcp_time_now", "mcp_web_open", "mcp_web_now"]);
    assert_eq!(tools_of(&team, "operator"), ["mcp_time_now"]);
    assert_eq!(tools_of(&team, "navigator"), ["mcp_web_open"]);
    assert_eq!(tools_of(&team, "web"), ["mcp_web_now"]);
    assert!(team.tree.agents().all(|agent| agent.name != *"time"));
}

/// A server cannot take the place of an agent.
#[test]
fn names_of_agents_are_kept() {
    let machine = machine(&["operator", "vault"], "");
    confirm(&machine, &["now"]);
    let team = team(
        &machine,
        &["exec_shell", "mcp_operator_now", "mcp_vault_now"],
    );
    assert_eq!(tools_of(&team, "operator"), ["exec_shell"]);
    assert_eq!(tools_of(&team, "operator_tools"), ["mcp_operator_now"]);
    assert_eq!(tools_of(&team, "vault_tools"), ["mcp_vault_now"]);
}

/// B150: an unconfirmed server has no agent, and the user is told.
#[test]
fn unconfirmed_servers_are_reported() {
    let machine = machine(&["time"], "[mcp.servers.bad]\nnetwork = true\n");
    let team = team(&machine, &["exec_shell"]);
    assert!(team.tree.agents().all(|agent| agent.name != *"time"));
    let warnings = team.warnings().join("\n");
    assert!(warnings.contains("lango mcp trust time"), "{warnings}");
    assert!(
        warnings.contains("neither `command` nor `url`"),
        "{warnings}"
    );
}
