//! Classifies the error responses of providers.

use std::time::Duration;

use lango_domain::model::ModelError;
use lango_domain::reply_limits::MAX_VALUES;
use lango_net::json;
use serde::Deserialize;
use serde_json::Value;

/// An HTTP response with an error status.
pub(crate) struct ErrorResponse<'a> {
    pub status: u16,
    pub retry_after: Option<&'a str>,
    pub body: &'a str,
}

/// The JSON forms of provider errors.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ProviderErrorBody {
    error: Option<ProviderErrorField>,
    /// Used by servers that put the message at the top level.
    message: Option<String>,
    detail: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ProviderErrorField {
    Text(String),
    Detail(ProviderErrorDetail),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ProviderErrorDetail {
    pub message: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub code: Option<Value>,
    pub status: Option<String>,
    /// Google's error details.
    pub details: Option<Vec<Value>>,
}

impl ErrorResponse<'_> {
    pub fn to_model_error(&self) -> ModelError {
        let detail = parse_detail(self.body);
        match self.status {
            401 | 403 => ModelError::Auth,
            402 => ModelError::Quota,
            400 | 404 if detail.is_auth_error() => ModelError::Auth,
            404 => ModelError::NotFound(detail.short_message()),
            413 => ModelError::TooLong,
            429 if detail.has_code("insufficient_quota") => ModelError::Quota,
            408 | 409 | 425 | 429 | 500..=599 => ModelError::Busy {
                retry_after: self.retry_after(),
            },
            _ => detail.to_model_error(),
        }
    }

    /// Returns the delay in seconds; the date form is ignored.
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after?
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|s| (0.0..86_400.0).contains(s))
            .map(Duration::from_secs_f64)
    }
}

/// Parses the error detail from a response body or a stream event.
pub(crate) fn parse_detail(body: &str) -> ProviderErrorDetail {
    let body_fields =
        json::parse::<ProviderErrorBody>(body.as_bytes(), MAX_VALUES).unwrap_or_default();
    let detail_from_message = |message: String| ProviderErrorDetail {
        message,
        ..ProviderErrorDetail::default()
    };
    match (body_fields.error, body_fields.message, body_fields.detail) {
        (Some(ProviderErrorField::Detail(detail)), ..) => detail,
        (Some(ProviderErrorField::Text(message)), ..) | (_, Some(message), _) => {
            detail_from_message(message)
        }
        (_, None, Some(detail)) => detail_from_message(
            detail
                .as_str()
                .map_or_else(|| detail.to_string(), str::to_owned),
        ),
        _ => detail_from_message(body.lines().next().unwrap_or_default().to_owned()),
    }
}

impl ProviderErrorDetail {
    /// Classifies an error without a meaningful HTTP status.
    pub fn to_model_error(&self) -> ModelError {
        if self.is_too_long() {
            return ModelError::TooLong;
        }
        if self.is_auth_error() {
            return ModelError::Auth;
        }
        if self.has_code("overloaded_error")
            || self.has_code("rate_limit_error")
            || self.has_code("api_error")
            || self.has_code("UNAVAILABLE")
        {
            return ModelError::Busy { retry_after: None };
        }
        if self.has_code("not_found_error") || self.has_code("model_not_found") {
            return ModelError::NotFound(self.short_message());
        }
        // Anthropic has no code for this, only a fixed sentence.
        let is_out_of_credit = self.message.starts_with("Your credit balance is too low");
        if is_out_of_credit || self.has_code("insufficient_quota") || self.has_code("billing_error")
        {
            return ModelError::Quota;
        }
        ModelError::Rejected(self.short_message())
    }

    fn is_auth_error(&self) -> bool {
        let is_key_reason = |detail: &Value| {
            detail
                .get("reason")
                .is_some_and(|reason| reason == "API_KEY_INVALID")
        };
        self.has_code("authentication_error")
            || self.has_code("permission_error")
            || self.has_code("invalid_api_key")
            || self.details.iter().flatten().any(is_key_reason)
    }

    fn has_code(&self, code: &str) -> bool {
        let own_code = self.code.as_ref().and_then(Value::as_str);
        [self.kind.as_deref(), own_code, self.status.as_deref()].contains(&Some(code))
    }

    /// Returns true if the request exceeds the context window. OpenAI and llama.cpp have a code for
    /// this, Anthropic and Gemini only a fixed sentence.
    fn is_too_long(&self) -> bool {
        self.has_code("context_length_exceeded")
            || self.has_code("exceed_context_size_error")
            || self.has_code("request_too_large")
            || self.message.starts_with("prompt is too long")
            || self.message.starts_with("The input token count")
    }

    /// Returns the provider's message on one line, truncated for display.
    fn short_message(&self) -> String {
        let message: String = lango_text::sanitize::one_line(&self.message)
            .chars()
            .take(300)
            .collect();
        if message.is_empty() {
            "no reason given".to_owned()
        } else {
            message
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, retry_after: Option<&str>, body: &str) -> ModelError {
        ErrorResponse {
            status,
            retry_after,
            body,
        }
        .to_model_error()
    }

    fn busy(seconds: Option<u64>) -> ModelError {
        ModelError::Busy {
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    #[test]
    fn classifies_provider_errors() {
        for (status, body, expected) in [
            (401, "", ModelError::Auth),
            (403, "<html>", ModelError::Auth),
            (
                404,
                r#"{"error":{"message":"no model x"}}"#,
                ModelError::NotFound("no model x".into()),
            ),
            (
                404,
                r#"{"error":"no model y"}"#,
                ModelError::NotFound("no model y".into()),
            ),
            (
                404,
                r#"{"detail":"Not Found"}"#,
                ModelError::NotFound("Not Found".into()),
            ),
            (404, "", ModelError::NotFound("no reason given".into())),
            (
                400,
                r#"{"error":{"message":"API key not valid","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                ModelError::Auth,
            ),
            (
                400,
                r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to"}}"#,
                ModelError::Quota,
            ),
            (
                400,
                r#"{"object":"error","message":"no tools here"}"#,
                ModelError::Rejected("no tools here".into()),
            ),
            (413, "", ModelError::TooLong),
            (
                400,
                r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
                ModelError::TooLong,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
                ModelError::TooLong,
            ),
            (
                429,
                r#"{"error":{"code":"insufficient_quota"}}"#,
                ModelError::Quota,
            ),
            (429, "", busy(None)),
            (500, "[]", busy(None)),
            (529, r#"{"error":7}"#, busy(None)),
        ] {
            assert_eq!(error(status, None, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn reads_the_retry_delay_and_the_message() {
        assert_eq!(error(429, Some("7"), ""), busy(Some(7)));
        assert_eq!(error(429, Some("soon"), ""), busy(None));
        assert_eq!(error(503, Some("-1"), ""), busy(None));
        assert!(
            matches!(error(422, None, r#"{"error":{"message":"bad\nfield"}}"#), ModelError::Rejected(reason) if reason == "bad field")
        );
    }
}
