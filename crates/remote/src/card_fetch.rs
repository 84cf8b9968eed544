//! Fetches agent cards within a short time limit.

use std::collections::HashSet;
use std::time::Duration;

use lango_net::{FetchError, body, next_hop};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use url::Url;

use crate::a2a::{AgentCard, FieldError, ParsedCard};
use crate::outbound::{Outbound, OutboundSettingsError};

/// From the first DNS lookup to the last byte, including redirects and all candidate URLs.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 256 * 1024;
const MAX_REDIRECTS: usize = 3;

const CARD_PATH_V1: &str = ".well-known/agent-card.json";
const CARD_PATH_V03: &str = ".well-known/agent.json";

/// Error of fetching an agent card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Fetch(FetchError),
    #[error("no agent card found: the server returned status {0}")]
    NotFound(u16),
    #[error("the credentials were rejected: the server returned status {0}")]
    Unauthorized(u16),
    #[error("the agent card is not valid JSON")]
    InvalidJson,
    #[error("the agent card is invalid: {0}")]
    Invalid(#[from] FieldError),
    #[error("no interface of the agent card can be used: {0}")]
    Unusable(String),
}

impl From<FetchError> for CardError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Status(code @ (401 | 403)) => Self::Unauthorized(code),
            FetchError::Status(code @ (404 | 405 | 410)) => Self::NotFound(code),
            other => Self::Fetch(other),
        }
    }
}

impl From<OutboundSettingsError> for CardError {
    fn from(error: OutboundSettingsError) -> Self {
        Self::Settings(error.to_string())
    }
}

/// An agent card with its URL.
#[derive(Clone, Debug)]
pub(crate) struct FetchedCard {
    pub url: Url,
    pub parsed: ParsedCard,
}

/// Fetches the card of a remote agent from the first candidate URL that has one.
pub(crate) async fn fetch(outbound: &Outbound) -> Result<FetchedCard, CardError> {
    tokio::time::timeout(FETCH_TIMEOUT, first_card(outbound))
        .await
        .map_err(|_elapsed| CardError::Fetch(FetchError::TimedOut(FETCH_TIMEOUT)))?
}

async fn first_card(outbound: &Outbound) -> Result<FetchedCard, CardError> {
    let mut first_error = None;
    for url in candidate_urls(outbound.card_url()) {
        let response = follow_redirects(outbound, url).await;
        match response.map_err(CardError::from) {
            Ok((url, bytes)) => {
                let value: Value =
                    serde_json::from_slice(&bytes).map_err(|_| CardError::InvalidJson)?;
                return Ok(FetchedCard {
                    url,
                    parsed: AgentCard::from_json(&value)?,
                });
            }
            // The error of the first URL is the most useful one.
            Err(error @ CardError::NotFound(_)) => first_error = first_error.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(first_error.unwrap_or(CardError::NotFound(404)))
}

/// Returns the URLs where a card may be: a URL that ends in `.json` is the card itself, any other
/// is the agent.
fn candidate_urls(url: &Url) -> Vec<Url> {
    let path = url.path();
    let sibling = |name: &str| url.join(name).ok();
    let below = |name: &str| {
        let mut candidate = url.clone();
        candidate.set_path(&format!("{}/{name}", path.trim_end_matches('/')));
        Some(candidate)
    };
    let candidates = match path {
        _ if path.ends_with("/agent-card.json") => vec![Some(url.clone()), sibling("agent.json")],
        _ if path.ends_with("/agent.json") => vec![Some(url.clone()), sibling("agent-card.json")],
        _ if path.ends_with(".json") => vec![Some(url.clone())],
        "" | "/" => vec![below(CARD_PATH_V1), below(CARD_PATH_V03)],
        _ => vec![below(CARD_PATH_V1), below(CARD_PATH_V03), Some(url.clone())],
    };
    candidates.into_iter().flatten().collect()
}

async fn follow_redirects(outbound: &Outbound, mut url: Url) -> Result<(Url, Vec<u8>), FetchError> {
    let mut seen = HashSet::new();
    loop {
        let request = outbound.request(Method::GET, &url)?;
        let request = request
            .header(ACCEPT, "application/json")
            .header(ACCEPT_ENCODING, body::ACCEPTED_ENCODINGS);
        let response = request
            .send()
            .await
            .map_err(|error| FetchError::from_reqwest(&error))?;
        let Some(next) = next_hop(&url, &response)? else {
            return Ok((url, read_body(response).await?));
        };
        seen.insert(url);
        if seen.contains(&next) {
            return Err(FetchError::RedirectLoop);
        }
        if seen.len() > MAX_REDIRECTS {
            return Err(FetchError::TooManyRedirects(MAX_REDIRECTS));
        }
        url = next;
    }
}

async fn read_body(response: Response) -> Result<Vec<u8>, FetchError> {
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    body::read(response, MAX_BYTES).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidate_urls_depend_on_the_path() {
        let candidates = |url: &str| -> Vec<String> {
            candidate_urls(&Url::parse(url).unwrap())
                .into_iter()
                .map(String::from)
                .collect()
        };
        let base = [
            "http://a.example/.well-known/agent-card.json",
            "http://a.example/.well-known/agent.json",
        ];
        assert_eq!(candidates("http://a.example"), base);
        assert_eq!(candidates("http://a.example/"), base);
        assert_eq!(
            candidates("http://a.example/.well-known/agent-card.json"),
            base
        );
        assert_eq!(
            candidates("http://a.example/.well-known/agent.json"),
            [base[1], base[0]]
        );
        assert_eq!(
            candidates("http://a.example/my.json"),
            ["http://a.example/my.json"]
        );
        assert_eq!(
            candidates("http://a.example/agents/x/?k=v"),
            [
                "http://a.example/agents/x/.well-known/agent-card.json?k=v",
                "http://a.example/agents/x/.well-known/agent.json?k=v",
                "http://a.example/agents/x/?k=v",
            ]
        );
    }
}
