//! Capabilities of tools, as text: the orchestrator reads these, never tool names (S22).

use lango_domain::{AgentSpec, Prefix, SpecOrigin};

use crate::registry::AgentRegistry;

/// The capability of a tool whose prefix has none.
pub const GENERAL_ACTIONS: &str = "general actions";

/// The capabilities of tool prefixes, collected from the definitions.
#[derive(Clone, Debug)]
pub struct CapabilityMap {
    phrases: Vec<(String, String)>,
}

impl CapabilityMap {
    /// Collects the user's capabilities, then those of the team's built-in agents, then those of all
    /// built-in agents.
    pub fn from_specs(specs: &[AgentSpec]) -> Self {
        let all_built_in = AgentRegistry::built_in().specs;
        let (users, built_in): (Vec<_>, Vec<_>) = specs
            .iter()
            .partition(|spec| spec.origin != SpecOrigin::BuiltIn);
        let prefixes = users
            .into_iter()
            .chain(built_in)
            .chain(&all_built_in)
            .flat_map(|spec| &spec.prefixes);
        let phrases = prefixes.filter_map(|prefix| {
            Some((prefix_text(prefix).to_owned(), prefix.capability.clone()?))
        });
        Self {
            phrases: phrases.collect(),
        }
    }

    /// Returns the distinct capabilities of `tools`, in tool order.
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

/// Returns the capability of a tool. The longest prefix decides; a tool without one has
/// [`GENERAL_ACTIONS`] (S20).
pub fn tool_capability<'a>(map: &'a CapabilityMap, tool: &str) -> &'a str {
    // `max_by_key` returns the last of equally long prefixes, so reverse: the first one wins.
    let matching = map
        .phrases
        .iter()
        .rev()
        .filter(|(prefix, _)| tool.starts_with(prefix));
    matching
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(GENERAL_ACTIONS, |(_, phrase)| phrase)
}

/// Returns the text that a name must start with; `*` matches any name.
fn prefix_text(prefix: &Prefix) -> &str {
    if prefix.text == Prefix::ANY {
        ""
    } else {
        &prefix.text
    }
}

/// Returns the distinct capabilities of tools in tool order, joined by ", " (S21).
pub fn capability_description<'a>(
    map: &CapabilityMap,
    tools: impl IntoIterator<Item = &'a str>,
) -> String {
    map.capabilities(tools).join(", ")
}
