//! The processes that the benchmark starts.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use lango_domain::Clock;
use lango_store::{SqliteStore, StoreLocation};
use tokio_util::sync::CancellationToken;

use super::work::{self, WorkFolder};

/// Arguments of a child process.
#[derive(clap::Args)]
pub struct AutomationChild {
    #[arg(long)]
    folder: PathBuf,
    /// Milliseconds by which the clock of the process is ahead.
    #[arg(long, allow_hyphen_values = true, default_value_t = 0)]
    ahead: i64,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Measure jobs at rest instead.
    #[arg(long)]
    at_rest: bool,
}

/// Runs the scheduler until the process is killed.
pub fn run(child: &AutomationChild) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let folder = WorkFolder(child.folder.clone());
    runtime.block_on(async {
        if child.at_rest {
            return super::rest::measure_at_rest(&folder).await;
        }
        let store = SqliteStore::open(StoreLocation::File(folder.store()))?;
        let scheduler = work::scheduler(&folder, &store, clock_ahead(child.ahead), child.seed)?;
        scheduler.run(&CancellationToken::new()).await;
        Ok(())
    })
}

/// Returns a clock that is ahead of that of the system.
pub fn clock_ahead(milliseconds: i64) -> Clock {
    let ahead = SignedDuration::from_millis(milliseconds);
    Arc::new(move || {
        let now = Timestamp::now();
        now.saturating_add(ahead).unwrap_or(now)
    })
}
