//! The `search.*` settings.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use lango_domain::secret::Secret;

/// `search`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchSettings {
    /// The search engines of `search_web`, in order of preference; the next one is used if one
    /// fails. Without any, there is no `search_web`.
    pub engines: Vec<SearchEngineSettings>,
}

/// One search engine.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchEngineSettings {
    /// The kind of engine.
    pub r#type: EngineKind,
    /// The base URL; needed for `searxng` only. It may be on a private network.
    #[serde(default, serialize_with = "serialize_without_credentials")]
    pub base_url: Option<String>,
    /// The API key, if the engine needs one; use `${NAME}` to read it from an environment variable.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// Seconds to wait for a response; 10 if not set.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// A SearXNG instance with its JSON format enabled.
    Searxng,
    /// Brave Search; needs an API key.
    Brave,
    /// The HTML pages of DuckDuckGo; needs no key, but rejects frequent requests.
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
    /// Creates the settings of an engine at its default address, without a key.
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

fn serialize_without_credentials<S: serde::Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    url.as_deref()
        .map(without_credentials)
        .serialize(serializer)
}

/// Removes the user name and password, the part between `://` and the last `@` before the path.
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
    fn redacts_keys_and_passwords() {
        let text = r#"{ "engines": [{ "type": "brave", "apiKey": "brave-key-1", "baseUrl": "http://ann:p@ss@host/x@y" }] }"#;
        let settings: SearchSettings = serde_json::from_str(text).unwrap();
        for output in [
            format!("{settings:?}"),
            serde_json::to_string(&settings).unwrap(),
        ] {
            assert!(output.contains("http://***@host/x@y"), "{output}");
            assert!(
                !output.contains("brave-key-1") && !output.contains("p@ss"),
                "{output}"
            );
        }
        let error = serde_json::from_str::<Secret>(r#"["brave-key-1"]"#).unwrap_err();
        assert!(!error.to_string().contains("brave-key-1"));
    }

    #[test]
    fn all_settings_are_optional() {
        assert_eq!(
            serde_json::from_str::<SearchSettings>("{}").unwrap(),
            SearchSettings::default()
        );
        let engine: SearchEngineSettings =
            serde_json::from_str(r#"{ "type": "duckduckgo" }"#).unwrap();
        assert_eq!(engine, SearchEngineSettings::new(EngineKind::Duckduckgo));
    }
}
