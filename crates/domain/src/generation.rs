//! The one way in which a team learns that its tools or agents changed.

use std::sync::Arc;

use tokio::sync::watch;

/// A number that changes whenever tools or agents change: skills, remote agents, tool servers. Their
/// sources share it, and the team is rebuilt between turns when it differs (B40). Cheap to clone.
#[derive(Clone)]
pub struct Generation {
    number: Arc<watch::Sender<u64>>,
}

impl Default for Generation {
    fn default() -> Self {
        Self {
            number: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Generation {
    pub fn current(&self) -> u64 {
        *self.number.borrow()
    }

    /// Announces a change.
    pub fn advance(&self) {
        self.number.send_modify(|number| *number += 1);
    }

    /// Waits until the number differs from `seen`.
    pub async fn wait_for_change(&self, seen: u64) {
        let mut receiver = self.number.subscribe();
        // `self` owns the sender, so it cannot be closed.
        let _ = receiver.wait_for(|number| *number != seen).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn wakes_those_that_wait_for_a_change() {
        let generation = Generation::default();
        let (shared, seen) = (generation.clone(), generation.current());
        let waiting = tokio::spawn(async move { shared.wait_for_change(seen).await });
        generation.advance();
        waiting.await.unwrap();
        assert_ne!(generation.current(), seen);
        // A change that is already there needs no waiting.
        generation.wait_for_change(seen).await;
    }
}
