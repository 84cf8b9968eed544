//! Running a load, and measuring time and memory.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::Load;

/// The result of a turn benchmark, printed as one JSON line.
#[derive(Serialize)]
pub struct TurnMeasurement {
    peer: &'static str,
    version: &'static str,
    turns: usize,
    concurrency: usize,
    wall_s: f64,
    cpu_s: f64,
    rss_peak_mb: f64,
    turns_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    startup_s: f64,
    cpu_ms_per_turn: f64,
}

/// Builds a runtime with one thread for sequential turns, and two threads for concurrent ones.
pub fn runtime(load: &Load) -> Result<tokio::runtime::Runtime> {
    let mut builder = match load.concurrency {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(2).enable_all().build()?)
}

/// Returns the base URL of the model server. Starts the built-in one in a new process if the load
/// names none.
pub fn start_model_server(load: &Load) -> Result<(String, Option<ServerProcess>)> {
    if let Some(base_url) = &load.base_url {
        return Ok((base_url.trim_end_matches('/').to_owned(), None));
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let child = Command::new(std::env::current_exe()?)
        .args(["model-server", "--port", &port.to_string()])
        .spawn()?;
    let server = ServerProcess(child);
    for _ in 0..200 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok((format!("http://127.0.0.1:{port}/v1"), Some(server)));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    bail!("the built-in model server did not start within 2 seconds")
}

/// A server process that is killed on drop.
pub struct ServerProcess(pub Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the turns after a warm-up and prints the measurement.
pub async fn run<Turn, Done>(
    peer: &'static str,
    load: &Load,
    started: Instant,
    turn: Turn,
) -> Result<()>
where
    Turn: Fn(usize) -> Done + Send + Sync + 'static,
    Done: Future<Output = Result<()>> + Send,
{
    let startup_s = started.elapsed().as_secs_f64();
    let turn = Arc::new(turn);
    for warm_up in 0..20 {
        turn(usize::MAX - warm_up).await?;
    }
    let (cpu, wall, next) = (
        cpu_seconds()?,
        Instant::now(),
        Arc::new(AtomicUsize::new(0)),
    );
    let workers: Vec<_> = (0..load.concurrency.max(1))
        .map(|_| {
            let (turn, next, turns) = (Arc::clone(&turn), Arc::clone(&next), load.turns);
            tokio::spawn(async move {
                let mut times = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= turns {
                        return anyhow::Ok(times);
                    }
                    let began = Instant::now();
                    turn(number).await?;
                    times.push(began.elapsed());
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await??);
    }
    let (wall_s, cpu_s) = (wall.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    times.sort_unstable();
    let measurement = TurnMeasurement {
        peer,
        version: env!("CARGO_PKG_VERSION"),
        turns: load.turns,
        concurrency: load.concurrency,
        wall_s,
        cpu_s,
        rss_peak_mb: rss_peak_mb()?,
        turns_per_s: load.turns as f64 / wall_s,
        p50_ms: percentile_ms(&times, 0.5),
        p99_ms: percentile_ms(&times, 0.99),
        startup_s,
        cpu_ms_per_turn: cpu_s * 1e3 / load.turns.max(1) as f64,
    };
    println!("{}", serde_json::to_string(&measurement)?);
    Ok(())
}

/// Returns a percentile of sorted times, in milliseconds.
pub fn percentile_ms(times: &[Duration], share: f64) -> f64 {
    let at = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, Duration::as_secs_f64) * 1e3
}

/// Returns the user and system time of this process, over all threads.
pub fn cpu_seconds() -> Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat
        .rsplit_once(')')
        .context("unexpected format of /proc/self/stat")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .context("unexpected format of /proc/self/stat")
    };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// Returns the peak memory of this process.
pub fn rss_peak_mb() -> Result<f64> {
    status_mb("VmHWM:")
}

/// Returns the current memory of this process.
pub fn rss_mb() -> Result<f64> {
    status_mb("VmRSS:")
}

/// Returns the current memory of another process.
pub fn rss_mb_of(process: u32) -> Result<f64> {
    memory_mb(&format!("/proc/{process}/status"), "VmRSS:")
}

fn status_mb(field: &str) -> Result<f64> {
    memory_mb("/proc/self/status", field)
}

fn memory_mb(file: &str, field: &str) -> Result<f64> {
    let status = fs::read_to_string(file)?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .context("unexpected format of /proc/PID/status")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}

/// Sorts the times and returns the 50th and 99th percentile.
pub fn p50_p99(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times
            .get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)))
            .copied()
    };
    (at(0.5).unwrap_or_default(), at(0.99).unwrap_or_default())
}

pub fn folder_bytes(folder: &Path) -> u64 {
    bytes_with_prefix(folder, "")
}

/// Returns the size of the files below a folder whose names start with `prefix`.
pub fn bytes_with_prefix(folder: &Path, prefix: &str) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let matches =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_with_prefix(&entry.path(), prefix),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.filter(matches).map(size).sum()
}
