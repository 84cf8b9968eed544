//! Bounds the memory of all request bodies that are being received.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// The unit of the limit, in bytes.
const UNIT: usize = 1024 * 1024;
/// All bodies together may take this many units.
const MAX_UNITS: usize = 256;

/// The memory that bodies may still take.
pub(crate) struct BodyMemory {
    units: Arc<Semaphore>,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self {
            units: Arc::new(Semaphore::new(MAX_UNITS)),
        }
    }
}

impl BodyMemory {
    /// Reserves memory for a body, until the permit is dropped.
    pub fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let units = bytes.div_ceil(UNIT).clamp(1, MAX_UNITS);
        let permit = Arc::clone(&self.units).try_acquire_many_owned(units as u32);
        permit.map_err(|_| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "too many large requests are being received",
                "send it again later",
            )
        })
    }
}
