//! The limit of open streams per principal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use lango_domain::event::Principal;

use crate::error::ApiError;

/// Value of `Retry-After` when the limit is reached.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(crate) struct StreamLimiter {
    open: Arc<Mutex<HashMap<Principal, usize>>>,
}

/// A permit for one open stream, released when dropped.
pub(crate) struct StreamPermit {
    limiter: StreamLimiter,
    principal: Principal,
}

impl StreamLimiter {
    pub fn acquire(&self, principal: &Principal, limit: usize) -> Result<StreamPermit, ApiError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.entry(principal.clone()).or_default();
        if *own >= limit {
            let message = format!("too many open streams: {own} of your streams are open");
            let hint = "close one; server.streamsPerPrincipal sets the limit";
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "streams", message, hint);
            return Err(error.with_retry_after(RETRY_DELAY));
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
    fn limits_streams_per_principal() {
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
