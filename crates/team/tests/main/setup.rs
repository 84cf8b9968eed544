use std::path::PathBuf;

use lango_domain::{Agent, AgentSpec, AgentTree, SpecOrigin, Tool};
use lango_team::{Config, Routes, build_agent_tree, parse_agent_file};
use lango_testkit::stub_tools;

pub fn config(tools: &[&str]) -> Config {
    Config {
        tools: stub_tools(tools),
        ..Config::default()
    }
}

pub fn tree(tools: &[&str]) -> AgentTree {
    build_agent_tree(config(tools)).unwrap()
}

pub fn specialist_names(tree: &AgentTree) -> Vec<&str> {
    tree.specialists
        .iter()
        .map(|agent| agent.name.as_str())
        .collect()
}

pub fn tool_names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

pub fn agent<'a>(tree: &'a AgentTree, name: &str) -> &'a Agent {
    tree.agent(name)
        .unwrap_or_else(|| panic!("no {name} in {:?}", specialist_names(tree)))
}

/// Returns a definition of the user with these prefixes.
pub fn user_spec(name: &str, prefixes: &[&str]) -> AgentSpec {
    let file = PathBuf::from(format!("{name}.md"));
    let text =
        format!("---\ndescription: Does {name} work.\nprefixes: {prefixes:?}\n---\nBe good.\n");
    parse_agent_file(&file, &text, SpecOrigin::User(file.clone())).unwrap()
}

pub fn routes(pairs: &[(&str, &[&str])]) -> Routes {
    pairs
        .iter()
        .map(|(agent, prefixes)| {
            (
                (*agent).to_owned(),
                prefixes.iter().map(|p| (*p).to_owned()).collect(),
            )
        })
        .collect()
}
