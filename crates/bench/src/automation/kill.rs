//! The kills: a process that runs the scheduler is killed at random times, and what it leaves is checked.
//!
//! Between two processes the clock jumps, as if the machine had been off. The parent acts as the user: it
//! adds jobs, starts workflows, and answers for steps whose effect is unknown.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use jiff::{SignedDuration, Timestamp};
use lango_domain::Clock;
use lango_domain::automation::{JobStore, RunId, RunStore, StepDecision};
use lango_domain::event::Principal;
use lango_store::{SqliteStore, StoreLocation};
use rusqlite::{Connection, OpenFlags};

use super::child::clock_ahead;
use super::effects::Effects;
use super::plan::{self, MeasuredJob};
use super::work::WorkFolder;
use super::{audit, drain};
use crate::rng::Rng;

/// The time until a kill, in milliseconds.
const SHORTEST_LIFE: u64 = 10;
const LONGEST_LIFE: u64 = 190;
/// With more runs than this to do, the clock does not jump.
const MAX_OPEN_RUNS: i64 = 40;
/// A second process runs next to the first one, in one of this many kills.
const SECOND_PROCESS: usize = 16;
/// The user starts something in one of this many kills.
const USER_ACTION: usize = 4;
/// One of this many answers repeats a step although its effect happened.
const CARELESS: u64 = 6;
/// Results are noted after this many kills, and compared in the end.
const NOTE_RESULTS: usize = 10;

pub fn run(kills: usize, seed: u64, folder: Option<&Path>) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = WorkFolder(folder.unwrap_or(temporary.path()).to_path_buf());
    fs::create_dir_all(folder.workspace())?;
    let began = Instant::now();
    let mut harness = SchedulerKills::new(folder, seed)?;
    harness.add_jobs()?;
    for number in 0..kills {
        harness.kill_once(number)?;
    }
    drain::drain(&mut harness)?;
    let mut report = audit::audit(&harness)?;
    report.kills = kills;
    report.seed = seed;
    report.seconds = began.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string(&report)?);
    if !report.is_clean() {
        bail!("occurrences, effects or results were missed, doubled or lost");
    }
    Ok(())
}

/// The answers of the user about a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepAnswers {
    pub asked: usize,
    /// Repeated although the effect had happened.
    pub careless: usize,
    pub skipped: usize,
}

pub struct SchedulerKills {
    pub folder: WorkFolder,
    runtime: tokio::runtime::Runtime,
    store: SqliteStore,
    /// Reads the tables without the product.
    pub tables: Connection,
    rng: Rng,
    /// Milliseconds by which the clock is ahead.
    ahead: i64,
    pub jobs: Vec<MeasuredJob>,
    /// Jobs that are due once.
    pub single_jobs: Vec<(String, Timestamp)>,
    pub direct_runs: Vec<RunId>,
    pub answers: BTreeMap<(u64, String), StepAnswers>,
    /// When the last process began, which is not killed.
    pub drain_begun: Timestamp,
    /// Results of runs and steps that were once seen.
    pub seen_results: HashMap<(u64, String), String>,
}

impl SchedulerKills {
    fn new(folder: WorkFolder, seed: u64) -> Result<Self> {
        let start: Timestamp = plan::START.parse()?;
        let store = SqliteStore::open(StoreLocation::File(folder.store()))?;
        let tables = Connection::open_with_flags(folder.store(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        tables.busy_timeout(Duration::from_secs(10))?;
        let ahead = start.duration_since(Timestamp::now()).as_millis();
        Ok(Self {
            folder,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            store,
            tables,
            rng: Rng(seed),
            ahead: i64::try_from(ahead)?,
            jobs: plan::jobs(start),
            single_jobs: Vec::new(),
            direct_runs: Vec::new(),
            answers: BTreeMap::new(),
            drain_begun: start,
            seen_results: HashMap::new(),
        })
    }

    pub fn now(&self) -> Timestamp {
        let clock: Clock = clock_ahead(self.ahead);
        clock()
    }

    pub fn jump(&mut self, time: SignedDuration) {
        self.ahead += i64::try_from(time.as_millis()).unwrap_or_default();
    }

    fn add_jobs(&mut self) -> Result<()> {
        for job in &self.jobs {
            let new = job.to_new_job()?;
            self.runtime
                .block_on(self.store.add_job(new, usize::MAX >> 1))?;
        }
        Ok(())
    }

    fn kill_once(&mut self, number: usize) -> Result<()> {
        if self.open_runs()? < MAX_OPEN_RUNS {
            let seconds = 30 + self.rng.next() % 400;
            self.jump(SignedDuration::from_secs(seconds as i64));
        }
        if number.is_multiple_of(USER_ACTION) {
            self.act_as_user(number / USER_ACTION)?;
        }
        let life = SHORTEST_LIFE + self.rng.next() % (LONGEST_LIFE - SHORTEST_LIFE);
        let mut children = vec![self.start()?];
        if number.is_multiple_of(SECOND_PROCESS) {
            children.push(self.start()?);
        }
        thread::sleep(Duration::from_millis(life));
        for mut child in children {
            if let Some(status) = child.try_wait()? {
                bail!("the scheduler ended by itself ({status})");
            }
            child.kill()?;
            child.wait()?;
        }
        self.answer_questions()?;
        if number.is_multiple_of(NOTE_RESULTS) {
            self.note_results()?;
        }
        Ok(())
    }

    /// Starts a process that runs the scheduler.
    pub fn start(&mut self) -> Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("automation-child")
            .arg("--folder")
            .arg(&self.folder.0);
        command.args(["--ahead", &self.ahead.to_string()]);
        command.args(["--seed", &self.rng.next().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().context("could not start the scheduler")
    }

    fn act_as_user(&mut self, number: usize) -> Result<()> {
        let now = self.now();
        if number.is_multiple_of(2) {
            let run = self.store.submit_run(plan::direct_run(number / 2, now)?);
            let run = self.runtime.block_on(run)?;
            self.direct_runs.push(run.id);
        } else {
            let seconds = 1 + self.rng.next() % 900;
            let due = now.saturating_add(SignedDuration::from_secs(seconds as i64))?;
            let name = format!("once {number}");
            let job = plan::single_reminder(&name, due, now)?;
            self.runtime
                .block_on(self.store.add_job(job, usize::MAX >> 1))?;
            self.single_jobs.push((name, due));
        }
        Ok(())
    }

    /// Answers for the steps whose effect is unknown: repeats those that had none, and skips the others.
    /// Sometimes it repeats without looking.
    pub fn answer_questions(&mut self) -> Result<()> {
        let sql = "SELECT s.run, s.step FROM run_steps s JOIN runs r ON r.id = s.run
            WHERE s.state = 'unknown' AND s.decision IS NULL AND r.ended IS NULL";
        let questions: Vec<(u64, String)> = self
            .tables
            .prepare_cached(sql)?
            .query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        if questions.is_empty() {
            return Ok(());
        }
        let effects = Effects::read(&self.folder)?;
        for (run, step) in questions {
            let is_careless = self.rng.next().is_multiple_of(CARELESS);
            let happened = effects.of_step(run, &step) > 0;
            let decision = match happened && !is_careless {
                true => StepDecision::Skip,
                false => StepDecision::Repeat,
            };
            let principal = Principal::local();
            let answer = self
                .store
                .answer_step(&principal, RunId::new(run), &step, decision);
            if !self.runtime.block_on(answer)? {
                bail!("step {step} of run {run} could not be answered");
            }
            let answers = self.answers.entry((run, step)).or_default();
            answers.asked += 1;
            answers.careless += usize::from(happened && is_careless);
            answers.skipped += usize::from(decision == StepDecision::Skip);
        }
        Ok(())
    }

    /// Notes the results that a user can see now.
    pub fn note_results(&mut self) -> Result<()> {
        let results = audit::results(&self.tables)?;
        self.seen_results.extend(results);
        Ok(())
    }

    pub fn open_runs(&self) -> Result<i64> {
        self.count("SELECT count(*) FROM runs WHERE ended IS NULL")
    }

    pub fn count(&self, sql: &str) -> Result<i64> {
        let mut query = self.tables.prepare_cached(sql)?;
        Ok(query.query_row([], |row| row.get(0))?)
    }
}
