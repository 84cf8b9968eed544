//! The timeout of runs, which does not count the time that a run waits for a user.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The interval at which a waiting run is checked for having gone on.
const PAUSE_CHECK: Duration = Duration::from_secs(1);

/// Measures how long a run was active.
pub(crate) struct ActivityClock {
    state: Mutex<ActivityState>,
}

struct ActivityState {
    active: Duration,
    /// `None` while the run waits.
    since: Option<Instant>,
}

impl ActivityClock {
    pub fn start() -> Self {
        let since = Some(Instant::now());
        Self {
            state: Mutex::new(ActivityState {
                active: Duration::ZERO,
                since,
            }),
        }
    }

    pub fn pause(&self) {
        let mut state = self.state();
        if let Some(since) = state.since.take() {
            state.active += since.elapsed();
        }
    }

    pub fn resume(&self) {
        self.state().since.get_or_insert_with(Instant::now);
    }

    /// Returns true while the run waits.
    pub fn is_paused(&self) -> bool {
        self.state().since.is_none()
    }

    /// Returns once the run was active for this long.
    pub async fn reached(&self, timeout: Duration) {
        loop {
            let (active, is_paused) = self.elapsed();
            let left = timeout.saturating_sub(active);
            if left.is_zero() && !is_paused {
                return;
            }
            tokio::time::sleep(if is_paused {
                left.max(PAUSE_CHECK)
            } else {
                left
            })
            .await;
        }
    }

    /// Returns the active time, and whether the run waits.
    fn elapsed(&self) -> (Duration, bool) {
        let state = self.state();
        let current = state.since.map(|since| since.elapsed());
        (
            state.active + current.unwrap_or_default(),
            current.is_none(),
        )
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_does_not_count() {
        let clock = ActivityClock::start();
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(6)).await;
        clock.pause();
        tokio::time::advance(Duration::from_secs(100)).await;
        clock.resume();
        clock.reached(Duration::from_secs(10)).await;
        assert_eq!(start.elapsed().as_secs(), 110);
    }
}
