//! `search.*`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use lango_domain::secret::Secret;

/// `search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchSettings {
    /// The engines that `search_web` asks, in this order: the next one when one fails. Without any there is no `search_web`.
    pub engines: Vec<SearchEngineSettings>,
}

/// One search engine.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchEngineSettings {
    /// Which engine it is.
    pub r#type: EngineKind,
    /// Where it is; needed for `searxng` only. It may be on a private network.
    #[serde(default, serialize_with = "shown_without_credentials")]
    pub base_url: Option<String>,
    /// The key, where the engine wants one; better written as `${NAME}` than as itself.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// Seconds to wait for its answer, 10 if not set.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// One's own SearXNG, with its JSON format switched on.
    Searxng,
    /// Brave Search; needs a key.
    Brave,
    /// The plain pages of DuckDuckGo; needs nothing, and refuses those who ask often.
    Duckduckgo,
}

impl EngineKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Searxng => "SearXNG",
            Self::Brave => "Brave",
            Self::Duckduckgo => "DuckDuckGo",
        }
    }
}

impl SearchEngineSettings {
    /// An engine at its own address, without a key.
    pub fn new(kind: EngineKind) -> Self {
        Self {
            r#type: kind,
            base_url: None,
            api_key: None,
            timeout_seconds: None,
        }
    }
}

impl fmt::Debug for SearchEngineSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("type", &self.r#type)
            .field(
                "base_url",
                &self.base_url.as_deref().map(without_credentials),
            )
            .field("api_key", &self.api_key)
            .field("timeout_seconds", &self.timeout_seconds)
            .finish()
    }
}

fn shown_without_credentials<S: serde::Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    url.as_deref()
        .map(without_credentials)
        .serialize(serializer)
}

/// The part between `://` and the last `@` before the path is a name and a password.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_passwords_are_never_shown() {
        let text = r#"{ "engines": [{ "type": "brave", "apiKey": "brave-key-1", "baseUrl": "http://ann:p@ss@host/x@y" }] }"#;
        let settings: SearchSettings = serde_json::from_str(text).unwrap();
        for shown in [
            format!("{settings:?}"),
            serde_json::to_string(&settings).unwrap(),
        ] {
            assert!(shown.contains("http://***@host/x@y"), "{shown}");
            assert!(
                !shown.contains("brave-key-1") && !shown.contains("p@ss"),
                "{shown}"
            );
        }
        let wrong = serde_json::from_str::<Secret>(r#"["brave-key-1"]"#).unwrap_err();
        assert!(!wrong.to_string().contains("brave-key-1"));
    }

    #[test]
    fn nothing_is_needed() {
        assert_eq!(
            serde_json::from_str::<SearchSettings>("{}").unwrap(),
            SearchSettings::default()
        );
        let engine: SearchEngineSettings =
            serde_json::from_str(r#"{ "type": "duckduckgo" }"#).unwrap();
        assert_eq!(engine, SearchEngineSettings::new(EngineKind::Duckduckgo));
    }
}
