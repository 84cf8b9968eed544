//! The HTTP client of embedding providers, with timeouts and retries.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect;
use serde_json::Value;

use lango_domain::secret::Secret;

use super::{EmbedError, EmbeddingSettings};

/// A source of random numbers from 0 to 1.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// 96 vectors of 8,192 dimensions, as JSON, are smaller than this.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;
/// Bytes that are read from the body of an error response.
const MAX_ERROR_BYTES: usize = 16 * 1024;
/// Characters of a provider's text in an error message.
const MAX_ERROR_CHARS: usize = 300;
/// The longest delay before a retry. A provider that asks for more gets no retry.
const MAX_WAIT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout, number of retries and their delays.
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

/// A client for one endpoint of a provider.
#[derive(Clone)]
pub(super) struct EmbeddingClient {
    client: reqwest::Client,
    url: String,
    key: Option<(HeaderName, HeaderValue)>,
    secret: Option<Secret>,
    retry_policy: EmbedRetryPolicy,
}

impl EmbeddingClient {
    /// Creates a client that sends `secret` in the header `name`, after `prefix`.
    pub fn new(
        url: String,
        secret: Option<Secret>,
        (name, prefix): (&'static str, &str),
        retry_policy: EmbedRetryPolicy,
    ) -> Result<Self, EmbedError> {
        let secret = secret.filter(|secret| !secret.expose().trim().is_empty());
        let key = match &secret {
            Some(secret) => {
                let invalid = |_| EmbedError::Setting {
                    setting: "apiKey",
                    reason: "the key contains characters that are not allowed in a header"
                        .to_owned(),
                };
                let mut value =
                    HeaderValue::from_str(&format!("{prefix}{}", secret.expose().trim()))
                        .map_err(invalid)?;
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
            retry_policy,
        })
    }

    /// Sends `body` and returns the response body. Retries as the policy allows.
    pub async fn post(&self, body: &Value) -> Result<Vec<u8>, EmbedError> {
        let body = body.to_string();
        let mut attempt = 0;
        loop {
            let error = match self.post_with_timeout(body.clone()).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match self.retry_delay(&error, attempt) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(self.redact(error)),
            }
            attempt += 1;
        }
    }

    /// Removes the key and control characters from the texts of an error and truncates them.
    pub fn redact(&self, error: EmbedError) -> EmbedError {
        error.map_text(|text| {
            let redacted = match &self.secret {
                Some(secret) => secret.redact(text),
                None => text.to_owned(),
            };
            // Truncate after redacting: a truncated key would not be recognized.
            redacted
                .chars()
                .filter(|c| !c.is_control())
                .take(MAX_ERROR_CHARS)
                .collect()
        })
    }

    async fn post_with_timeout(&self, body: String) -> Result<Vec<u8>, EmbedError> {
        let timed_out = |_| {
            EmbedError::Connection(format!(
                "no response within {} s",
                self.retry_policy.timeout.as_secs()
            ))
        };
        tokio::time::timeout(self.retry_policy.timeout, self.post_once(body))
            .await
            .map_err(timed_out)?
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
        let mut content = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(connection_error)? {
            if content.len() + bytes.len() > MAX_RESPONSE_BYTES {
                let reason = format!("it is larger than {} MiB", MAX_RESPONSE_BYTES >> 20);
                return Err(EmbedError::Malformed(reason));
            }
            content.extend_from_slice(&bytes);
        }
        Ok(content)
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
                retry_after: Some(requested),
            } => (*requested <= MAX_WAIT).then(|| backoff.max(*requested)),
            EmbedError::Busy { retry_after: None } | EmbedError::Connection(_) => Some(backoff),
            _ => None,
        }
    }
}

/// Builds a client that follows no redirects, because a key belongs to one origin.
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
    let error_body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let code =
        |name: &str| error_body["error"]["code"] == name || error_body["error"]["type"] == name;
    let details = error_body["error"]["details"].as_array();
    let is_key = details
        .into_iter()
        .flatten()
        .any(|detail| detail["reason"] == "API_KEY_INVALID");
    match status {
        401 | 403 => EmbedError::Auth,
        400 if is_key || code("invalid_api_key") => EmbedError::Auth,
        402 => EmbedError::Quota,
        404 => EmbedError::NotFound(error_message(&error_body, &body)),
        413 => EmbedError::TooLong,
        400 if code("context_length_exceeded") => EmbedError::TooLong,
        429 if code("insufficient_quota") => EmbedError::Quota,
        408 | 409 | 425 | 429 | 500..=599 => EmbedError::Busy { retry_after },
        _ => EmbedError::Refused(format!(
            "{} (status {status})",
            error_message(&error_body, &body)
        )),
    }
}

/// Parses a `Retry-After` header in seconds; dates are ignored.
fn parse_retry_after(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse::<f64>().ok()?;
    (0.0..86_400.0)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

/// Returns the provider's error message from one of the fields that providers use.
fn error_message(error_body: &Value, body: &[u8]) -> String {
    let fields = [
        &error_body["error"]["message"],
        &error_body["error"],
        &error_body["message"],
        &error_body["detail"],
    ];
    let message = fields
        .into_iter()
        .find_map(Value::as_str)
        .map(str::to_owned);
    let message = message.unwrap_or_else(|| {
        String::from_utf8_lossy(body)
            .lines()
            .next()
            .unwrap_or("")
            .to_owned()
    });
    if message.trim().is_empty() {
        "no reason given".to_owned()
    } else {
        message
    }
}

/// Returns the innermost cause: the outer ones only state that a request failed.
fn connection_error(error: reqwest::Error) -> EmbedError {
    // A URL may contain a password.
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    EmbedError::Connection(cause.to_string())
}
