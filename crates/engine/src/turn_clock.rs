//! The clocks of turns: where their times come from, and how long each runs. Time spent waiting for approvals does not count toward the turn's limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lango_domain::Clock;
use lango_domain::event::TurnId;
use tokio::time::Instant;

/// The clock and the source of turn ids. Injected so that a turn can be repeated exactly.
#[derive(Clone)]
pub struct ClockAndIds {
    pub now: Clock,
    pub new_turn_id: Arc<dyn Fn() -> TurnId + Send + Sync>,
}

#[derive(Default)]
pub(crate) struct TurnClock(Mutex<ApprovalWaits>);

#[derive(Default)]
struct ApprovalWaits {
    total: Duration,
    active: usize,
    since: Option<Instant>,
}

/// Ends the pause when dropped.
pub(crate) struct ClockPause<'a>(&'a TurnClock);

impl TurnClock {
    /// Stops counting time until the returned guard is dropped.
    pub fn pause(&self) -> ClockPause<'_> {
        let mut waits = self.waits();
        waits.active += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        ClockPause(self)
    }

    /// Returns when the turn has run for `limit`, not counting time spent waiting for approvals.
    pub async fn wait_until(&self, limit: Duration) {
        let started = Instant::now();
        loop {
            let worked = started.elapsed().saturating_sub(self.total_paused());
            match limit.checked_sub(worked).filter(|left| !left.is_zero()) {
                Some(left) => tokio::time::sleep(left).await,
                None => return,
            }
        }
    }

    fn total_paused(&self) -> Duration {
        let waits = self.waits();
        waits.total + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn waits(&self) -> MutexGuard<'_, ApprovalWaits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClockPause<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.waits();
        waits.active -= 1;
        if waits.active == 0 {
            let waited = waits
                .since
                .take()
                .map_or(Duration::ZERO, |since| since.elapsed());
            waits.total += waited;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_for_an_approval_does_not_count() {
        let clock = TurnClock::default();
        let started = Instant::now();
        let approval = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let _pause = clock.pause();
            tokio::time::sleep(Duration::from_secs(1_000)).await;
        };
        tokio::join!(approval, clock.wait_until(Duration::from_secs(10)));
        assert_eq!(started.elapsed(), Duration::from_secs(1_010));
    }
}
