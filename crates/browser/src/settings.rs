//! The settings `browser.*`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use lango_domain::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `browser`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BrowserSettings {
    /// The program to start [default: chromium-headless-shell, Chromium, Chrome or Edge, the first that
    /// is found].
    pub path: Option<PathBuf>,
    /// Run without a window. Set it to false to watch; this needs a browser with windows and a display.
    pub headless: bool,
    /// If not empty, only these hosts can be reached: names, or `*.example.org` for all below a domain.
    /// Private addresses also need `net.allowPrivate`.
    pub allow_hosts: Vec<String>,
    /// Hosts that cannot be reached, even if `allowHosts` names them.
    pub deny_hosts: Vec<String>,
    /// The search page of `browser_search`; `{query}` is replaced by the words.
    pub search_url: String,
    /// Minutes without a call after which the browser is closed.
    pub idle_minutes: NonZeroU32,
    /// Let agents run JavaScript in pages (`browser_action` with `eval`). A script can do anything that the
    /// page can do.
    pub allow_eval: bool,
    /// A name: cookies are kept under it for later sessions. Without one they end with the session.
    pub profile: Option<String>,
    /// User names and passwords for sites that ask for them, by host or `host:port`: `vault:NAME` of a secret
    /// `user:password`. They are sent to that host only, encrypted or within your own network.
    pub credentials: BTreeMap<String, Secret>,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self {
            path: None,
            headless: true,
            allow_hosts: Vec::new(),
            deny_hosts: Vec::new(),
            search_url: "https://html.duckduckgo.com/html/?q={query}".to_owned(),
            idle_minutes: NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN),
            allow_eval: false,
            profile: None,
            credentials: BTreeMap::new(),
        }
    }
}

impl BrowserSettings {
    /// Returns true if a host may be reached, as far as the lists of hosts decide it.
    pub fn allows_host(&self, host: &str) -> bool {
        let is_listed = |list: &[String]| list.iter().any(|pattern| host_matches(pattern, host));
        !is_listed(&self.deny_hosts)
            && (self.allow_hosts.is_empty() || is_listed(&self.allow_hosts))
    }
}

fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_lowercase(), host.to_lowercase());
    let host = host.trim_end_matches('.');
    match pattern.strip_prefix("*.") {
        Some(domain) => host
            .strip_suffix(domain)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => host == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_allowed_by_name_or_below_a_domain() {
        let settings = BrowserSettings {
            allow_hosts: vec!["a.example".to_owned(), "*.b.example".to_owned()],
            deny_hosts: vec!["evil.b.example".to_owned()],
            ..BrowserSettings::default()
        };
        for (host, is_allowed) in [
            ("a.example", true),
            ("A.example", true),
            ("a.example.", true),
            ("x.a.example", false),
            ("b.example", false),
            ("x.b.example", true),
            ("evil.b.example", false),
            ("evil.b.example.", false),
            ("c.example", false),
        ] {
            assert_eq!(settings.allows_host(host), is_allowed, "{host}");
        }
        assert!(BrowserSettings::default().allows_host("anything.example"));
    }
}
