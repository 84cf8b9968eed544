//! How often, and how many at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use lango_domain::event::Principal;
use tokio::time::Instant;

use crate::refusal::Refusal;
use crate::settings::Settings;

/// More buckets than this are looked through for full ones, which need not be kept.
const MOST_BUCKETS: usize = 1_024;

pub(crate) struct Pace {
    per_minute: f64,
    turns: usize,
    turns_per_principal: usize,
    buckets: Mutex<HashMap<String, Bucket>>,
    running: Mutex<Running>,
}

/// What a token may still ask for; fills up again as time passes.
struct Bucket {
    left: f64,
    at: Instant,
}

#[derive(Default)]
struct Running {
    all: usize,
    of: HashMap<Principal, usize>,
}

/// A turn's place; free again when it is dropped.
pub(crate) struct Slot {
    pace: Arc<Pace>,
    principal: Principal,
}

impl Pace {
    pub fn new(settings: &Settings) -> Self {
        Self {
            per_minute: f64::from(settings.requests_per_minute.get()),
            turns: settings.turns.get(),
            turns_per_principal: settings.turns_per_principal.get(),
            buckets: Mutex::default(),
            running: Mutex::default(),
        }
    }

    /// Counts a request of a token.
    pub fn request(&self, token: &str) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_BUCKETS {
            buckets.retain(|_, bucket| self.filled(bucket, now) < self.per_minute);
        }
        let bucket = buckets.entry(token.to_owned()).or_insert(Bucket { left: self.per_minute, at: now });
        let left = self.filled(bucket, now);
        *bucket = Bucket { left: (left - 1.0).max(0.0), at: now };
        if left >= 1.0 {
            return Ok(());
        }
        bucket.left = left;
        let wait = Duration::from_secs_f64((1.0 - left) * 60.0 / self.per_minute);
        Err(Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate",
            format!("more than {} requests a minute with this token", self.per_minute),
            "wait a moment; server.requestsPerMinute sets the limit",
        )
        .after(wait))
    }

    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + since * self.per_minute / 60.0).min(self.per_minute)
    }

    /// A place for a turn, if there is one.
    pub fn turn(self: &Arc<Self>, principal: &Principal) -> Result<Slot, Refusal> {
        let mut running = self.running();
        if running.all >= self.turns {
            let message = format!("{} turns are running, and no more run at once", running.all);
            let hint = "try again when one has ended; server.turns sets the limit";
            let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "turns", message, hint);
            return Err(refusal.after(Duration::from_secs(1)));
        }
        let own = running.of.get(principal).copied().unwrap_or(0);
        if own >= self.turns_per_principal {
            let message = format!("{own} of your turns are running, and no more run at once");
            let hint = "try again when one has ended; server.turnsPerPrincipal sets the limit";
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "turns", message, hint);
            return Err(refusal.after(Duration::from_secs(1)));
        }
        running.all += 1;
        running.of.insert(principal.clone(), own + 1);
        Ok(Slot { pace: Arc::clone(self), principal: principal.clone() })
    }

    pub fn turns_running(&self) -> usize {
        self.running().all
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut running = self.pace.running();
        running.all = running.all.saturating_sub(1);
        match running.of.get_mut(&self.principal) {
            Some(own) if *own > 1 => *own -= 1,
            _ => _ = running.of.remove(&self.principal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::{NonZeroU32, NonZeroUsize};

    fn pace(settings: Settings) -> Arc<Pace> {
        Arc::new(Pace::new(&settings))
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_asks_too_often_waits_and_others_do_not() {
        let pace =
            pace(Settings { requests_per_minute: NonZeroU32::new(60).unwrap(), ..Settings::default() });
        for _ in 0..60 {
            pace.request("a").unwrap();
        }
        let refused = pace.request("a").unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.retry_after.unwrap() <= Duration::from_secs(1));
        pace.request("b").unwrap();
        tokio::time::advance(Duration::from_millis(1_100)).await;
        pace.request("a").unwrap();
        assert!(pace.request("a").is_err());
    }

    #[test]
    fn places_are_counted_and_come_back() {
        let two = NonZeroUsize::new(2).unwrap();
        let three = NonZeroUsize::new(3).unwrap();
        let pace = pace(Settings { turns: three, turns_per_principal: two, ..Settings::default() });
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let first = pace.turn(&ann).unwrap();
        let _second = pace.turn(&ann).unwrap();
        assert_eq!(pace.turn(&ann).err().unwrap().status, StatusCode::TOO_MANY_REQUESTS);
        let _third = pace.turn(&bob).unwrap();
        assert_eq!(pace.turn(&bob).err().unwrap().status, StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert_eq!(pace.turns_running(), 2);
        pace.turn(&bob).unwrap();
    }
}
