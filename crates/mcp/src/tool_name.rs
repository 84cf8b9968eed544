//! Names of tools: `mcp_<server>_<tool>`. They depend on nothing but the server's name in the settings and
//! the tool's own name, so they stay the same between starts.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::settings::ServerKey;

/// The beginning of the names of all tools of servers. No built-in agent claims it.
pub const TOOL_PREFIX: &str = "mcp_";

/// Names that Lango uses for its own tools of a server.
const RESERVED: [&str; 4] = ["find", "call", "read_resource", "list_resources"];
const MAX_CHARS: usize = 64;
const SUFFIX_CHARS: usize = 6;

/// Returns the prefix of the tools of a server.
pub fn tool_prefix(key: &ServerKey) -> String {
    format!("{TOOL_PREFIX}{key}_")
}

/// Returns the name of a tool. A name with other characters than letters, digits, `_` and `-`, or one that is
/// reserved or too long, is changed and gets a suffix of its own.
pub(crate) fn tool_name(key: &ServerKey, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_unchanged = !tool.is_empty()
        && tool.len() <= MAX_CHARS
        && tool.chars().all(is_plain)
        && !RESERVED.contains(&tool);
    if is_unchanged {
        return format!("{}{tool}", tool_prefix(key));
    }
    let plain: String = tool
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(MAX_CHARS - SUFFIX_CHARS - 1)
        .collect();
    let suffix = &hex(&Sha256::digest(tool.as_bytes()))[..SUFFIX_CHARS];
    format!("{}{plain}_{suffix}", tool_prefix(key))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the words of a tool's name: `get_current_time` and `getCurrentTime` are "get current time".
pub(crate) fn words_of_name(name: &str) -> String {
    let mut words = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            words.push(' ');
        } else {
            if c.is_uppercase() && was_lower {
                words.push(' ');
            }
            words.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B150
    #[test]
    fn names_are_stable_and_never_collide() {
        let key = ServerKey::parse("git-hub").unwrap();
        assert_eq!(tool_name(&key, "search"), "mcp_git-hub_search");
        let odd = [
            "../../etc/passwd",
            "a.b",
            "a/b",
            "a b",
            "find",
            "call",
            "",
            "ä",
            "payment send\n",
        ];
        let mut names: Vec<String> = odd.iter().map(|tool| tool_name(&key, tool)).collect();
        let long = "x".repeat(200);
        names.push(tool_name(&key, &long));
        names.push(tool_name(&key, &format!("{long}y")));
        names.push(tool_name(&key, "a_b"));
        for name in &names {
            assert!(
                name.starts_with("mcp_git-hub_") && name.len() <= 80,
                "{name}"
            );
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
                "{name}"
            );
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn words_of_names() {
        assert_eq!(words_of_name("get_current_time"), "get current time");
        assert_eq!(words_of_name("getCurrentTime"), "get current time");
        assert_eq!(words_of_name("../HTML-page"), "html page");
    }
}
