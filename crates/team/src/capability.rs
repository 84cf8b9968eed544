//! What tools can do, in words: the orchestrator reads these, never tool names (S22).

use lango_domain::{AgentSpec, Prefix, SpecOrigin};

use crate::registry::AgentRegistry;

/// What is said of a tool whose prefix has no phrase.
pub const GENERAL_ACTIONS: &str = "general actions";

/// Prefix → phrase, gathered from the definitions.
#[derive(Clone, Debug)]
pub struct CapabilityMap {
    phrases: Vec<(String, String)>,
}

impl CapabilityMap {
    /// The user's phrases, then those of the team's built-in agents, then what is generally known about a prefix.
    pub fn from_specs(specs: &[AgentSpec]) -> Self {
        let general = AgentRegistry::built_in().specs;
        let (users, built_in): (Vec<_>, Vec<_>) = specs
            .iter()
            .partition(|spec| spec.origin != SpecOrigin::BuiltIn);
        let described = users
            .into_iter()
            .chain(built_in)
            .chain(&general)
            .flat_map(|spec| &spec.prefixes);
        let phrases = described.filter_map(|prefix| {
            Some((prefix_text(prefix).to_owned(), prefix.capability.clone()?))
        });
        Self {
            phrases: phrases.collect(),
        }
    }

    /// The distinct capabilities of `tools`, in tool order.
    pub fn capabilities<'a>(&self, tools: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut distinct: Vec<String> = Vec::new();
        for tool in tools {
            let phrase = tool_capability(self, tool);
            if !distinct.iter().any(|known| known == phrase) {
                distinct.push(phrase.to_owned());
            }
        }
        distinct
    }
}

/// What one tool can do; the longest prefix decides, and a tool without one does [`GENERAL_ACTIONS`] (S20).
pub fn tool_capability<'a>(map: &'a CapabilityMap, tool: &str) -> &'a str {
    // Of equally long prefixes the last found wins, so they are read backwards: the first stands.
    let matching = map
        .phrases
        .iter()
        .rev()
        .filter(|(prefix, _)| tool.starts_with(prefix));
    matching
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(GENERAL_ACTIONS, |(_, phrase)| phrase)
}

/// `*` stands for any name, however it begins.
fn prefix_text(prefix: &Prefix) -> &str {
    if prefix.text == Prefix::ANY {
        ""
    } else {
        &prefix.text
    }
}

/// What a set of tools can do: the distinct phrases in tool order, joined by ", " (S21).
pub fn capability_description<'a>(
    map: &CapabilityMap,
    tools: impl IntoIterator<Item = &'a str>,
) -> String {
    map.capabilities(tools).join(", ")
}
