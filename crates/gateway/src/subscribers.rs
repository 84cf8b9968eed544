//! Whoever follows a session without having asked for its turn.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lango_domain::event::Update;
use lango_domain::session::SessionKey;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Whoever falls behind by more reads the rest from the store.
const CHANNEL_CAPACITY: usize = 32;

#[derive(Default)]
pub(crate) struct SessionSubscribers {
    senders: Mutex<HashMap<SessionKey, Sender<Update>>>,
}

impl SessionSubscribers {
    pub fn subscribe(&self, key: &SessionKey) -> Receiver<Update> {
        let mut threads = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        threads
            .entry(key.clone())
            .or_insert_with(|| broadcast::channel(CHANNEL_CAPACITY).0)
            .subscribe()
    }

    pub fn publish(&self, key: &SessionKey, update: &Update) {
        let threads = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = threads.get(key) {
            let _ = sender.send(update.clone());
        }
    }

    /// Called by whoever stops listening, after it has.
    pub fn remove_if_unused(&self, key: &SessionKey) {
        let mut threads = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if threads
            .get(key)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            threads.remove(key);
        }
    }
}
