//! Subscribers to the updates of a session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lango_domain::event::Update;
use lango_domain::session::SessionKey;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Capacity of a subscriber's channel. A subscriber that lags further behind reads from the store.
const CHANNEL_CAPACITY: usize = 32;

#[derive(Default)]
pub struct SessionSubscribers {
    senders: Mutex<HashMap<SessionKey, Sender<Update>>>,
}

impl SessionSubscribers {
    pub fn subscribe(&self, key: &SessionKey) -> Receiver<Update> {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders
            .entry(key.clone())
            .or_insert_with(|| broadcast::channel(CHANNEL_CAPACITY).0)
            .subscribe()
    }

    pub fn publish(&self, key: &SessionKey, update: &Update) {
        let senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(key) {
            let _ = sender.send(update.clone());
        }
    }

    /// Removes the channel of a session that has no subscribers. Must be called after the last
    /// receiver is dropped.
    pub fn remove_if_unused(&self, key: &SessionKey) {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if senders
            .get(key)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            senders.remove(key);
        }
    }
}
