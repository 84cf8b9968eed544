//! The settings `mcp.*`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;

use lango_domain::Safety;
use lango_domain::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `mcp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct McpSettings {
    /// Tool servers (Model Context Protocol) by name; each becomes a specialist of the team. A name has
    /// lower-case letters, digits and `-`.
    pub servers: BTreeMap<String, McpServerSettings>,
}

/// One tool server: a command, or the URL of a running server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct McpServerSettings {
    /// Use this server.
    pub enabled: bool,
    /// The program of a server that talks over its standard streams.
    pub command: Option<String>,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// Environment variables of the program. It gets no others except PATH, LANG, TZ and a temporary HOME.
    /// `vault:NAME` reads the vault.
    pub env: BTreeMap<String, Secret>,
    /// The folder in which the program runs; a temporary folder if not set.
    pub cwd: Option<PathBuf>,
    /// Allow the program to access the network.
    pub network: bool,
    /// Folders and files that the program may read, in addition to the system's; `~` is your home folder.
    pub read: Vec<PathBuf>,
    /// Folders that the program may change.
    pub write: Vec<PathBuf>,
    /// The URL of a running server (streamable HTTP), in place of a command.
    pub url: Option<String>,
    /// Sent as `Authorization: Bearer …` to the URL.
    pub token: Option<Secret>,
    /// Additional headers for every request to the URL; like tokens, they are never shown.
    pub headers: BTreeMap<String, Secret>,
    /// The purpose of the server, in one sentence, for the agent that delegates.
    pub description: Option<String>,
    /// The level of single tools, by the names that the server uses; `*` means all others. A tool is
    /// dangerous unless it is listed here, whatever the server says about it.
    pub levels: BTreeMap<String, ToolLevel>,
    /// Time limit of one call in seconds.
    pub seconds: NonZeroU64,
    /// Time limit for the start in seconds.
    pub start_seconds: NonZeroU64,
}

impl Default for McpServerSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            network: false,
            read: Vec::new(),
            write: Vec::new(),
            url: None,
            token: None,
            headers: BTreeMap::new(),
            description: None,
            levels: BTreeMap::new(),
            seconds: NonZeroU64::MIN.saturating_add(59),
            start_seconds: NonZeroU64::MIN.saturating_add(29),
        }
    }
}

impl McpServerSettings {
    /// Returns the level of a tool, by the name that the server uses.
    pub fn level(&self, tool: &str) -> Safety {
        let level = self.levels.get(tool).or_else(|| self.levels.get("*"));
        level.copied().map_or(Safety::Dangerous, Safety::from)
    }

    /// Returns all secrets, which must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.token
            .iter()
            .chain(self.headers.values())
            .chain(self.env.values())
    }

    /// Returns the whole command line or the URL, for people.
    pub fn command_line(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => std::iter::once(command)
                .chain(&self.args)
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" "),
            (None, Some(url)) => url.clone(),
            (None, None) => String::new(),
        }
    }
}

/// Quotes a word, so that the limits of all words can be seen.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolLevel {
    /// Reads, and changes nothing.
    Safe,
    /// Makes changes that can be undone.
    Moderate,
    /// May destroy data, spend money, publish, or contact other people.
    Dangerous,
}

impl From<ToolLevel> for Safety {
    fn from(level: ToolLevel) -> Self {
        match level {
            ToolLevel::Safe => Self::Safe,
            ToolLevel::Moderate => Self::Moderate,
            ToolLevel::Dangerous => Self::Dangerous,
        }
    }
}

/// The name of a server in the settings: `[a-z][a-z0-9-]{0,31}`. Without `_`, so that no tool of one server
/// can have the name of a tool of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerKey(String);

impl ServerKey {
    pub fn parse(key: &str) -> Result<Self, String> {
        let is_valid = (1..=32).contains(&key.len())
            && key.starts_with(|c: char| c.is_ascii_lowercase())
            && key
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if is_valid {
            return Ok(Self(key.to_owned()));
        }
        let shown = lango_text::sanitize::truncated_line(key, 80);
        Err(format!(
            "`{shown}` is not a name for a tool server: use a lower-case letter, then at most 31 of a-z, 0-9 and `-`"
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_lower_case_words() {
        for good in ["time", "git-hub", "a1"] {
            assert!(ServerKey::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "Time", "a_b", "1a", "../x", "a b", &"a".repeat(33)] {
            assert!(ServerKey::parse(bad).is_err(), "{bad}");
        }
    }

    /// B150: a tool is dangerous unless the settings say otherwise.
    #[test]
    fn tools_are_dangerous_unless_configured() {
        let mut settings = McpServerSettings::default();
        assert_eq!(settings.level("read"), Safety::Dangerous);
        settings.levels.insert("read".to_owned(), ToolLevel::Safe);
        assert_eq!(settings.level("read"), Safety::Safe);
        assert_eq!(settings.level("write"), Safety::Dangerous);
        settings.levels.insert("*".to_owned(), ToolLevel::Moderate);
        assert_eq!(settings.level("write"), Safety::Moderate);
    }

    #[test]
    fn the_command_line_shows_the_limits_of_words() {
        let settings = McpServerSettings {
            command: Some("npx".to_owned()),
            args: vec!["-y".to_owned(), "a b; rm".to_owned(), "it's".to_owned()],
            ..McpServerSettings::default()
        };
        assert_eq!(settings.command_line(), r"npx -y 'a b; rm' 'it'\''s'");
    }
}
