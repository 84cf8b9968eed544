//! Deliveries to webhooks: signed JSON, posted to addresses that are checked on connect.
//!
//! The signature is `v1=` and the hexadecimal HMAC-SHA256 of the timestamp header, a dot and the body.
//! Receivers verify it, reject old timestamps, and ignore a key that they have seen.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use lango_domain::secret::Secret;
use lango_net::{AddressPolicy, FetchError, FetchLimits, GuardedClient, JsonPost, check_url};
use ring::hmac;
use url::Url;

use super::channels::{DeliverySender, SendError, SentMessage};
use super::message::OutgoingMessage;
use super::settings::WebhookSettings;

/// The time of the request in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "X-Lango-Timestamp";
pub const SIGNATURE_HEADER: &str = "X-Lango-Signature";
/// The key of the delivery, the same in every attempt.
pub const IDEMPOTENCY_HEADER: &str = "Idempotency-Key";

const MAX_TEXT_BYTES: usize = 64 * 1024;
const MIN_SECRET_CHARS: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The client and the secret for webhooks.
pub struct WebhookChannel {
    client: GuardedClient,
    secret: Option<Secret>,
}

impl WebhookChannel {
    pub fn new(settings: &WebhookSettings, policy: AddressPolicy) -> Self {
        Self::with_timeout(settings, policy, REQUEST_TIMEOUT)
    }

    /// Creates a channel whose requests take at most `timeout`.
    pub fn with_timeout(
        settings: &WebhookSettings,
        policy: AddressPolicy,
        timeout: Duration,
    ) -> Self {
        let limits = FetchLimits {
            connect: CONNECT_TIMEOUT.min(timeout),
            total: timeout,
            body: 0,
            redirects: 0,
            can_leave_host: false,
        };
        Self {
            client: GuardedClient::new(policy, limits),
            secret: settings.secret.clone(),
        }
    }

    /// Returns the secret, or the reason why nothing can be signed.
    pub(super) fn secret(&self) -> Result<&Secret, String> {
        signing_secret(self.secret.as_ref())
    }
}

fn signing_secret(secret: Option<&Secret>) -> Result<&Secret, String> {
    match secret {
        Some(secret) if secret.expose().chars().count() >= MIN_SECRET_CHARS => Ok(secret),
        Some(_) => Err(format!(
            "automation.webhook.secret is too short to sign webhooks; it needs {MIN_SECRET_CHARS} characters"
        )),
        None => Err("there is no secret to sign it; set automation.webhook.secret".to_owned()),
    }
}

/// Returns the reason why nothing can be sent to a URL.
pub(super) fn check(
    settings: &WebhookSettings,
    policy: AddressPolicy,
    url: &Url,
) -> Result<(), String> {
    signing_secret(settings.secret.as_ref())?;
    check_url(url, policy).map_err(|error| explain(&error))
}

pub(super) struct WebhookSender<'a> {
    pub channel: &'a WebhookChannel,
    pub secret: &'a Secret,
    pub url: &'a Url,
}

impl DeliverySender for WebhookSender<'_> {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>> {
        let body = message.to_json(MAX_TEXT_BYTES).to_string();
        let headers = vec![
            (TIMESTAMP_HEADER, message.sent_at.as_second().to_string()),
            (
                SIGNATURE_HEADER,
                sign_webhook(self.secret, message.sent_at, &body),
            ),
            (IDEMPOTENCY_HEADER, message.key()),
        ];
        let post = JsonPost {
            url: self.url.as_str(),
            headers,
            body,
        };
        async move {
            let error = match self.channel.client.post_json(post).await {
                Ok(200..300) => return Ok(SentMessage::default()),
                Ok(status) => FetchError::Status(status),
                Err(error) => error,
            };
            Err(match error.is_temporary() {
                true => SendError::Temporary(explain(&error)),
                false => SendError::Permanent(explain(&error)),
            })
        }
        .boxed()
    }
}

/// Returns the signature header of a webhook request.
pub fn sign_webhook(secret: &Secret, at: Timestamp, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let mut context = hmac::Context::with_key(&key);
    for part in [&at.as_second().to_string(), ".", body] {
        context.update(part.as_bytes());
    }
    let bytes = context.sign();
    let digits = bytes.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("v1={}", digits.collect::<String>())
}

/// Explains an error without the URL, whose path is often a secret.
fn explain(error: &FetchError) -> String {
    match error {
        FetchError::NotAUrl(_) => "the webhook is not a URL".to_owned(),
        FetchError::OtherHost(_) => "the webhook redirects to another host".to_owned(),
        FetchError::Status(status @ 300..400) => {
            format!("the server returned status {status}; redirects are not followed")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_an_hmac_of_timestamp_and_body() {
        // Computed with `printf '1700000000.{}' | openssl dgst -sha256 -hmac 0123456789abcdef`.
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        let secret = Secret::new("0123456789abcdef");
        assert_eq!(sign_webhook(&secret, at, "{}"), EXPECTED);
        assert_ne!(sign_webhook(&secret, at, "{ }"), EXPECTED);
        let later = Timestamp::from_second(1_700_000_001).unwrap();
        assert_ne!(sign_webhook(&secret, later, "{}"), EXPECTED);
    }

    const EXPECTED: &str = "v1=e4f8e2ecae2295b2ddb2f0b5584c8275e226c0ebe9b3b819e70156bb67122e3e";
}
