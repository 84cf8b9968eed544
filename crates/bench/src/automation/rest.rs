//! Many jobs at rest: memory, the start of the scheduler, and the cost of a wake-up. Measured in a process of
//! its own, so that adding the jobs does not count.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use lango_automation::schedule::Timetable;
use lango_automation::{DuePass, Scheduler};
use lango_domain::automation::{JobStore, NewJob, RunStore, Schedule, ScheduleKind};
use lango_domain::event::Principal;
use lango_store::{SqliteStore, StoreLocation};
use serde_json::json;

use super::work::{self, WorkFolder};
use crate::measure;

/// Looks at the agenda, and wake-ups, of which the median counts.
const LOOKS: usize = 200;
/// Jobs of one principal. Each job counts those of its principal when it is added.
const JOBS_PER_PRINCIPAL: usize = 200;

pub fn run(jobs: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = WorkFolder(folder.path().to_path_buf());
    std::fs::create_dir_all(folder.workspace())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let began = Instant::now();
    runtime.block_on(add_jobs(&folder, jobs))?;
    let add_s = began.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({ "bench": "add jobs", "jobs": jobs, "jobs_per_s": jobs as f64 / add_s,
            "disk_mb": measure::folder_bytes(&folder.0) as f64 / 1e6 })
    );
    let status = Command::new(std::env::current_exe()?)
        .args(["automation-child", "--at-rest", "--folder"])
        .arg(&folder.0)
        .status()?;
    if !status.success() {
        bail!("the measuring process failed ({status})");
    }
    Ok(())
}

async fn add_jobs(folder: &WorkFolder, jobs: usize) -> Result<()> {
    let store = SqliteStore::open(StoreLocation::File(folder.store()))?;
    let now = Timestamp::now();
    let numbers: Vec<usize> = (0..jobs).collect();
    for chunk in numbers.chunks(256) {
        let added = chunk.iter().map(|number| {
            let store = store.clone();
            async move {
                store
                    .add_job(job(*number, now)?, usize::MAX >> 1)
                    .await
                    .map_err(anyhow::Error::from)
            }
        });
        futures::future::try_join_all(added).await?;
    }
    Ok(())
}

/// Returns a job that is not due within the next hours.
fn job(number: usize, now: Timestamp) -> Result<NewJob> {
    let later = now.saturating_add(SignedDuration::from_hours(6 + number as i64 % 12))?;
    let hour = later.to_zoned(jiff::tz::TimeZone::UTC).hour();
    let schedule = Schedule {
        kind: ScheduleKind::Cron,
        text: format!("{} {hour} * * *", number % 60),
        time_zone: "UTC".to_owned(),
        anchor: now,
    };
    let action = json!({ "type": "reminder", "text": format!("remember number {number}") });
    Ok(NewJob {
        principal: Principal::new(format!("user-{}", number / JOBS_PER_PRINCIPAL)),
        name: format!("job {number}"),
        next_due: Timetable::read(&schedule)?.next_after(now),
        schedule,
        catch_up: Default::default(),
        grace: SignedDuration::from_hours(24),
        overlap: Default::default(),
        spec: serde_json::from_value(json!({ "action": action, "deliver_to": ["inbox"] }))?,
        created: now,
    })
}

/// Measures in the process that runs the scheduler.
pub async fn measure_at_rest(folder: &WorkFolder) -> Result<()> {
    let before_mb = measure::rss_mb()?;
    let began = Instant::now();
    let store = SqliteStore::open(StoreLocation::File(folder.store()))?;
    let scheduler = work::scheduler(folder, &store, Arc::new(Timestamp::now), 0)?;
    let built_ms = began.elapsed().as_secs_f64() * 1e3;
    let first_ms = pass(&scheduler).await?;
    let start_mb = measure::rss_mb()?;
    let (mut looks, mut passes) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        let began = Instant::now();
        store.agenda().await?;
        store.due_jobs(Timestamp::now(), 100).await?;
        looks.push(began.elapsed().as_secs_f64() * 1e6);
    }
    let cpu = measure::cpu_seconds()?;
    for _ in 0..LOOKS {
        passes.push(pass(&scheduler).await?);
    }
    let cpu_ms = (measure::cpu_seconds()? - cpu) * 1e3 / LOOKS as f64;
    let (look_us, look_p99_us) = measure::p50_p99(&mut looks);
    let (pass_ms, _) = measure::p50_p99(&mut passes);
    println!(
        "{}",
        json!({ "bench": "jobs at rest", "start_ms": built_ms + first_ms, "first_pass_ms": first_ms,
            "rss_mb": measure::rss_mb()?, "rss_jobs_mb": start_mb - before_mb,
            "wake_up_p50_us": look_us, "wake_up_p99_us": look_p99_us,
            "start_to_end_pass_ms": pass_ms, "start_to_end_pass_cpu_ms": cpu_ms })
    );
    Ok(())
}

/// Takes the lease, recovers, does what is due (nothing), and releases the lease.
async fn pass(scheduler: &Scheduler) -> Result<f64> {
    let began = Instant::now();
    match scheduler.run_due().await? {
        DuePass::Ran(0) => Ok(began.elapsed().as_secs_f64() * 1e3),
        pass => bail!("nothing is due: {pass:?}"),
    }
}
