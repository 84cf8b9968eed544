//! Whoever follows a session without having asked for its turn.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lango_domain::event::{Principal, SessionId, Update};
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Whoever falls behind by more reads the rest from the store.
const CHANNEL_CAPACITY: usize = 32;

/// A session of a principal's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Thread {
    pub principal: Principal,
    pub session: SessionId,
}

#[derive(Default)]
pub(crate) struct SessionSubscribers {
    senders: Mutex<HashMap<Thread, Sender<Update>>>,
}

impl SessionSubscribers {
    pub fn subscribe(&self, thread: &Thread) -> Receiver<Update> {
        let mut threads = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        threads.entry(thread.clone()).or_insert_with(|| broadcast::channel(CHANNEL_CAPACITY).0).subscribe()
    }

    pub fn publish(&self, thread: &Thread, update: &Update) {
        let threads = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = threads.get(thread) {
            let _ = sender.send(update.clone());
        }
    }

    /// Called by whoever stops listening, after it has.
    pub fn remove_if_unused(&self, thread: &Thread) {
        let mut threads = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.get(thread).is_some_and(|sender| sender.receiver_count() == 0) {
            threads.remove(thread);
        }
    }
}
