//! What a provider's refusal means.

use std::time::Duration;

use lango_domain::model::ModelError;
use lango_domain::reply_limits::MAX_VALUES;
use lango_net::json;
use serde::Deserialize;
use serde_json::Value;

/// An answer that is not a reply.
pub(crate) struct ErrorResponse<'a> {
    pub status: u16,
    pub retry_after: Option<&'a str>,
    pub body: &'a str,
}

/// The shapes in which providers explain themselves.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ProviderErrorBody {
    error: Option<ProviderErrorField>,
    /// Where some servers explain themselves without a frame around it.
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
    /// Google's way of saying why.
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

    /// In seconds; a date is not worth waiting for exactly.
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after?
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|s| (0.0..86_400.0).contains(s))
            .map(Duration::from_secs_f64)
    }
}

/// What the provider said about its refusal, in a body or inside a stream.
pub(crate) fn parse_detail(body: &str) -> ProviderErrorDetail {
    let explained =
        json::parse::<ProviderErrorBody>(body.as_bytes(), MAX_VALUES).unwrap_or_default();
    let words = |message: String| ProviderErrorDetail {
        message,
        ..ProviderErrorDetail::default()
    };
    match (explained.error, explained.message, explained.detail) {
        (Some(ProviderErrorField::Detail(detail)), ..) => detail,
        (Some(ProviderErrorField::Text(message)), ..) | (_, Some(message), _) => words(message),
        (_, None, Some(detail)) => words(
            detail
                .as_str()
                .map_or_else(|| detail.to_string(), str::to_owned),
        ),
        _ => words(body.lines().next().unwrap_or_default().to_owned()),
    }
}

impl ProviderErrorDetail {
    /// The meaning of an error that came with no telling status.
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
        // Anthropic has no word for it, only a sentence that is the same each time.
        let is_poor = self.message.starts_with("Your credit balance is too low");
        if is_poor || self.has_code("insufficient_quota") || self.has_code("billing_error") {
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

    fn has_code(&self, word: &str) -> bool {
        let code = self.code.as_ref().and_then(Value::as_str);
        [self.kind.as_deref(), code, self.status.as_deref()].contains(&Some(word))
    }

    /// OpenAI and llama.cpp have a word for it; Anthropic and Gemini have only a sentence, which is the same each time.
    fn is_too_long(&self) -> bool {
        self.has_code("context_length_exceeded")
            || self.has_code("exceed_context_size_error")
            || self.has_code("request_too_large")
            || self.message.starts_with("prompt is too long")
            || self.message.starts_with("The input token count")
    }

    /// What the provider said, short enough to show.
    fn short_message(&self) -> String {
        let words: String = lango_domain::text::one_line(&self.message)
            .chars()
            .take(300)
            .collect();
        if words.is_empty() {
            "it does not say why".to_owned()
        } else {
            words
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

    #[test]
    fn each_refusal_has_its_meaning() {
        let busy = |seconds: Option<u64>| ModelError::Busy {
            retry_after: seconds.map(Duration::from_secs),
        };
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
            (404, "", ModelError::NotFound("it does not say why".into())),
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
        assert_eq!(error(429, Some("7"), ""), busy(Some(7)));
        assert_eq!(error(429, Some("soon"), ""), busy(None));
        assert_eq!(error(503, Some("-1"), ""), busy(None));
        assert!(
            matches!(error(422, None, r#"{"error":{"message":"bad\nfield"}}"#), ModelError::Rejected(why) if why == "bad field")
        );
    }
}
