//! Clients of the configured search engines. Engines may be on a private network, because the user
//! configured them.

use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use reqwest::{Client, StatusCode};
use url::Url;

use super::search_results::{self, WebResult};
use super::settings::{EngineKind, SearchEngineSettings};
use lango_domain::secret::Secret;
use lango_net::{FetchError, body, charset, client_builder};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_SECONDS: u64 = 10;
const MAX_SECONDS: u64 = 120;
const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;

/// An error in the configuration of the web tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    #[error("search.engines[{at}]: {reason}")]
    Engine { at: usize, reason: &'static str },
    #[error(transparent)]
    Client(#[from] FetchError),
}

/// A client of a search engine.
#[derive(Clone)]
pub struct SearchEngineClient {
    kind: EngineKind,
    base: Url,
    key: Option<(Secret, HeaderValue)>,
    client: Client,
    timeout: Duration,
}

pub fn connect_all(engines: &[SearchEngineSettings]) -> Result<Vec<SearchEngineClient>, WebError> {
    let client = client_builder(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| FetchError::Setup(error.to_string()))?;
    let connect = |(at, engine)| {
        connect(engine, client.clone()).map_err(|reason| WebError::Engine { at, reason })
    };
    engines.iter().enumerate().map(connect).collect()
}

fn connect(
    engine: &SearchEngineSettings,
    client: Client,
) -> Result<SearchEngineClient, &'static str> {
    let base = match (engine.base_url.as_deref(), engine.r#type) {
        (Some(base), _) => base,
        (None, EngineKind::Searxng) => return Err("searxng needs a baseUrl"),
        (None, EngineKind::Brave) => "https://api.search.brave.com",
        (None, EngineKind::Duckduckgo) => "https://html.duckduckgo.com",
    };
    let base = Url::parse(base.trim()).map_err(|_| "baseUrl is not a URL")?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err("baseUrl must start with https:// or http://");
    }
    let key = match &engine.api_key {
        Some(secret) => Some((secret.clone(), key_header(secret)?)),
        None if engine.r#type == EngineKind::Brave => return Err("brave needs an apiKey"),
        None => None,
    };
    let seconds = engine.timeout_seconds.unwrap_or(DEFAULT_SECONDS);
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err("timeoutSeconds must be from 1 to 120");
    }
    Ok(SearchEngineClient {
        kind: engine.r#type,
        base,
        key,
        client,
        timeout: Duration::from_secs(seconds),
    })
}

fn key_header(secret: &Secret) -> Result<HeaderValue, &'static str> {
    let mut value = HeaderValue::from_str(secret.expose().trim())
        .map_err(|_| "apiKey contains characters that are not allowed in a header")?;
    value.set_sensitive(true);
    Ok(value)
}

impl SearchEngineClient {
    /// Returns the engine and the host that receives the query, for users.
    pub fn display_name(&self) -> String {
        format!("{} ({})", self.kind.name(), self.host())
    }

    pub fn host(&self) -> String {
        self.base.host_str().unwrap_or_default().to_owned()
    }

    /// Returns the results. The error is a text for the model, without the key.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Vec<WebResult>, String> {
        let request = self.fetch_results(query, limit);
        let results = match tokio::time::timeout(self.timeout, request).await {
            Ok(results) => results,
            Err(_elapsed) => Err(format!("no response within {} s", self.timeout.as_secs())),
        };
        let mut results = results.map_err(|reason| self.redact_key(&reason))?;
        results.truncate(limit);
        for result in &mut results {
            result.map_text(|text| self.redact_key(text));
        }
        Ok(results)
    }

    async fn fetch_results(&self, query: &str, limit: usize) -> Result<Vec<WebResult>, String> {
        let mut request = self.client.get(self.search_url(query, limit));
        if let (EngineKind::Brave, Some((_, key))) = (self.kind, &self.key) {
            request = request.header("X-Subscription-Token", key.clone());
        } else if let Some((key, _)) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        let accept = if self.kind == EngineKind::Duckduckgo {
            "text/html"
        } else {
            "application/json"
        };
        let request = request
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, body::ACCEPTED_ENCODINGS);
        let response = request
            .send()
            .await
            .map_err(|error| FetchError::from_reqwest(&error).to_string())?;
        if response.status() != StatusCode::OK {
            return Err(self.status_error(response.status()));
        }
        let bytes = body::read(response, MAX_BODY_BYTES)
            .await
            .map_err(|error| error.to_string())?;
        match self.kind {
            EngineKind::Searxng => search_results::parse_searxng(&bytes),
            EngineKind::Brave => search_results::parse_brave(&bytes),
            EngineKind::Duckduckgo => {
                search_results::parse_duckduckgo(&charset::decode(&bytes, None), &self.base)
            }
        }
    }

    fn search_url(&self, query: &str, limit: usize) -> Url {
        let mut url = self.base.clone();
        let path: &[&str] = match self.kind {
            EngineKind::Searxng => &["search"],
            EngineKind::Brave => &["res", "v1", "web", "search"],
            // Its path ends with a slash.
            EngineKind::Duckduckgo => &["html", ""],
        };
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url.query_pairs_mut().append_pair("q", query);
        match self.kind {
            EngineKind::Searxng => _ = url.query_pairs_mut().append_pair("format", "json"),
            EngineKind::Brave => {
                _ = url
                    .query_pairs_mut()
                    .append_pair("count", &limit.to_string())
            }
            EngineKind::Duckduckgo => {}
        }
        url
    }

    fn status_error(&self, status: StatusCode) -> String {
        let hint = match (self.kind, status.as_u16()) {
            (_, 300..=399) => "; it redirects; set baseUrl to the target of the redirect",
            (EngineKind::Searxng, 403) => "; its JSON format may be disabled",
            (EngineKind::Duckduckgo, 202 | 403) => "; it requires a captcha",
            (_, 401 | 403 | 422) => "; the API key may be missing or invalid",
            (_, 429) => "; the rate limit is exceeded",
            _ => "",
        };
        format!("status {}{hint}", status.as_u16())
    }

    fn redact_key(&self, text: &str) -> String {
        self.key
            .as_ref()
            .map_or_else(|| text.to_owned(), |(key, _)| key.redact(text))
    }
}
