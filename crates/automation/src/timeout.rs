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
    /// The number of questions that wait.
    pauses: usize,
}

impl ActivityClock {
    /// Starts the clock of a run that was active before.
    pub fn start_after(active: Duration) -> Self {
        Self {
            state: Mutex::new(ActivityState {
                active,
                since: Some(Instant::now()),
                pauses: 0,
            }),
        }
    }

    pub fn pause(&self) {
        let mut state = self.state();
        state.pauses += 1;
        if let Some(since) = state.since.take() {
            state.active += since.elapsed();
        }
    }

    /// Ends one pause. Returns true if none is left, so that the run goes on.
    pub fn resume(&self) -> bool {
        let mut state = self.state();
        state.pauses = state.pauses.saturating_sub(1);
        if state.pauses == 0 {
            state.since.get_or_insert_with(Instant::now);
        }
        state.pauses == 0
    }

    /// Returns the time that the run was active.
    pub fn active(&self) -> Duration {
        self.elapsed().0
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
        let clock = ActivityClock::start_after(Duration::ZERO);
        let start = Instant::now();
        tokio::time::advance(Duration::from_secs(6)).await;
        clock.pause();
        tokio::time::advance(Duration::from_secs(100)).await;
        clock.resume();
        clock.reached(Duration::from_secs(10)).await;
        assert_eq!(start.elapsed().as_secs(), 110);
    }

    /// B121: several questions can wait, and earlier attempts count.
    #[tokio::test(start_paused = true)]
    async fn the_clock_goes_on_after_the_last_question() {
        let clock = ActivityClock::start_after(Duration::from_secs(4));
        let start = Instant::now();
        clock.pause();
        clock.pause();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!clock.resume());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(clock.resume());
        clock.reached(Duration::from_secs(10)).await;
        assert_eq!(start.elapsed().as_secs(), 26);
    }
}
