//! Open streams, counted by whose they are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use lango_domain::event::Principal;

use crate::refusal::Refusal;

/// When a stream may have been closed.
const ANOTHER_TRY: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(crate) struct Streams {
    open: Arc<Mutex<HashMap<Principal, usize>>>,
}

/// A stream's place; free again when it is dropped.
pub(crate) struct Opened {
    streams: Streams,
    principal: Principal,
}

impl Streams {
    pub fn open(&self, principal: &Principal, most: usize) -> Result<Opened, Refusal> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.entry(principal.clone()).or_default();
        if *own >= most {
            let message = format!("{own} of your streams are open, and no more are opened");
            let hint = "close one; server.streamsPerPrincipal sets the limit";
            let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "streams", message, hint);
            return Err(refusal.after(ANOTHER_TRY));
        }
        *own += 1;
        Ok(Opened { streams: self.clone(), principal: principal.clone() })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.principal) {
            Some(own) if *own > 1 => *own -= 1,
            _ => _ = open.remove(&self.principal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_principal_and_come_back() {
        let streams = Streams::default();
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let first = streams.open(&ann, 1).unwrap();
        assert_eq!(streams.open(&ann, 1).err().unwrap().status, StatusCode::TOO_MANY_REQUESTS);
        let _other = streams.open(&bob, 1).unwrap();
        drop(first);
        streams.open(&ann, 1).unwrap();
    }
}
