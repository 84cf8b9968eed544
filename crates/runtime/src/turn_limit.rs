//! The limit of turns that run at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::event::Principal;

pub struct TurnLimiter {
    turns: usize,
    turns_per_principal: usize,
    turn_counts: Mutex<TurnCounts>,
}

#[derive(Default)]
struct TurnCounts {
    total: usize,
    by_principal: HashMap<Principal, usize>,
}

/// A permit for one running turn, released when dropped.
pub struct TurnPermit {
    limiter: Arc<TurnLimiter>,
    principal: Principal,
}

/// The limit that does not permit another turn, with the number of running turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyTurns {
    InTotal(usize),
    OfPrincipal(usize),
}

impl TurnLimiter {
    pub fn new(turns: usize, turns_per_principal: usize) -> Self {
        Self {
            turns,
            turns_per_principal,
            turn_counts: Mutex::default(),
        }
    }

    /// Returns a limiter that permits every turn.
    pub fn unlimited() -> Self {
        Self::new(usize::MAX, usize::MAX)
    }

    /// Acquires a permit for a turn of the principal.
    pub fn acquire(self: &Arc<Self>, principal: &Principal) -> Result<TurnPermit, TooManyTurns> {
        let mut running = self.turn_counts();
        if running.total >= self.turns {
            return Err(TooManyTurns::InTotal(running.total));
        }
        let own = running.by_principal.get(principal).copied().unwrap_or(0);
        if own >= self.turns_per_principal {
            return Err(TooManyTurns::OfPrincipal(own));
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

    #[test]
    fn limits_turns_in_total_and_per_principal() {
        let limiter = Arc::new(TurnLimiter::new(3, 2));
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let first = limiter.acquire(&ann).unwrap();
        let _second = limiter.acquire(&ann).unwrap();
        assert_eq!(
            limiter.acquire(&ann).err(),
            Some(TooManyTurns::OfPrincipal(2))
        );
        let _third = limiter.acquire(&bob).unwrap();
        assert_eq!(limiter.acquire(&bob).err(), Some(TooManyTurns::InTotal(3)));
        drop(first);
        assert_eq!(limiter.turns_running(), 2);
        assert!(limiter.acquire(&ann).is_ok());
    }
}
