//! Names for remote agents: valid and unique. Every change of a configured name is reported.

use std::collections::BTreeSet;

use lango_domain::AgentName;
use lango_text::sanitize::truncated_line;

const MAX_NAME_LEN: usize = 63;

/// The name of a remote agent, with a warning if it differs from the configured name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedName {
    pub name: AgentName,
    pub warning: Option<String>,
}

/// Returns a name for each configured name, in order; none of them is taken or reserved.
pub(crate) fn resolve<'a>(
    configured: impl IntoIterator<Item = &'a str>,
    taken: impl IntoIterator<Item = AgentName>,
) -> Vec<ResolvedName> {
    let mut taken: BTreeSet<String> = taken.into_iter().map(String::from).collect();
    taken.extend(AgentName::RESERVED.map(str::to_owned));
    configured
        .into_iter()
        .filter_map(|name| resolve_one(name, &mut taken))
        .collect()
}

fn resolve_one(configured: &str, taken: &mut BTreeSet<String>) -> Option<ResolvedName> {
    let valid = if AgentName::new(configured).is_ok() {
        configured.to_owned()
    } else {
        sanitize(configured)
    };
    let free = unique_name(&valid, taken);
    let shown = truncated_line(configured, 80);
    let warning = if free == configured {
        None
    } else if valid == configured {
        Some(format!(
            "a2a.remoteAgents: the name `{shown}` is taken; the remote agent is called `{free}`"
        ))
    } else {
        Some(format!(
            "a2a.remoteAgents: `{shown}` is not a valid agent name; the agent is called `{free}`"
        ))
    };
    taken.insert(free.clone());
    Some(ResolvedName {
        name: AgentName::new(free).ok()?,
        warning,
    })
}

/// Removes the characters that are not allowed in agent names.
fn sanitize(configured: &str) -> String {
    let mut name = String::new();
    for c in configured.trim().chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' => name.push(c),
            '0'..='9' | '_' | '-' if !name.is_empty() => name.push(c),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.truncate(MAX_NAME_LEN);
    match name.trim_end_matches('-') {
        "" => "remote".to_owned(),
        name => name.to_owned(),
    }
}

fn unique_name(name: &str, taken: &BTreeSet<String>) -> String {
    let numbered = |number: usize| {
        let suffix = format!("-{number}");
        let prefix = &name[..name.len().min(MAX_NAME_LEN - suffix.len())];
        format!("{prefix}{suffix}")
    };
    let names = std::iter::once(name.to_owned()).chain((2..).map(numbered));
    names
        .into_iter()
        .find(|name| !taken.contains(name))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_valid_and_unique_with_warnings() {
        let long = "x".repeat(63);
        let configured = [
            "weather",
            "My Agent!",
            "operator",
            "weather",
            "날씨",
            "9-to-5",
            "a\u{1b}[2Jb",
            "user",
            &long,
            &long,
            "",
        ];
        let taken = [AgentName::new("operator").unwrap()];
        let resolved = resolve(configured, taken);
        let names: Vec<&str> = resolved
            .iter()
            .map(|resolved| resolved.name.as_str())
            .collect();
        let truncated = format!("{}-2", "x".repeat(61));
        let expected = [
            "weather",
            "my-agent",
            "operator-2",
            "weather-2",
            "remote",
            "to-5",
            "a-2jb",
            "user-2",
            &long,
            &truncated,
            "remote-2",
        ];
        assert_eq!(names, expected);
        let has_warning: Vec<bool> = resolved
            .iter()
            .map(|resolved| resolved.warning.is_some())
            .collect();
        assert_eq!(
            has_warning,
            [
                false, true, true, true, true, true, true, true, false, true, true
            ]
        );
        assert!(
            resolved[6]
                .warning
                .as_ref()
                .is_some_and(|warning| !warning.contains('\u{1b}'))
        );
    }
}
