//! Assembles the team from the settings.

use std::collections::BTreeSet;
use std::sync::Arc;

use lango_domain::{AgentName, AgentSpec, AgentTree, Generation, Prompt, TeamMode, Tool};
use lango_remote::{RemoteMember, RemoteStatus, RemoteTeam};
use lango_team::{
    AgentFileError, AgentRegistry, BuildError, ClaimError, Config, PromptSources, RemoteCard,
    TeamChoice, build_agent_tree,
};
use lango_text::suggest;

use crate::config::{ConfigError, FolderSource, LoadedConfig};
use crate::environment::Environment;
use crate::mcp::{server_specialists, server_warnings};
use crate::remote_agents::connect_remote_agents;

/// A team, with its definitions and prompts.
pub struct AssembledTeam {
    pub tree: AgentTree,
    pub specs: Vec<AgentSpec>,
    /// Errors in the user's agent files.
    pub file_errors: Vec<AgentFileError>,
    /// The state of all remote agents, reachable or not.
    pub remote_statuses: Vec<RemoteStatus>,
    prompts: PromptSources,
    remote_warnings: Vec<String>,
    server_warnings: Vec<String>,
}

/// Builds the team of the settings with `tools` and the reachable remote agents.
pub fn assemble_team(
    loaded: &LoadedConfig,
    environment: &Environment,
    tools: Vec<Tool>,
) -> Result<AssembledTeam, ConfigError> {
    assemble_team_with(
        loaded,
        environment,
        tools,
        &connect_remote_agents(loaded, environment, &Generation::default())?,
    )
}

/// Builds the team of the settings with `tools` and the given remote agents.
pub fn assemble_team_with(
    loaded: &LoadedConfig,
    environment: &Environment,
    tools: Vec<Tool>,
    remote_team: &RemoteTeam,
) -> Result<AssembledTeam, ConfigError> {
    let settings = &loaded.settings.agent.team;
    let mut registry = load_registry(loaded, environment)?;
    registry
        .specs
        .extend(server_specialists(loaded, environment, &registry.specs));
    let prompts = load_prompts(loaded, environment)?;
    let tree = build_agent_tree(Config {
        mode: settings.mode(),
        tools,
        specs: registry.specs.clone(),
        routes: settings.routes.clone(),
        prompts: prompts.clone(),
        max_delegation_rounds: settings.max_delegation_rounds,
        remote_agents: remote_cards(remote_team),
        sub_agent_prompt: Some(prompt_function(&prompts, &registry.specs)),
    })
    .map_err(|error| build_error(loaded, &registry.errors, error))?;
    Ok(AssembledTeam {
        tree,
        specs: registry.specs,
        file_errors: registry.errors,
        remote_statuses: remote_team.statuses(),
        prompts,
        remote_warnings: remote_warnings(loaded, remote_team),
        server_warnings: server_warnings(loaded, environment),
    })
}

fn remote_cards(remote_team: &RemoteTeam) -> Vec<RemoteCard> {
    let card = |member: RemoteMember| RemoteCard {
        name: member.name,
        description: member.description,
    };
    remote_team.agents().into_iter().map(card).collect()
}

/// Returns warnings about remote agents.
fn remote_warnings(loaded: &LoadedConfig, remote_team: &RemoteTeam) -> Vec<String> {
    let settings = &loaded.settings;
    let mut warnings = remote_team.warnings();
    if settings.agent.team.mode() == TeamMode::Single
        && settings.a2a.enabled
        && !settings.a2a.remote_agents.is_empty()
    {
        warnings.push("agent.multiAgent is false, so remote agents are not used".to_owned());
    }
    for status in remote_team.statuses() {
        if !lango_team::confusable_words(status.name.as_str()).is_empty() {
            let name = status.name;
            warnings.push(format!(
                "a2a.remoteAgents: models may confuse the name `{name}` with a kind of agent; choose another name"
            ));
        }
    }
    warnings
}

/// Converts a build error. Adds the origin of the setting, and errors in agent files, which may be
/// the cause.
fn build_error(
    loaded: &LoadedConfig,
    file_errors: &[AgentFileError],
    error: BuildError,
) -> ConfigError {
    let (key, hint) = match &error {
        BuildError::Claim(ClaimError::UnknownAgent { agent, hint }) => (Some(agent), hint.clone()),
        BuildError::Claim(
            ClaimError::TakesNoTools { agent } | ClaimError::EmptyPrefix { agent },
        ) => (Some(agent), None),
        _ => (None, None),
    };
    let origin = key.and_then(|agent| loaded.origin(&format!("agent.routes.{agent}")));
    let location = origin.map_or(String::new(), |origin| format!("{origin}: "));
    let mut lines = vec![format!("{location}{error}")];
    lines.extend(file_errors.iter().map(ToString::to_string));
    ConfigError {
        message: lines.join("\n"),
        hint,
    }
}

fn load_prompts(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<PromptSources, ConfigError> {
    let Some(folder) = &loaded.settings.agent.team.prompts_dir else {
        return Ok(PromptSources::default());
    };
    match loaded.folder_source(environment, "agent.promptsDir", folder)? {
        FolderSource::Project(files) => PromptSources::from_files(files).map_err(to_config_error),
        FolderSource::User(folder) => PromptSources::from_folder(&folder).map_err(to_config_error),
    }
}

fn to_config_error(error: impl std::error::Error) -> ConfigError {
    ConfigError::new(error.to_string())
}

pub(crate) fn load_registry(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<AgentRegistry, ConfigError> {
    let settings = &loaded.settings.agent.team;
    let custom = match &settings.agents_dir {
        Some(folder) => Some(
            match loaded.folder_source(environment, "agent.agentsDir", folder)? {
                FolderSource::Project(files) => AgentRegistry::from_files(files),
                FolderSource::User(folder) => {
                    AgentRegistry::from_folder(&folder).map_err(to_config_error)?
                }
            },
        ),
        None => None,
    };
    match (settings.team, custom) {
        (TeamChoice::Default, None) => Ok(AgentRegistry::built_in()),
        (TeamChoice::Default, Some(custom)) => Ok(AgentRegistry::built_in().merge(custom)),
        (TeamChoice::Custom, Some(custom)) => Ok(custom),
        (TeamChoice::Custom, None) => Err(ConfigError::new(
            "agent.team is `custom`, but agent.agentsDir is not set",
        )
        .with_hint("set agent.agentsDir to the folder of your agents")),
    }
}

/// Returns a function that builds the prompt of a specialist: the shared sections around its
/// instruction (S39).
fn prompt_function(prompts: &PromptSources, specs: &[AgentSpec]) -> lango_team::SubAgentPromptFunc {
    let prompts = prompts.clone();
    let with_tools: BTreeSet<AgentName> = specs
        .iter()
        .filter(|spec| spec.can_hold_tools())
        .map(|spec| spec.name.clone())
        .collect();
    Arc::new(move |name, instruction| {
        prompts
            .specialist(name, instruction, with_tools.contains(name))
            .render()
    })
}

impl AssembledTeam {
    /// Returns the agent with this name, even if it has no tools.
    pub fn find_agent(&self, agent: &str) -> Option<&AgentName> {
        let names = self
            .specs
            .iter()
            .map(|spec| &spec.name)
            .chain([&self.tree.root.name]);
        names.into_iter().find(|name| **name == *agent)
    }

    /// Returns the prompt of an agent.
    pub fn prompt(&self, agent: &str) -> Result<Prompt, ConfigError> {
        if self.tree.root.name == *agent {
            return Ok(self.tree.root.prompt.clone());
        }
        let created = self
            .tree
            .specialists
            .iter()
            .any(|specialist| specialist.name == *agent);
        match self.specs.iter().find(|spec| spec.name == *agent) {
            Some(spec) if created => {
                Ok(self
                    .prompts
                    .specialist(agent, &spec.instruction, spec.can_hold_tools()))
            }
            None if created => Err(ConfigError::new(format!(
                "`{agent}` is a remote agent; its prompt is not available"
            ))),
            _ => Err(self.unknown_agent_error(agent)),
        }
    }

    fn unknown_agent_error(&self, agent: &str) -> ConfigError {
        if let Some(skipped) = self
            .tree
            .skipped
            .iter()
            .find(|skipped| skipped.name == agent)
        {
            return ConfigError::new(format!("`{agent}` is not in the team: {}", skipped.reason))
                .with_hint("pass `--tools a,b` to see the team with those tools");
        }
        let has_agent_name = |file_error: &&AgentFileError| {
            file_error
                .file
                .file_stem()
                .is_some_and(|stem| stem == agent)
        };
        if let Some(file_error) = self.file_errors.iter().find(has_agent_name) {
            return ConfigError::new(format!("`{agent}` is not in the team: {file_error}"));
        }
        let created: Vec<&str> = self
            .tree
            .agents()
            .map(|known| known.name.as_str())
            .collect();
        let skipped = self
            .tree
            .skipped
            .iter()
            .map(|skipped| skipped.name.as_str());
        let hint = suggest::did_you_mean(agent, created.iter().copied().chain(skipped));
        ConfigError::new(format!("unknown agent `{agent}`"))
            .with_hint(hint.unwrap_or_else(|| format!("the agents are {}", created.join(", "))))
    }

    /// Returns warnings about agent files, unused prompts and remote agents.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.file_errors.iter().map(ToString::to_string).collect();
        for name in self.prompts.customized_agents() {
            if !self.specs.iter().any(|spec| spec.name == *name) {
                warnings.push(format!(
                    "agent.promptsDir has a folder for the unknown agent `{name}`"
                ));
            }
        }
        let ignored = self.prompts.ignored.iter().map(|file| file.display());
        warnings.extend(
            ignored.map(|file| format!("{file}: unknown prompt name; the file is not used")),
        );
        warnings.extend(self.remote_warnings.iter().cloned());
        warnings.extend(self.server_warnings.iter().cloned());
        if self.tree.mode == TeamMode::Multi {
            warnings.extend(self.misleading_words());
            if self.tree.specialists.is_empty() {
                warnings
                    .push("the team has no specialists, so no request can be delegated".to_owned());
            }
        }
        warnings
    }

    /// Returns warnings about words in the user's prompts that models may confuse with agents.
    fn misleading_words(&self) -> Vec<String> {
        let mut warnings = AgentRegistry {
            specs: self.specs.clone(),
            errors: Vec::new(),
        }
        .warnings();
        let shared = self.prompts.orchestrator("").render();
        let absent = self.tree.skipped.iter().map(|skipped| skipped.name.clone());
        let absent = absent.filter(|name| lango_team::contains_word(&shared, name));
        let words: Vec<String> = lango_team::confusable_words(&shared)
            .into_iter()
            .chain(absent)
            .collect();
        if !words.is_empty() {
            let words = words.join(", ");
            warnings.push(format!(
                "agent.promptsDir: models may confuse these words in the orchestrator's prompt with agents: {words}"
            ));
        }
        warnings
    }
}
