//! Fetching a card: quickly, or not at all.

use std::collections::HashSet;
use std::time::Duration;

use lango_net::{FetchError, body, next_hop};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use url::Url;

use crate::a2a::{AgentCard, FieldError, ParsedCard};
use crate::outbound::{Outbound, OutboundSettingsError};

/// From the first name looked up to the last byte, over all redirects and places.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 256 * 1024;
const MAX_REDIRECTS: usize = 3;

const CARD_PATH_V1: &str = ".well-known/agent-card.json";
const CARD_PATH_V03: &str = ".well-known/agent.json";

/// Why there is no card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Fetch(FetchError),
    #[error("no card is there: the server answered with status {0}")]
    NotFound(u16),
    #[error("it refuses the credentials: the server answered with status {0}")]
    Unauthorized(u16),
    #[error("the card is no JSON")]
    InvalidJson,
    #[error("the card is not valid: {0}")]
    Invalid(#[from] FieldError),
    #[error("nothing that the card offers can be used: {0}")]
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

/// A card and where it was.
#[derive(Clone, Debug)]
pub(crate) struct FetchedCard {
    pub url: Url,
    pub parsed: ParsedCard,
}

/// The card of a colleague, at the first place that has one.
pub(crate) async fn fetch(outgoing: &Outbound) -> Result<FetchedCard, CardError> {
    let found = tokio::time::timeout(FETCH_TIMEOUT, first_card(outgoing));
    found
        .await
        .map_err(|_late| CardError::Fetch(FetchError::TimedOut(FETCH_TIMEOUT)))?
}

async fn first_card(outgoing: &Outbound) -> Result<FetchedCard, CardError> {
    let mut trouble = None;
    for place in candidate_urls(outgoing.card_url()) {
        match follow_redirects(outgoing, place)
            .await
            .map_err(CardError::from)
        {
            Ok((url, bytes)) => {
                let value: Value =
                    serde_json::from_slice(&bytes).map_err(|_| CardError::InvalidJson)?;
                return Ok(FetchedCard {
                    url,
                    parsed: AgentCard::from_json(&value)?,
                });
            }
            // The first place says best what is wrong.
            Err(error @ CardError::NotFound(_)) => trouble = trouble.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(trouble.unwrap_or(CardError::NotFound(404)))
}

/// Where a card may be: what ends in `.json` is its address, anything else is the agent's.
fn candidate_urls(url: &Url) -> Vec<Url> {
    let path = url.path();
    let sibling = |name: &str| url.join(name).ok();
    let below = |name: &str| {
        let mut place = url.clone();
        place.set_path(&format!("{}/{name}", path.trim_end_matches('/')));
        Some(place)
    };
    let places = match path {
        _ if path.ends_with("/agent-card.json") => vec![Some(url.clone()), sibling("agent.json")],
        _ if path.ends_with("/agent.json") => vec![Some(url.clone()), sibling("agent-card.json")],
        _ if path.ends_with(".json") => vec![Some(url.clone())],
        "" | "/" => vec![below(CARD_PATH_V1), below(CARD_PATH_V03)],
        _ => vec![below(CARD_PATH_V1), below(CARD_PATH_V03), Some(url.clone())],
    };
    places.into_iter().flatten().collect()
}

async fn follow_redirects(outgoing: &Outbound, mut url: Url) -> Result<(Url, Vec<u8>), FetchError> {
    let mut seen = HashSet::new();
    loop {
        let request = outgoing.request(Method::GET, &url)?;
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
    fn a_card_is_looked_for_where_it_may_be() {
        let at = |url: &str| -> Vec<String> {
            candidate_urls(&Url::parse(url).unwrap())
                .into_iter()
                .map(String::from)
                .collect()
        };
        let base = [
            "http://a.example/.well-known/agent-card.json",
            "http://a.example/.well-known/agent.json",
        ];
        assert_eq!(at("http://a.example"), base);
        assert_eq!(at("http://a.example/"), base);
        assert_eq!(at("http://a.example/.well-known/agent-card.json"), base);
        assert_eq!(
            at("http://a.example/.well-known/agent.json"),
            [base[1], base[0]]
        );
        assert_eq!(at("http://a.example/my.json"), ["http://a.example/my.json"]);
        assert_eq!(
            at("http://a.example/agents/x/?k=v"),
            [
                "http://a.example/agents/x/.well-known/agent-card.json?k=v",
                "http://a.example/agents/x/.well-known/agent.json?k=v",
                "http://a.example/agents/x/?k=v",
            ]
        );
    }
}
