//! Notices writes of other processes, so that work which they queue, cancel or answer is seen within a second.
//!
//! Every write to the store changes the length or the time of a file. Looking at these is one system call and
//! does not touch the database. Writes of this process are noticed, too, which costs one more pass.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::SchedulerWake;

const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Wakes the scheduler whenever the file has changed. Never returns.
pub(super) async fn watch(file: &Path, wake: &SchedulerWake) {
    let mut seen = stamp(file.to_path_buf()).await;
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        let now = stamp(file.to_path_buf()).await;
        if now != seen {
            seen = now;
            wake.wake();
        }
    }
}

/// Returns the length and the time of the file; `None` if there is none.
async fn stamp(file: PathBuf) -> Option<(u64, Option<SystemTime>)> {
    // The file may be on a disk that hangs.
    let metadata = tokio::task::spawn_blocking(move || std::fs::metadata(file));
    let metadata = metadata.await.ok()?.ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}
