//! Claims of tool names by agents.
//!
//! Claims of the user (own agents, `agent.routes`) are checked first, then those of the built-in roles,
//! then a `*` claim of the user. Within each group the longest prefix wins, so the order of agents,
//! routes and tools does not matter (S12).

use std::collections::BTreeMap;

use lango_domain::{AgentName, AgentSpec, Prefix, SpecOrigin};
use lango_text::suggest;

/// `agent.routes`: additional prefixes for existing agents.
pub type Routes = BTreeMap<String, Vec<String>>;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClaimError {
    #[error("the prefix `{prefix}` is claimed twice: by {first} and by {second}")]
    DuplicatePrefix {
        prefix: String,
        first: String,
        second: String,
    },
    #[error("agent.routes.{agent}: there is no agent `{agent}`{}", hint.as_ref().map_or(String::new(), |h| format!("; {h}")))]
    UnknownAgent { agent: String, hint: Option<String> },
    #[error("agent.routes.{agent}: {agent} cannot have tools")]
    TakesNoTools { agent: String },
    #[error("agent.routes.{agent}: a prefix must not be empty")]
    EmptyPrefix { agent: String },
}

/// All claims of a team.
#[derive(Debug)]
pub struct ToolClaims {
    users: Vec<ToolClaim>,
    built_in: Vec<ToolClaim>,
    wildcard_owner: Option<AgentName>,
}

#[derive(Debug)]
struct ToolClaim {
    prefix: String,
    agent: AgentName,
    /// The source of the claim, for error messages.
    claimant: String,
}

impl ToolClaims {
    pub fn new(specs: &[AgentSpec], routes: &Routes) -> Result<Self, ClaimError> {
        let mut users: Vec<ToolClaim> = Vec::new();
        let mut built_in = Vec::new();
        for spec in specs {
            for prefix in &spec.prefixes {
                match &spec.origin {
                    SpecOrigin::BuiltIn | SpecOrigin::ToolServer => {
                        built_in.push(claim(&prefix.text, &spec.name, spec.name.to_string()))
                    }
                    SpecOrigin::User(file) => {
                        let claimant = format!("{} ({})", spec.name, file.display());
                        add(&mut users, claim(&prefix.text, &spec.name, claimant))?;
                    }
                }
            }
        }
        for (agent, prefixes) in routes {
            let name = routed_agent(specs, agent)?;
            for prefix in prefixes {
                if prefix.trim().is_empty() {
                    return Err(ClaimError::EmptyPrefix {
                        agent: agent.clone(),
                    });
                }
                add(
                    &mut users,
                    claim(prefix.trim(), name, format!("agent.routes.{agent}")),
                )?;
            }
        }
        let wildcard_owner = users
            .iter()
            .find(|claim| claim.prefix == Prefix::ANY)
            .map(|claim| claim.agent.clone());
        Ok(Self {
            users,
            built_in,
            wildcard_owner,
        })
    }

    /// Returns the agent that owns `tool`.
    pub fn owner(&self, tool: &str) -> Option<&AgentName> {
        longest_match(&self.users, tool)
            .or_else(|| longest_match(&self.built_in, tool))
            .or(self.wildcard_owner.as_ref())
    }
}

fn claim(prefix: &str, agent: &AgentName, claimant: String) -> ToolClaim {
    ToolClaim {
        prefix: prefix.to_owned(),
        agent: agent.clone(),
        claimant,
    }
}

/// Adds a claim. The same prefix twice is fine for one agent, but an error for two.
fn add(claims: &mut Vec<ToolClaim>, new: ToolClaim) -> Result<(), ClaimError> {
    match claims.iter().find(|claim| claim.prefix == new.prefix) {
        Some(first) if first.agent != new.agent => Err(ClaimError::DuplicatePrefix {
            prefix: new.prefix,
            first: first.claimant.clone(),
            second: new.claimant,
        }),
        Some(_) => Ok(()),
        None => {
            claims.push(new);
            Ok(())
        }
    }
}

fn routed_agent<'a>(specs: &'a [AgentSpec], agent: &str) -> Result<&'a AgentName, ClaimError> {
    let Some(spec) = specs.iter().find(|spec| spec.name == *agent) else {
        let hint = suggest::did_you_mean(agent, specs.iter().map(|spec| spec.name.as_str()));
        return Err(ClaimError::UnknownAgent {
            agent: agent.to_owned(),
            hint,
        });
    };
    if spec.can_hold_tools() {
        Ok(&spec.name)
    } else {
        Err(ClaimError::TakesNoTools {
            agent: agent.to_owned(),
        })
    }
}

fn longest_match<'a>(claims: &'a [ToolClaim], tool: &str) -> Option<&'a AgentName> {
    let matching = claims
        .iter()
        .filter(|claim| claim.prefix != Prefix::ANY && tool.starts_with(&claim.prefix));
    matching
        .max_by_key(|claim| claim.prefix.len())
        .map(|claim| &claim.agent)
}
