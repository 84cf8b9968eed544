//! The last process, which is not killed: it does everything that is left.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::SignedDuration;

use super::kill::SchedulerKills;
use crate::measure::ServerProcess;

/// Attempts of deliveries that were killed are repeated after this time.
const AFTER_ATTEMPTS: SignedDuration = SignedDuration::from_mins(6);
/// The real time after which what is not done counts as stuck.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Lets a process do everything that is due. What is left then is reported by the audit.
pub fn drain(harness: &mut SchedulerKills) -> Result<()> {
    harness.jump(AFTER_ATTEMPTS);
    harness.drain_begun = harness.now();
    for attempt in 0..2 {
        let _process = ServerProcess(harness.start()?);
        let began = Instant::now();
        // Answers wake a scheduler only when it looks into the store again, so another process follows.
        while !is_done(harness)? && began.elapsed() < PATIENCE {
            thread::sleep(LOOK_INTERVAL);
            harness.answer_questions()?;
            let is_idle = harness.count(RUNNING)? == 0 && harness.count(PENDING)? == 0;
            if attempt == 0 && is_idle && harness.count(QUEUED)? > 0 {
                break;
            }
        }
    }
    harness.note_results()
}

const RUNNING: &str = "SELECT count(*) FROM runs WHERE state = 'running'";
const QUEUED: &str = "SELECT count(*) FROM runs WHERE state = 'queued'";
const PENDING: &str = "SELECT count(*) FROM deliveries WHERE state = 'pending'";

fn is_done(harness: &SchedulerKills) -> Result<bool> {
    let undecided = format!(
        "SELECT count(*) FROM jobs WHERE next_due <= '{:.9}'",
        harness.now()
    );
    Ok(
        harness.open_runs()? == 0
            && harness.count(PENDING)? == 0
            && harness.count(&undecided)? == 0,
    )
}
