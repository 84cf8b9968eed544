//! Request rate limits.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::settings::ServerSettings;

/// When this many buckets exist, full ones are removed.
const MAX_BUCKETS: usize = 1_024;

pub(crate) struct RateLimiter {
    per_minute: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

/// The token bucket of one access token. Refills over time.
struct Bucket {
    left: f64,
    at: Instant,
}

impl RateLimiter {
    pub fn new(settings: &ServerSettings) -> Self {
        Self {
            per_minute: f64::from(settings.requests_per_minute.get()),
            buckets: Mutex::default(),
        }
    }

    /// Counts a request of an access token, or returns an error if its rate limit is exceeded.
    pub fn check_request(&self, token: &str) -> Result<(), ApiError> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| self.available(bucket, now) < self.per_minute);
        }
        let bucket = buckets.entry(token.to_owned()).or_insert(Bucket {
            left: self.per_minute,
            at: now,
        });
        let left = self.available(bucket, now);
        *bucket = Bucket {
            left: (left - 1.0).max(0.0),
            at: now,
        };
        if left >= 1.0 {
            return Ok(());
        }
        bucket.left = left;
        let wait = Duration::from_secs_f64((1.0 - left) * 60.0 / self.per_minute);
        Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate",
            format!(
                "rate limit exceeded: {} requests per minute for this token",
                self.per_minute
            ),
            "wait a moment; server.requestsPerMinute sets the limit",
        )
        .with_retry_after(wait))
    }

    fn available(&self, bucket: &Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + since * self.per_minute / 60.0).min(self.per_minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[tokio::test(start_paused = true)]
    async fn limits_requests_per_token() {
        let limiter = RateLimiter::new(&ServerSettings {
            requests_per_minute: NonZeroU32::new(60).unwrap(),
            ..ServerSettings::default()
        });
        for _ in 0..60 {
            limiter.check_request("a").unwrap();
        }
        let error = limiter.check_request("a").unwrap_err();
        assert_eq!(error.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(error.retry_after.unwrap() <= Duration::from_secs(1));
        limiter.check_request("b").unwrap();
        tokio::time::advance(Duration::from_millis(1_100)).await;
        limiter.check_request("a").unwrap();
        assert!(limiter.check_request("a").is_err());
    }
}
