//! Open streams, counted by whose they are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use lango_domain::event::Principal;

use crate::error::ApiError;

/// When a stream may have been closed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(crate) struct StreamLimiter {
    open: Arc<Mutex<HashMap<Principal, usize>>>,
}

/// A stream's place; free again when it is dropped.
pub(crate) struct StreamPermit {
    limiter: StreamLimiter,
    principal: Principal,
}

impl StreamLimiter {
    pub fn acquire(&self, principal: &Principal, most: usize) -> Result<StreamPermit, ApiError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.entry(principal.clone()).or_default();
        if *own >= most {
            let message = format!("{own} of your streams are open, and no more are opened");
            let hint = "close one; server.streamsPerPrincipal sets the limit";
            let refusal = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "streams", message, hint);
            return Err(refusal.with_retry_after(RETRY_DELAY));
        }
        *own += 1;
        Ok(StreamPermit {
            limiter: self.clone(),
            principal: principal.clone(),
        })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self
            .limiter
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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
        let streams = StreamLimiter::default();
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let first = streams.acquire(&ann, 1).unwrap();
        assert_eq!(
            streams.acquire(&ann, 1).err().unwrap().status,
            StatusCode::TOO_MANY_REQUESTS
        );
        let _other = streams.acquire(&bob, 1).unwrap();
        drop(first);
        streams.acquire(&ann, 1).unwrap();
    }
}
