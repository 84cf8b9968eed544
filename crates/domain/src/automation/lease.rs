//! The lease of the scheduler: exactly one process per store runs it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::LeaseNumber;

/// The lease, as its last owner left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerLease {
    pub number: LeaseNumber,
    /// The owner for people, such as `lango serve (process 123)`.
    pub owner: String,
    pub acquired: Timestamp,
    /// The owner renews it well before. Far in the past once it is released.
    pub until: Timestamp,
}

/// A try to acquire the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseClaim {
    pub owner: String,
    pub at: Timestamp,
    pub until: Timestamp,
    /// A lease that is known to be abandoned although its time is not over, because it was not renewed for
    /// long enough on a clock that does not jump. It is taken over if it is still unchanged.
    pub abandoned: Option<SchedulerLease>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    Acquired(SchedulerLease),
    HeldBy(SchedulerLease),
}
