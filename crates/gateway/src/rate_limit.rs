//! Request rate limits and the limit of concurrent turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use lango_domain::event::Principal;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::settings::ServerSettings;

/// When this many buckets exist, full ones are removed.
const MAX_BUCKETS: usize = 1_024;

pub(crate) struct RateLimiter {
    per_minute: f64,
    turns: usize,
    turns_per_principal: usize,
    buckets: Mutex<HashMap<String, Bucket>>,
    turn_counts: Mutex<TurnCounts>,
}

/// The token bucket of one access token. Refills over time.
struct Bucket {
    left: f64,
    at: Instant,
}

#[derive(Default)]
struct TurnCounts {
    total: usize,
    by_principal: HashMap<Principal, usize>,
}

/// A permit for one running turn, released when dropped.
pub(crate) struct TurnPermit {
    limiter: Arc<RateLimiter>,
    principal: Principal,
}

impl RateLimiter {
    pub fn new(settings: &ServerSettings) -> Self {
        Self {
            per_minute: f64::from(settings.requests_per_minute.get()),
            turns: settings.turns.get(),
            turns_per_principal: settings.turns_per_principal.get(),
            buckets: Mutex::default(),
            turn_counts: Mutex::default(),
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

    /// Acquires a permit for a turn of the principal.
    pub fn acquire_turn(self: &Arc<Self>, principal: &Principal) -> Result<TurnPermit, ApiError> {
        let mut running = self.turn_counts();
        if running.total >= self.turns {
            let message = format!(
                "too many concurrent turns: {} turns are running",
                running.total
            );
            let hint = "try again when one has ended; server.turns sets the limit";
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "turns", message, hint);
            return Err(error.with_retry_after(Duration::from_secs(1)));
        }
        let own = running.by_principal.get(principal).copied().unwrap_or(0);
        if own >= self.turns_per_principal {
            let message = format!("too many concurrent turns: {own} of your turns are running");
            let hint = "try again when one has ended; server.turnsPerPrincipal sets the limit";
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "turns", message, hint);
            return Err(error.with_retry_after(Duration::from_secs(1)));
        }
        running.total += 1;
        running.by_principal.insert(principal.clone(), own + 1);
        Ok(TurnPermit {
            limiter: Arc::clone(self),
            principal: principal.clone(),
        })
    }

    pub fn turns_running(&self) -> usize {
        self.turn_counts().total
    }

    fn turn_counts(&self) -> std::sync::MutexGuard<'_, TurnCounts> {
        self.turn_counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        let mut running = self.limiter.turn_counts();
        running.total = running.total.saturating_sub(1);
        match running.by_principal.get_mut(&self.principal) {
            Some(own) if *own > 1 => *own -= 1,
            _ => _ = running.by_principal.remove(&self.principal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::{NonZeroU32, NonZeroUsize};

    fn new_limiter(settings: ServerSettings) -> Arc<RateLimiter> {
        Arc::new(RateLimiter::new(&settings))
    }

    #[tokio::test(start_paused = true)]
    async fn limits_requests_per_token() {
        let limiter = new_limiter(ServerSettings {
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

    #[test]
    fn limits_concurrent_turns() {
        let two = NonZeroUsize::new(2).unwrap();
        let three = NonZeroUsize::new(3).unwrap();
        let limiter = new_limiter(ServerSettings {
            turns: three,
            turns_per_principal: two,
            ..ServerSettings::default()
        });
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let first = limiter.acquire_turn(&ann).unwrap();
        let _second = limiter.acquire_turn(&ann).unwrap();
        assert_eq!(
            limiter.acquire_turn(&ann).err().unwrap().status,
            StatusCode::TOO_MANY_REQUESTS
        );
        let _third = limiter.acquire_turn(&bob).unwrap();
        assert_eq!(
            limiter.acquire_turn(&bob).err().unwrap().status,
            StatusCode::SERVICE_UNAVAILABLE
        );
        drop(first);
        assert_eq!(limiter.turns_running(), 2);
        limiter.acquire_turn(&bob).unwrap();
    }
}
