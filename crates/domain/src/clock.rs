//! The current time as a value, so that tests and recordings can set it.

use std::sync::Arc;

use jiff::Timestamp;

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
