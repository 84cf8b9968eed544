//! One request to a provider of embeddings: sent, watched, and sent again while that makes sense.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect;
use serde_json::Value;

use lango_domain::secret::Secret;

use super::{EmbedError, EmbeddingSettings};

/// Gives a number from 0 to 1, different each time.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// 96 vectors of 8,192 dimensions, written out, are smaller than this.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// At most so much of a refusal is read, and so many of its characters are repeated.
const MAX_ERROR_BYTES: usize = 16 * 1024;
const MAX_WORDS: usize = 300;
/// Nobody wants to wait longer, whatever a provider asks for.
const MAX_WAIT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for what, and how often to try again.
#[derive(Clone)]
pub(super) struct EmbedRetryPolicy {
    pub retries: u32,
    pub delay: Duration,
    pub timeout: Duration,
    pub jitter: Jitter,
}

impl EmbedRetryPolicy {
    pub fn from_settings(settings: &EmbeddingSettings, jitter: Jitter) -> Self {
        Self {
            retries: settings.retries,
            delay: Duration::from_millis(settings.retry_delay_ms),
            timeout: Duration::from_secs(settings.timeout_seconds.max(1)),
            jitter,
        }
    }
}

/// Where requests go, and with which key.
#[derive(Clone)]
pub(super) struct EmbeddingClient {
    client: reqwest::Client,
    url: String,
    key: Option<(HeaderName, HeaderValue)>,
    secret: Option<Secret>,
    retry_policy: EmbedRetryPolicy,
}

impl EmbeddingClient {
    /// `key` stands in the header `name` after `before`.
    pub fn new(
        url: String,
        secret: Option<Secret>,
        (name, before): (&'static str, &str),
        patience: EmbedRetryPolicy,
    ) -> Result<Self, EmbedError> {
        let secret = secret.filter(|secret| !secret.expose().trim().is_empty());
        let key = match &secret {
            Some(secret) => {
                let unfit = |_| EmbedError::Setting {
                    setting: "apiKey",
                    reason: "it cannot be sent in a header".to_owned(),
                };
                let mut value =
                    HeaderValue::from_str(&format!("{before}{}", secret.expose().trim()))
                        .map_err(unfit)?;
                value.set_sensitive(true);
                Some((HeaderName::from_static(name), value))
            }
            None => None,
        };
        Ok(Self {
            client: build_client()?,
            url,
            key,
            secret,
            retry_policy: patience,
        })
    }

    /// The answer to `body`, after as many attempts as are allowed.
    pub async fn post(&self, body: &Value) -> Result<Vec<u8>, EmbedError> {
        let body = body.to_string();
        let mut attempt = 0;
        loop {
            let error = match self.post_with_timeout(body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match self.retry_delay(&error, attempt) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(self.redact(error)),
            }
            attempt += 1;
        }
    }

    /// Whatever a provider repeats of the key stays here.
    pub fn redact(&self, error: EmbedError) -> EmbedError {
        error.map_text(|words| {
            let shown = match &self.secret {
                Some(secret) => secret.redact(words),
                None => words.to_owned(),
            };
            // Cut only now: a key that is cut first would not be recognised.
            shown
                .chars()
                .filter(|c| !c.is_control())
                .take(MAX_WORDS)
                .collect()
        })
    }

    async fn post_with_timeout(&self, body: String) -> Result<Vec<u8>, EmbedError> {
        let late = |_| {
            EmbedError::Connection(format!(
                "no answer within {} s",
                self.retry_policy.timeout.as_secs()
            ))
        };
        tokio::time::timeout(self.retry_policy.timeout, self.post_once(body))
            .await
            .map_err(late)?
    }

    async fn post_once(&self, body: String) -> Result<Vec<u8>, EmbedError> {
        let mut request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        if let Some((name, value)) = &self.key {
            request = request.header(name, value);
        }
        let mut response = request.send().await.map_err(connection_error)?;
        if !response.status().is_success() {
            return Err(error_from_response(response).await);
        }
        let mut answer = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(connection_error)? {
            if answer.len() + bytes.len() > MAX_ANSWER_BYTES {
                return Err(EmbedError::Malformed("it has no end".to_owned()));
            }
            answer.extend_from_slice(&bytes);
        }
        Ok(answer)
    }

    fn retry_delay(&self, error: &EmbedError, attempt: u32) -> Option<Duration> {
        if attempt >= self.retry_policy.retries {
            return None;
        }
        let share = 0.5 + (self.retry_policy.jitter)().clamp(0.0, 1.0) / 2.0;
        let doubled = self
            .retry_policy
            .delay
            .saturating_mul(1 << attempt.min(16))
            .min(MAX_WAIT);
        let backoff = doubled.mul_f64(share);
        match error {
            EmbedError::Busy {
                retry_after: Some(asked),
            } => (*asked <= MAX_WAIT).then(|| backoff.max(*asked)),
            EmbedError::Busy { retry_after: None } | EmbedError::Connection(_) => Some(backoff),
            _ => None,
        }
    }
}

/// It follows no redirect, because a key belongs to one address.
fn build_client() -> Result<reqwest::Client, EmbedError> {
    lango_net::install_tls();
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true)
        .build()
        .map_err(connection_error)
}

async fn error_from_response(mut response: reqwest::Response) -> EmbedError {
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| parse_retry_after(value.to_str().ok()?));
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES {
        match response.chunk().await {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            _ => break,
        }
    }
    let explained: Value = serde_json::from_slice(&body).unwrap_or_default();
    let code =
        |name: &str| explained["error"]["code"] == name || explained["error"]["type"] == name;
    let details = explained["error"]["details"].as_array();
    let is_key = details
        .into_iter()
        .flatten()
        .any(|detail| detail["reason"] == "API_KEY_INVALID");
    match status {
        401 | 403 => EmbedError::Auth,
        400 if is_key || code("invalid_api_key") => EmbedError::Auth,
        402 => EmbedError::Quota,
        404 => EmbedError::NotFound(error_message(&explained, &body)),
        413 => EmbedError::TooLong,
        400 if code("context_length_exceeded") => EmbedError::TooLong,
        429 if code("insufficient_quota") => EmbedError::Quota,
        408 | 409 | 425 | 429 | 500..=599 => EmbedError::Busy { retry_after },
        _ => EmbedError::Refused(format!(
            "{} (status {status})",
            error_message(&explained, &body)
        )),
    }
}

/// A date is not worth waiting for exactly.
fn parse_retry_after(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse::<f64>().ok()?;
    (0.0..86_400.0)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

/// What the provider says for itself, in one of the places where providers say it.
fn error_message(explained: &Value, body: &[u8]) -> String {
    let places = [
        &explained["error"]["message"],
        &explained["error"],
        &explained["message"],
        &explained["detail"],
    ];
    let said = places
        .into_iter()
        .find_map(Value::as_str)
        .map(str::to_owned);
    let said = said.unwrap_or_else(|| {
        String::from_utf8_lossy(body)
            .lines()
            .next()
            .unwrap_or("")
            .to_owned()
    });
    if said.trim().is_empty() {
        "it does not say why".to_owned()
    } else {
        said
    }
}

/// The innermost reason: the outer ones only say that a request failed.
fn connection_error(error: reqwest::Error) -> EmbedError {
    // An address may hold a password.
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    EmbedError::Connection(cause.to_string())
}
