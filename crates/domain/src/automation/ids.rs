//! Numbers that identify rows of automation. The store assigns them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number")]
pub struct ParseIdError(String);

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            pub fn new(number: u64) -> Self {
                Self(number)
            }

            pub fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let number = text.trim().parse();
                number.map(Self).map_err(|_| ParseIdError(text.to_owned()))
            }
        }
    };
}

number_id!(
    /// A job: work with a schedule.
    JobId
);
number_id!(
    /// A run: one occurrence of a job, a background task, or one run of a workflow.
    RunId
);
number_id!(DeliveryId);
number_id!(InboxId);
number_id!(
    /// The number of an acquisition of the scheduler's lease. It grows with every acquisition, and every
    /// write of the scheduler carries it, so that a process that lost the lease can no longer write.
    LeaseNumber
);
