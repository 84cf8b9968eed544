//! The scheduler of this process. The only place where commands start it.

use crate::commands::automation::AutomationView;
use crate::output::CliError;

/// A scheduler that runs beside a command until it is stopped.
pub struct LocalScheduler {}

impl LocalScheduler {
    /// Starts the scheduler. It waits for its turn if another process holds the lease.
    pub fn start(_view: &AutomationView) -> Result<Self, CliError> {
        Err(CliError::usage("this build has no scheduler yet"))
    }

    /// Suspends running work so that the next scheduler continues it, and releases the lease.
    pub async fn stop(self) {}
}
