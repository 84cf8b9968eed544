//! `lango agent …`: inspects the team.

use std::fmt::Write as _;

use lango_app::{AssembledTeam, ConfigError};
use lango_app::{CapabilityMap, RoleToolSet, ToolClaims, capability_description, partition_tools};
use lango_app::{RemoteAvailability, RemoteStatus};
use lango_domain::{Agent, AgentLocation, AgentTree, SkippedAgent, TeamMode, Tool};
use lango_text::token_estimate;
use serde_json::{Map, Value, json};

use super::{CommandContext, stub_tools};
use crate::args::{AgentCommand, GlobalArgs, ToolNames};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: AgentCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    match command {
        AgentCommand::List { tools } => {
            Ok(list(&context.team(&tools)?).with_warnings(context.loaded.warnings.clone()))
        }
        AgentCommand::Tree { tools } => Ok(tree(&context.team(&tools)?)),
        AgentCommand::Prompt { agent, tools } => prompt(&context.team(&tools)?, agent.as_deref()),
        AgentCommand::Describe { names } => Ok(describe(&context.team(&no_tools())?, &names)),
        AgentCommand::Partition { names } => partition(&context, &names),
    }
}

fn no_tools() -> ToolNames {
    ToolNames {
        tools: Some(String::new()),
    }
}

fn list(team: &AssembledTeam) -> CommandOutput {
    let listed: Vec<&Agent> = match team.tree.mode {
        TeamMode::Multi => team.tree.specialists.iter().collect(),
        TeamMode::Single => vec![&team.tree.root],
    };
    let skipped = skipped_agents(team);
    let json = json!({
        "mode": match team.tree.mode { TeamMode::Multi => "multi", TeamMode::Single => "single" },
        "agents": listed.iter().map(|agent| with_remote_status(agent_json(agent), team)).collect::<Vec<_>>(),
        "skipped": skipped,
        "unmatched": tool_names(&team.tree.unmatched),
    });
    CommandOutput::new(list_plain(&team.tree, &listed, &skipped), json)
        .with_warnings(team.warnings())
}

fn agent_json(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "description": agent.description,
        "capabilities": agent.capabilities,
        "keywords": agent.keywords,
        "tools": tool_names(&agent.tools),
        "remote": agent.location == AgentLocation::Remote,
    })
}

/// Adds the card URL, the card's age and the last error to the entry of a remote agent.
fn with_remote_status(mut entry: Value, team: &AssembledTeam) -> Value {
    let has_name = |status: &&RemoteStatus| entry["name"] == status.name.as_str();
    if let Some(RemoteStatus {
        url,
        availability: RemoteAvailability::Joined {
            card_age, error, ..
        },
        ..
    }) = team.remote_statuses.iter().find(has_name)
    {
        entry["url"] = json!(url);
        entry["cardAgeSeconds"] = json!(card_age.as_secs());
        entry["trouble"] = json!(error);
    }
    entry
}

/// Returns agents without tools, invalid agent files, and unreachable remote agents.
fn skipped_agents(team: &AssembledTeam) -> Vec<SkippedAgent> {
    let mut skipped = team.tree.skipped.clone();
    for error in &team.file_errors {
        let stem = error
            .file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        // An invalid file with the name of a built-in agent does not replace that agent.
        let is_taken = team.specs.iter().any(|spec| spec.name == *stem);
        let name = if is_taken { format!("{stem}.md") } else { stem };
        skipped.push(SkippedAgent {
            name,
            reason: error.to_string(),
        });
    }
    skipped.extend(
        team.remote_statuses
            .iter()
            .filter_map(|status| match &status.availability {
                RemoteAvailability::Absent { reason } => Some(SkippedAgent {
                    name: status.name.to_string(),
                    reason: format!("{}: {reason}", status.url),
                }),
                RemoteAvailability::Joined { .. } => None,
            }),
    );
    skipped
}

fn list_plain(tree: &AgentTree, listed: &[&Agent], skipped: &[SkippedAgent]) -> String {
    let mut text = match tree.mode {
        TeamMode::Multi => format!(
            "{} delegates to {} of {}:\n\n",
            styled(NAME, &tree.root.name),
            listed.len(),
            listed.len() + skipped.len()
        ),
        TeamMode::Single => format!("{} works alone:\n\n", styled(NAME, &tree.root.name)),
    };
    let width = listed
        .iter()
        .map(|agent| agent.name.as_str().len())
        .max()
        .unwrap_or(0);
    for agent in listed {
        let count = match agent.tools.len() {
            _ if agent.location == AgentLocation::Remote => "remote".to_owned(),
            0 => "no tools".to_owned(),
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        };
        let name = format!("{:width$}", agent.name.as_str());
        let _ = writeln!(
            text,
            "  {}  {:>9}  {}",
            styled(NAME, name),
            count,
            agent.description
        );
    }
    if !skipped.is_empty() {
        text.push_str("\nSkipped:\n");
        let width = skipped
            .iter()
            .map(|agent| agent.name.len())
            .max()
            .unwrap_or(0);
        for agent in skipped {
            let _ = writeln!(
                text,
                "  {}",
                styled(DIM, format!("{:width$}  {}", agent.name, agent.reason))
            );
        }
    }
    text.push_str(&unmatched_plain(tree));
    text
}

fn unmatched_plain(tree: &AgentTree) -> String {
    if tree.unmatched.is_empty() {
        return String::new();
    }
    format!(
        "\nTools without an agent: {}\n{}\n",
        tool_names(&tree.unmatched).join(", "),
        styled(DIM, "Assign them with agent.routes.")
    )
}

fn tree(team: &AssembledTeam) -> CommandOutput {
    let tree = &team.tree;
    let json = json!({
        "root": { "name": tree.root.name, "tools": tool_names(&tree.root.tools) },
        "agents": tree.specialists.iter().map(|agent| json!({
            "name": agent.name,
            "description": agent.description,
            "tools": tool_names(&agent.tools),
        })).collect::<Vec<_>>(),
        "unmatched": tool_names(&tree.unmatched),
    });
    CommandOutput::new(draw(tree), json).with_warnings(team.warnings())
}

fn draw(tree: &AgentTree) -> String {
    let mut text = format!(
        "{}  {}\n",
        styled(NAME, &tree.root.name),
        styled(DIM, &tree.root.description)
    );
    draw_leaves(&mut text, "", &tool_names(&tree.root.tools));
    for (index, agent) in tree.specialists.iter().enumerate() {
        let (branch, indent) = if index + 1 == tree.specialists.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        let _ = writeln!(
            text,
            "{branch}{}  {}",
            styled(NAME, &agent.name),
            styled(DIM, &agent.description)
        );
        draw_leaves(&mut text, indent, &tool_names(&agent.tools));
    }
    text.push_str(&unmatched_plain(tree));
    text
}

fn draw_leaves(text: &mut String, indent: &str, leaves: &[&str]) {
    for (index, leaf) in leaves.iter().enumerate() {
        let branch = if index + 1 == leaves.len() {
            "└── "
        } else {
            "├── "
        };
        let _ = writeln!(text, "{indent}{branch}{leaf}");
    }
}

fn partition(context: &CommandContext, names: &[String]) -> Result<CommandOutput, CliError> {
    let team = context.team(&no_tools())?;
    let routes = &context.loaded.settings.agent.team.routes;
    let claims = ToolClaims::new(&team.specs, routes)
        .map_err(|error| ConfigError::new(error.to_string()))?;
    let set = partition_tools(
        &team.specs,
        &claims,
        stub_tools(names.iter().map(String::as_str)),
    );
    let mut plain = String::new();
    for (owner, tools) in set
        .tools_by_agent()
        .into_iter()
        .filter(|(_, tools)| !tools.is_empty())
    {
        let _ = writeln!(
            plain,
            "{}  {}",
            styled(NAME, format!("{owner:10}")),
            tool_names(tools).join(", ")
        );
    }
    Ok(CommandOutput::new(plain, partition_json(&set)).with_warnings(team.warnings()))
}

fn partition_json(set: &RoleToolSet) -> Value {
    let object = |homes: &[(&str, &[Tool])]| {
        homes
            .iter()
            .map(|(owner, tools)| ((*owner).to_owned(), json!(tool_names(tools))))
            .collect::<Map<_, _>>()
    };
    let homes = set.tools_by_agent();
    let (roles, custom) = homes.split_at(homes.len() - set.custom.len());
    let mut json = object(roles);
    if !custom.is_empty() {
        json.insert("custom".to_owned(), Value::Object(object(custom)));
    }
    Value::Object(json)
}

fn describe(team: &AssembledTeam, tools: &[String]) -> CommandOutput {
    let map = CapabilityMap::from_specs(&team.specs);
    let tools = || tools.iter().map(String::as_str);
    let description = capability_description(&map, tools());
    let json = json!({ "description": description, "capabilities": map.capabilities(tools()) });
    CommandOutput::new(description, json)
}

fn prompt(team: &AssembledTeam, agent: Option<&str>) -> Result<CommandOutput, CliError> {
    let agent = agent.unwrap_or(team.tree.root.name.as_str());
    let prompt = team.prompt(agent)?;
    let text = prompt.render();
    let sections: Vec<Value> = prompt
        .sections()
        .iter()
        .map(|section| json!({ "id": section.id(), "tokens": token_estimate::estimate(section.text()) }))
        .collect();
    let json = json!({
        "agent": agent,
        "tokens": token_estimate::estimate(&text),
        "estimate": true,
        "sections": sections,
        "text": text,
    });
    Ok(CommandOutput::new(text, json).with_warnings(team.warnings()))
}

fn tool_names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}
