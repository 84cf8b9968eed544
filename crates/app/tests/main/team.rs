use lango_app::{AssembledTeam, Toolset, assemble_team};
use lango_team::{AgentRegistry, Routes, ToolClaims};
use lango_testkit::stub_tools;

use crate::setup::Machine;

fn team(machine: &Machine, tools: &[&str], set: &[&str]) -> AssembledTeam {
    assemble_team(
        &machine.load(set).unwrap(),
        &machine.environment,
        stub_tools(tools),
    )
    .unwrap()
}

fn names(team: &AssembledTeam) -> Vec<&str> {
    team.tree
        .agents()
        .map(|agent| agent.name.as_str())
        .collect()
}

/// B13
#[test]
fn every_built_in_tool_has_an_owner() {
    let machine = Machine::new();
    let toolset = Toolset::new(&machine.load(&[]).unwrap(), &machine.environment).unwrap();
    let claims = ToolClaims::new(&AgentRegistry::built_in().specs, &Routes::new()).unwrap();
    for tool in toolset.tools() {
        assert!(
            claims.owner(&tool.name).is_some(),
            "{} has no owner",
            tool.name
        );
    }
}

/// S01, S02
#[test]
fn settings_select_the_mode() {
    let machine = Machine::new();
    assert_eq!(
        names(&team(&machine, &["exec_shell"], &[])),
        ["lango-orchestrator", "operator", "planner"]
    );
    assert_eq!(
        names(&team(
            &machine,
            &["exec_shell"],
            &["agent.multiAgent=false"]
        )),
        ["lango-agent"]
    );
}

/// S06
#[test]
fn custom_team_has_only_its_own_agents() {
    let machine = Machine::new()
        .with_file(
            "work/lango.toml",
            "[agent]\nteam = \"custom\"\nagentsDir = \"a\"\n",
        )
        .with_file(
            "work/a/solo.md",
            "---\ndescription: All.\nprefixes: ['*']\n---\nDo it.\n",
        )
        .trust();
    assert_eq!(
        names(&team(&machine, &["exec_shell"], &[])),
        ["lango-orchestrator", "solo"]
    );
    let error = assemble_team(
        &Machine::new().load(&["agent.team=custom"]).unwrap(),
        &machine.environment,
        vec![],
    );
    assert!(error.err().unwrap().message.contains("agentsDir"));
}

/// B14
#[test]
fn broken_agent_file_is_reported_and_skipped() {
    let machine = Machine::new()
        .with_file(
            "work/a/good.md",
            "---\ndescription: Good.\nprefixes: [good_]\n---\nDo it.\n",
        )
        .with_file("work/a/bad.md", "---\ndescription: Bad.\n");
    let team = team(&machine, &["good_one"], &["agent.agentsDir=a"]);
    assert_eq!(names(&team), ["lango-orchestrator", "planner", "good"]);
    assert!(
        team.warnings()[0].contains("bad.md:2:"),
        "{:?}",
        team.warnings()
    );
}

/// S39
#[test]
fn prompt_folder_customizes_its_agent() {
    let machine = Machine::new()
        .with_file("work/p/agents/operator/IDENTITY.md", "You are a robot.")
        .with_file("work/p/agents/operater/IDENTITY.md", "Typo.")
        .with_file("work/p/SAFETY.md", "Mind the Browser.");
    let team = team(&machine, &["exec_shell"], &["agent.promptsDir=p"]);
    let prompt = team.tree.agent("operator").unwrap().prompt.render();
    assert!(prompt.contains("You are a robot.") && prompt.contains("Mind the Browser."));
    assert_eq!(
        prompt,
        team.prompt("operator").unwrap().render(),
        "the shown prompt is the one that the model reads"
    );
    let warnings = team.warnings().join("\n");
    assert!(
        warnings.contains("`operater`") && warnings.contains("browser"),
        "{warnings}"
    );
}

#[test]
fn unknown_agents_get_suggestions() {
    let machine = Machine::new();
    let team = team(&machine, &["exec_shell"], &[]);
    let error = team.prompt("operater").unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `operator`?"));
    assert!(
        team.prompt("vault")
            .unwrap_err()
            .message
            .contains("no tools")
    );
    assert!(
        team.prompt("zzz")
            .unwrap_err()
            .hint
            .unwrap()
            .contains("lango-orchestrator, operator, planner")
    );
}

/// B14
#[test]
fn build_error_mentions_broken_agent_files() {
    let machine = Machine::new()
        .with_file("work/a/broken.md", "---\ndescription: x\n")
        .with_file(
            "work/lango.toml",
            "[agent]\nagentsDir = \"a\"\n\nroutes.broken = [\"x_\"]\n",
        )
        .trust();
    let error = assemble_team(&machine.load(&[]).unwrap(), &machine.environment, vec![])
        .err()
        .unwrap();
    assert!(
        error.message.contains("lango.toml:4: agent.routes.broken")
            && error.message.contains("broken.md:2:"),
        "{error}"
    );
    let single = assemble_team(
        &machine.load(&["agent.multiAgent=false"]).unwrap(),
        &machine.environment,
        vec![],
    );
    assert!(single.is_err(), "routes are checked in both modes");
}

#[test]
fn warns_about_misleading_definitions() {
    let machine = Machine::new().with_file(
        "work/a/zed.md",
        "---\ndescription: Uses the browser and asks vault.\nprefixes: [zed_]\n---\nx\n",
    );
    let warnings = team(&machine, &["zed_x"], &["agent.agentsDir=a"])
        .warnings()
        .join("\n");
    assert!(
        warnings.contains("zed.md: `browser`") && warnings.contains("names another agent, vault"),
        "{warnings}"
    );
    let empty = Machine::new().with_file("work/a/notes.txt", "");
    let warnings = team(&empty, &[], &["agent.team=custom", "agent.agentsDir=a"])
        .warnings()
        .join("\n");
    assert!(warnings.contains("no specialists"), "{warnings}");
}
