//! Names for colleagues: well formed, each once, and every change is told.

use std::collections::BTreeSet;

use lango_domain::AgentName;
use lango_net::sanitize::one_line;

const MAX_NAME_LEN: usize = 63;

/// What a colleague is called, and what the user should know about that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedName {
    pub name: AgentName,
    pub warning: Option<String>,
}

/// A name for each wish, in order; none that is taken or reserved.
pub(crate) fn resolve<'a>(
    wishes: impl IntoIterator<Item = &'a str>,
    taken: impl IntoIterator<Item = AgentName>,
) -> Vec<ResolvedName> {
    let mut taken: BTreeSet<String> = taken.into_iter().map(String::from).collect();
    taken.extend(AgentName::RESERVED.map(str::to_owned));
    wishes
        .into_iter()
        .filter_map(|wish| resolve_one(wish, &mut taken))
        .collect()
}

fn resolve_one(wish: &str, taken: &mut BTreeSet<String>) -> Option<ResolvedName> {
    let well_formed = if AgentName::new(wish).is_ok() {
        wish.to_owned()
    } else {
        sanitize(wish)
    };
    let free = unique_name(&well_formed, taken);
    let shown = one_line(wish, 80);
    let note = if free == wish {
        None
    } else if well_formed == wish {
        Some(format!(
            "a2a.remoteAgents: there is another agent `{shown}`; the remote one is called `{free}`"
        ))
    } else {
        Some(format!(
            "a2a.remoteAgents: `{shown}` is no name for an agent; it is called `{free}`"
        ))
    };
    taken.insert(free.clone());
    Some(ResolvedName {
        name: AgentName::new(free).ok()?,
        warning: note,
    })
}

/// What is left of a wish when only what a name may have stays.
fn sanitize(wish: &str) -> String {
    let mut name = String::new();
    for c in wish.trim().chars().flat_map(char::to_lowercase) {
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
        let end = format!("-{number}");
        format!("{}{end}", &name[..name.len().min(MAX_NAME_LEN - end.len())])
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
    fn names_are_made_to_fit_and_told() {
        let long = "x".repeat(63);
        let wishes = [
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
        let named = resolve(wishes, taken);
        let names: Vec<&str> = named.iter().map(|named| named.name.as_str()).collect();
        let cut = format!("{}-2", "x".repeat(61));
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
            &cut,
            "remote-2",
        ];
        assert_eq!(names, expected);
        let told: Vec<bool> = named.iter().map(|named| named.warning.is_some()).collect();
        assert_eq!(
            told,
            [
                false, true, true, true, true, true, true, true, false, true, true
            ]
        );
        assert!(
            named[6]
                .warning
                .as_ref()
                .is_some_and(|note| !note.contains('\u{1b}'))
        );
    }
}
