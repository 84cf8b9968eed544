use lango_domain::SpecOrigin;
use lango_team::{
    AgentRegistry, ClaimError, RoleToolSet, Routes, ToolClaims, partition_tools, tools_for_spec,
};
use lango_testkit::{ONE_TOOL_PER_PREFIX, stub_tools};
use proptest::prelude::*;

use crate::setup::{routes, tool_names, user_spec};

fn partition(tools: &[&str]) -> RoleToolSet {
    let specs = AgentRegistry::built_in().specs;
    let claims = ToolClaims::new(&specs, &Routes::new()).unwrap();
    partition_tools(&specs, &claims, stub_tools(tools))
}

/// S10
#[test]
fn each_prefix_belongs_to_its_role() {
    let set = partition(&[
        "exec_shell",
        "fs_read",
        "skill_deploy",
        "browser_navigate",
        "browser_screenshot",
        "crypto_sign",
        "secrets_get",
        "payment_send",
        "search_web",
        "rag_query",
        "graph_traverse",
        "save_knowledge_item",
        "save_learning_rule",
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
    ]);
    assert_eq!(
        tool_names(&set.operator),
        ["exec_shell", "fs_read", "skill_deploy"]
    );
    assert_eq!(
        tool_names(&set.navigator),
        ["browser_navigate", "browser_screenshot"]
    );
    assert_eq!(
        tool_names(&set.vault),
        ["crypto_sign", "secrets_get", "payment_send"]
    );
    assert_eq!(
        tool_names(&set.librarian),
        [
            "search_web",
            "rag_query",
            "graph_traverse",
            "save_knowledge_item",
            "save_learning_rule",
            "create_skill_x",
            "list_skills",
            "librarian_pending_inquiries"
        ]
    );
    assert_eq!(
        tool_names(&set.chronicler),
        ["memory_store", "observe_event", "reflect_summary"]
    );
    assert_eq!(
        tool_names(&set.automator),
        ["cron_add", "bg_submit", "workflow_run"]
    );
    assert_eq!(tool_names(&set.unmatched), ["custom_action"]);
    assert!(set.planner.is_empty() && set.custom.is_empty());
}

/// S10
#[test]
fn the_exec_prefix_has_no_underscore() {
    assert_eq!(
        tool_names(&partition(&["exec", "execute_all", "exec_bg"]).operator).len(),
        3
    );
}

/// S10 checks the roles one after the other. No built-in prefix starts with another role's prefix, so
/// their order never matters, and the longest prefix gives the same result.
#[test]
fn no_built_in_prefix_shadows_another() {
    let specs = AgentRegistry::built_in().specs;
    for a in &specs {
        for b in specs.iter().filter(|b| b.name != a.name) {
            for (p, q) in a
                .prefixes
                .iter()
                .flat_map(|p| b.prefixes.iter().map(move |q| (p, q)))
            {
                assert!(
                    !p.text.starts_with(&q.text),
                    "{}: {} shadows {}: {}",
                    b.name,
                    q.text,
                    a.name,
                    p.text
                );
            }
        }
    }
}

/// S10
#[test]
fn librarian_prefixes_win_over_the_operators() {
    let set = partition(&[
        "search_rag",
        "graph_node",
        "save_knowledge_data",
        "create_skill_new",
    ]);
    assert_eq!(set.librarian.len(), 4);
    assert!(set.operator.is_empty() && set.unmatched.is_empty());
}

/// S11
#[test]
fn the_planner_is_always_empty() {
    assert!(
        partition(&["planner", "planner_x", "plan_y"])
            .planner
            .is_empty()
    );
}

/// S11
#[test]
fn a_spec_gets_its_own_tools() {
    let mut set = partition(&["cron_add", "exec_shell"]);
    let specs = AgentRegistry::built_in().specs;
    let spec = |name: &str| specs.iter().find(|spec| spec.name == *name).unwrap();
    assert_eq!(
        tool_names(&tools_for_spec(&mut set, spec("automator"))),
        ["cron_add"]
    );
    assert!(
        tools_for_spec(&mut set, spec("automator")).is_empty(),
        "tools are moved out"
    );
    assert_eq!(
        tool_names(&tools_for_spec(&mut set, spec("operator"))),
        ["exec_shell"]
    );
}

/// B13
#[test]
fn every_tool_of_the_contract_has_its_owner() {
    let spec = include_str!("../../../../docs/SPEC.md");
    let specs = AgentRegistry::built_in().specs;
    let claims = ToolClaims::new(&specs, &Routes::new()).unwrap();
    let mut seen = 0;
    for row in spec.lines().filter(|line| line.starts_with("| S8")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let quoted = cells[3]
            .split('`')
            .skip(1)
            .step_by(2)
            .flat_map(str::split_whitespace);
        for tool in quoted
            .filter(|word| word.contains('_'))
            .map(|word| word.trim_end_matches('*'))
        {
            let owner = claims.owner(tool).map(|name| name.as_str());
            assert_eq!(owner, Some(cells[2]), "{tool}");
            seen += 1;
        }
    }
    assert!(seen > 40, "the table of tools was not found: {seen}");
}

/// B14
#[test]
fn a_route_assigns_an_unmatched_tool() {
    let specs = AgentRegistry::built_in().specs;
    let claims = ToolClaims::new(&specs, &routes(&[("operator", &["github_"])])).unwrap();
    let set = partition_tools(
        &specs,
        &claims,
        stub_tools(&["github_issue", "gitlab_issue"]),
    );
    assert_eq!(tool_names(&set.operator), ["github_issue"]);
    assert_eq!(tool_names(&set.unmatched), ["gitlab_issue"]);
}

/// B14
#[test]
fn the_users_agents_claim_before_the_built_in_roles() {
    let mut specs = AgentRegistry::built_in().specs;
    specs.push(user_spec("reviewer", &["fs_diff", "review_"]));
    let claims = ToolClaims::new(&specs, &Routes::new()).unwrap();
    let set = partition_tools(
        &specs,
        &claims,
        stub_tools(&["fs_diff", "fs_read", "review_code"]),
    );
    assert_eq!(tool_names(&set.operator), ["fs_read"]);
    assert_eq!(set.custom.len(), 1);
    assert_eq!(set.custom[0].0.as_str(), "reviewer");
    assert_eq!(tool_names(&set.custom[0].1), ["fs_diff", "review_code"]);
}

/// B14
#[test]
fn a_duplicate_prefix_is_an_error_that_names_both_agents() {
    let mut specs = AgentRegistry::built_in().specs;
    specs.push(user_spec("alpha", &["x_"]));
    specs.push(user_spec("beta", &["x_"]));
    let error = ToolClaims::new(&specs, &Routes::new())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`x_`")
            && error.contains("alpha (alpha.md)")
            && error.contains("beta (beta.md)"),
        "{error}"
    );
    specs.pop();
    let error = ToolClaims::new(&specs, &routes(&[("vault", &["x_"])]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("alpha (alpha.md)") && error.contains("agent.routes.vault"),
        "{error}"
    );
    assert!(
        ToolClaims::new(&specs, &routes(&[("alpha", &["x_"])])).is_ok(),
        "a duplicate within one agent is fine"
    );
}

/// B14
#[test]
fn a_route_needs_an_agent_that_can_have_tools() {
    let specs = AgentRegistry::built_in().specs;
    let claims = |pairs: &[(&str, &[&str])]| ToolClaims::new(&specs, &routes(pairs)).unwrap_err();
    let unknown = claims(&[("operater", &["x_"])]).to_string();
    assert!(unknown.contains("did you mean `operator`?"), "{unknown}");
    assert_eq!(
        claims(&[("planner", &["x_"])]),
        ClaimError::TakesNoTools {
            agent: "planner".into()
        }
    );
    assert_eq!(
        claims(&[("vault", &[" "])]),
        ClaimError::EmptyPrefix {
            agent: "vault".into()
        }
    );
}

/// B14
#[test]
fn the_users_longest_prefix_wins() {
    let mut specs = AgentRegistry::built_in().specs;
    specs.push(user_spec("forge", &["git_"]));
    let claims = ToolClaims::new(&specs, &routes(&[("vault", &["git_secret_"])])).unwrap();
    assert_eq!(claims.owner("git_secret_read").unwrap().as_str(), "vault");
    assert_eq!(claims.owner("git_log").unwrap().as_str(), "forge");
}

#[test]
fn every_built_in_definition_is_built_in() {
    assert!(
        AgentRegistry::built_in()
            .specs
            .iter()
            .all(|spec| spec.origin == SpecOrigin::BuiltIn)
    );
}

proptest! {
    /// S05, S12: whatever the order of registration, each tool has the same owner.
    #[test]
    fn order_never_changes_ownership(
        names in Just(ONE_TOOL_PER_PREFIX.iter().chain(&["custom_x", "do_it"]).map(|n| (*n).to_owned()).collect::<Vec<_>>())
            .prop_shuffle(),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let set = partition(&names);
        let all = [&set.operator, &set.navigator, &set.vault, &set.librarian, &set.chronicler, &set.automator, &set.unmatched];
        let mut owned: Vec<Vec<&str>> = all.iter().map(|tools| tool_names(tools)).collect();
        owned.iter_mut().for_each(|tools| tools.sort_unstable());
        prop_assert_eq!(owned.iter().map(Vec::len).sum::<usize>(), names.len());
        prop_assert_eq!(&owned[0], &["exec_shell", "fs_read", "skill_deploy"]);
        prop_assert_eq!(&owned[6], &["custom_x", "do_it"]);
    }
}
