//! Steps per second: workflows of trivial steps, each stored before the next one starts, compared with DBOS
//! on SQLite in the same run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use lango_automation::workflow::{
    StepExecutor, StepOutcome, StepRequest, WorkflowDriver, WorkflowSettings,
};
use lango_automation::{CronSettings, DuePass, Scheduler, SchedulerParts, SchedulerWake};
use lango_domain::automation::{NewRun, Run, RunKind, RunQuery, RunState, RunStore};
use lango_domain::event::Principal;
use lango_domain::session::SessionKey;
use lango_domain::{LabeledText, StoreError};
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Value, json};

const WORKFLOWS: usize = 50;
const STEPS: usize = 10;
/// Runs of one workflow alone, of which the median counts.
const ALONE_RUNS: usize = 20;

/// Steps per second of many workflows, and milliseconds of one alone.
struct StepRates {
    steps_per_s: f64,
    alone_ms: f64,
}

pub fn run(python: Option<&Path>) -> Result<()> {
    let floor = measure_floor()?;
    println!(
        "{}",
        json!({ "bench": "one commit a step", "steps_per_s": floor })
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let own = runtime.block_on(measure_own())?;
    print_rates("lango", &own);
    let Some(python) = python.map(Path::to_path_buf).or_else(installed_python) else {
        eprintln!(
            "DBOS is not installed, so there is no comparison; `cargo xtask dbos` installs it"
        );
        return Ok(());
    };
    let peer = measure_dbos(&python)?;
    print_rates("dbos", &peer);
    println!(
        "{}",
        json!({ "bench": "steps compared with dbos",
            "steps_per_s_ratio": own.steps_per_s / peer.steps_per_s,
            "alone_ratio": peer.alone_ms / own.alone_ms })
    );
    Ok(())
}

fn print_rates(peer: &str, rates: &StepRates) {
    let line = json!({ "bench": "steps", "peer": peer, "workflows": WORKFLOWS, "steps": STEPS,
        "steps_per_s": rates.steps_per_s, "alone_ms": rates.alone_ms });
    println!("{line}");
}

/// Measures a plain loop with one durable commit per step.
fn measure_floor() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let connection = rusqlite::Connection::open(folder.path().join("plain.sqlite"))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE steps (run, step, result)",
    )?;
    let began = Instant::now();
    for number in 0..WORKFLOWS * STEPS {
        let sql = "INSERT INTO steps VALUES (?1, ?2, 'done')";
        connection.execute(sql, [(number / STEPS) as i64, (number % STEPS) as i64])?;
    }
    Ok((WORKFLOWS * STEPS) as f64 / began.elapsed().as_secs_f64())
}

async fn measure_own() -> Result<StepRates> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite")))?;
    let scheduler = scheduler(&store)?;
    let mut alone = Vec::new();
    for number in 0..ALONE_RUNS {
        submit(&store, number).await?;
        let began = Instant::now();
        run_due(&scheduler, 1).await?;
        alone.push(began.elapsed().as_secs_f64() * 1e3);
    }
    for number in 0..WORKFLOWS {
        submit(&store, ALONE_RUNS + number).await?;
    }
    let began = Instant::now();
    run_due(&scheduler, WORKFLOWS).await?;
    let steps_per_s = (WORKFLOWS * STEPS) as f64 / began.elapsed().as_secs_f64();
    let query = RunQuery {
        states: vec![RunState::Done],
        ..RunQuery::newest(Principal::local(), usize::MAX >> 1)
    };
    let done = store.runs(query).await?.len();
    if done != ALONE_RUNS + WORKFLOWS {
        bail!("only {done} workflows are done");
    }
    let (alone_ms, _) = crate::measure::p50_p99(&mut alone);
    Ok(StepRates {
        steps_per_s,
        alone_ms,
    })
}

fn scheduler(store: &SqliteStore) -> Result<Scheduler> {
    let settings = CronSettings {
        max_running: u32::try_from(WORKFLOWS)?.try_into()?,
        ..CronSettings::default()
    };
    let driver = WorkflowDriver::new(Arc::new(TrivialSteps), WorkflowSettings::default());
    Ok(Scheduler::new(SchedulerParts {
        store: store.stores().automation,
        executor: Arc::new(driver),
        outbox: None,
        clock: Arc::new(Timestamp::now),
        owner: "lango-bench".to_owned(),
        settings,
        wake: SchedulerWake::default(),
    }))
}

async fn submit(store: &SqliteStore, number: usize) -> Result<()> {
    let mut definition = "name: chain\nsteps:\n".to_owned();
    for step in 0..STEPS {
        let after = match step {
            0 => String::new(),
            _ => format!(", depends_on: [s{}]", step - 1),
        };
        definition +=
            &format!("  - {{id: s{step}, tool: fs_write, with: {{n: {number}}}{after}}}\n");
    }
    let action = json!({ "type": "workflow", "name": "chain", "definition": definition });
    let run = NewRun {
        kind: RunKind::Workflow,
        job: None,
        principal: Principal::local(),
        name: "chain".to_owned(),
        due: Timestamp::now(),
        spec: serde_json::from_value(json!({ "action": action }))?,
    };
    store.submit_run(run).await?;
    Ok(())
}

async fn run_due(scheduler: &Scheduler, expected: usize) -> Result<()> {
    match scheduler.run_due().await? {
        DuePass::Ran(count) if count == expected => Ok(()),
        pass => bail!("{expected} runs were expected: {pass:?}"),
    }
}

/// Steps that do nothing, like those of the peer.
struct TrivialSteps;

impl StepExecutor for TrivialSteps {
    fn execute<'a>(&'a self, request: StepRequest<'a>) -> BoxFuture<'a, StepOutcome> {
        let text = format!("result of {}", request.step);
        async move { StepOutcome::Done(LabeledText::plain(text)) }.boxed()
    }

    fn is_read_only(&self, _: &Run, _: &str, _: &Value) -> bool {
        false
    }

    fn is_progress_known(&self, _: SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        async { Ok(false) }.boxed()
    }
}

/// Returns the Python that `cargo xtask dbos` installs next to this binary.
fn installed_python() -> Option<PathBuf> {
    let binary = std::env::current_exe().ok()?;
    let target = binary.parent()?.parent()?;
    let python = target.join("peers/python-dbos/bin/python");
    python.exists().then_some(python)
}

fn measure_dbos(python: &Path) -> Result<StepRates> {
    let folder = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/python/dbos_steps.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path().join("dbos.sqlite"))
        .args([WORKFLOWS, STEPS, ALONE_RUNS].map(|number| number.to_string()))
        .output()
        .context("cannot start the Python of DBOS")?;
    if !output.status.success() {
        bail!("DBOS failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let last = stdout.lines().last().unwrap_or_default();
    let rates: Value = serde_json::from_str(last).context("the output of DBOS")?;
    let number = |name: &str| rates[name].as_f64().context("the output of DBOS");
    Ok(StepRates {
        steps_per_s: number("steps_per_s")?,
        alone_ms: number("alone_ms")?,
    })
}
