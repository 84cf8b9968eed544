//! `lango-bench store`: the cost of appends and loads, compared with one commit per event on the
//! same disk.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use lango_domain::event::{EventBody, NewEvent, Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::conformance::{new_event, user_request};
use serde_json::json;

use crate::measure;

const SESSION_LENGTHS: [usize; 3] = [10, 1_000, 100_000];
const OPEN_SESSIONS: usize = 10_000;
/// The shortest of several loads is compared, because one load varies by half with the load of the machine.
const LOADS: usize = 20;

pub fn run(folder: Option<&Path>, seconds: f64) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = folder.unwrap_or(temporary.path());
    let time = Duration::from_secs_f64(seconds);
    let plain = measure_plain_loop(&folder.join("plain.sqlite"), time)?;
    println!(
        "{}",
        json!({ "bench": "plain loop", "appends_per_s": plain })
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(StoreLocation::File(folder.join("bench.sqlite")))?;
        for sessions in [1, 8, 64] {
            let appends = measure_appends(&store, sessions, time).await?;
            let ratio = appends / plain;
            println!("{}", json!({ "bench": "appends", "sessions": sessions, "appends_per_s": appends, "times_plain": ratio }));
        }
        for length in SESSION_LENGTHS {
            measure_open(&store, length).await?;
        }
        measure_open_sessions(&store).await
    })
}

fn sample_draft() -> NewEvent {
    new_event("t", user_request("what is eating my disk, and since when?"))
}

/// Measures the naive loop with one transaction per event.
fn measure_plain_loop(file: &Path, time: Duration) -> Result<f64> {
    let connection = rusqlite::Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE events (session TEXT, seq INTEGER, body TEXT)",
    )?;
    let body = serde_json::to_string(&sample_draft().body)?;
    let (began, mut count) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        connection.execute(
            "INSERT INTO events VALUES ('s', ?1, ?2)",
            rusqlite::params![count, body],
        )?;
        count += 1;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

async fn measure_appends(store: &SqliteStore, sessions: usize, time: Duration) -> Result<f64> {
    let began = Instant::now();
    let writers: Vec<_> = (0..sessions)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let session = SessionId::new(format!("w{sessions}-{number}"));
                let mut count = 0_u32;
                while began.elapsed() < time {
                    let key = SessionKeyRef {
                        session: &session,
                        principal: &Principal::local(),
                    };
                    store.append(key, vec![sample_draft()]).await?;
                    count += 1;
                }
                anyhow::Ok(count)
            })
        })
        .collect();
    let mut total = 0;
    for writer in writers {
        total += writer.await??;
    }
    Ok(f64::from(total) / began.elapsed().as_secs_f64())
}

/// Measures loading a whole session, and loading only the recent events that a turn needs.
async fn measure_open(store: &SqliteStore, length: usize) -> Result<()> {
    let session = SessionId::new(format!("long-{length}"));
    let key = SessionKeyRef {
        session: &session,
        principal: &Principal::local(),
    };
    for chunk in 0..length.div_ceil(1_000) {
        let drafts =
            (chunk * 1_000..length.min((chunk + 1) * 1_000)).map(|number| match number % 10 {
                0 => sample_draft(),
                9 => new_event("t", EventBody::turn_done()),
                _ => new_event(
                    "t",
                    EventBody::Note {
                        text: "a step of the work at hand".to_owned(),
                    },
                ),
            });
        store.append(key, drafts.collect()).await?;
    }
    let mut times = [0.0; 2];
    let mut events = [0; 2];
    for (at, window) in [
        HistoryWindow::Everything,
        HistoryWindow::Recent { bytes: 2_200 },
    ]
    .into_iter()
    .enumerate()
    {
        times[at] = f64::INFINITY;
        for _ in 0..LOADS {
            let began = Instant::now();
            events[at] = store.load(key, window).await?.len();
            times[at] = times[at].min(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    println!(
        "{}",
        json!({ "bench": "open", "events": length, "all_ms": times[0], "recent_events": events[1], "recent_ms": times[1] })
    );
    Ok(())
}

/// Measures the memory of many loaded sessions.
async fn measure_open_sessions(store: &SqliteStore) -> Result<()> {
    let before = measure::rss_mb()?;
    let mut held: Vec<Arc<dyn std::any::Any>> = Vec::new();
    for number in 0..OPEN_SESSIONS {
        let session = SessionId::new(format!("open-{number}"));
        let key = SessionKeyRef {
            session: &session,
            principal: &Principal::local(),
        };
        let events = store.load(key, HistoryWindow::Everything).await?;
        held.push(Arc::new((session, events)));
    }
    let rss_mb = measure::rss_mb()? - before;
    println!(
        "{}",
        json!({ "bench": "open sessions", "sessions": held.len(), "rss_mb": rss_mb })
    );
    Ok(())
}
