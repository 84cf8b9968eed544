//! Time that a turn spends waiting for a person does not count toward its limit.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct TurnClock(Mutex<ApprovalWaits>);

#[derive(Default)]
struct ApprovalWaits {
    total: Duration,
    active: usize,
    since: Option<Instant>,
}

/// Ends the wait when it is dropped.
pub(crate) struct ClockPause<'a>(&'a TurnClock);

impl TurnClock {
    pub fn pause(&self) -> ClockPause<'_> {
        let mut waits = self.waits();
        waits.active += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        ClockPause(self)
    }

    /// Returns when so much time has passed that nobody was waited for.
    pub async fn wait_until(&self, limit: Duration) {
        let began = Instant::now();
        loop {
            let worked = began.elapsed().saturating_sub(self.total_paused());
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
    async fn waiting_for_a_person_does_not_count() {
        let pause = TurnClock::default();
        let began = Instant::now();
        let person = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let _waiting = pause.pause();
            tokio::time::sleep(Duration::from_secs(1_000)).await;
        };
        tokio::join!(person, pause.wait_until(Duration::from_secs(10)));
        assert_eq!(began.elapsed(), Duration::from_secs(1_010));
    }
}
