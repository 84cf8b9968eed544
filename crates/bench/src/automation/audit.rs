//! Compares what is stored, what happened, and what should have happened. Reads the tables and files without
//! the product.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

use anyhow::{Context, Result};
use jiff::Timestamp;
use rusqlite::Connection;
use serde::Serialize;

use super::effects::{Effects, step_key};
use super::kill::SchedulerKills;
use super::plan::{AGENT_STEPS, TOOL_STEPS, Work};

/// Problems that are printed.
const SHOWN_PROBLEMS: usize = 20;

/// The result of all kills, printed as one JSON line.
#[derive(Debug, Serialize)]
pub struct KillReport {
    pub bench: &'static str,
    pub kills: usize,
    pub seed: u64,
    pub seconds: f64,
    /// Processes that held the lease.
    pub leases: i64,
    /// Occurrences that were due, and runs that were started directly.
    pub due: usize,
    /// Those that ran to their end.
    pub done: usize,
    /// Those that another occurrence stood in for, as their jobs ask for.
    pub stood_in: usize,
    /// Those that a process took over from a killed one.
    pub taken_over: i64,
    pub steps: usize,
    pub effects: usize,
    pub deliveries: i64,
    /// Steps of unknown effect that waited for the user.
    pub waited: usize,
    /// Of these, the effect had happened.
    pub waited_with_effect: usize,
    /// Steps with an effect that the user repeated nevertheless. They are marked.
    pub repeated_by_user: usize,
    pub missed: usize,
    pub doubled: usize,
    pub unmarked: usize,
    pub lost_results: usize,
    pub lost_deliveries: usize,
    pub doubled_deliveries: usize,
    /// Runs that failed, among them those that were interrupted too often.
    pub failed: usize,
    pub stuck: usize,
    #[serde(skip)]
    problems: Vec<String>,
}

impl KillReport {
    pub fn is_clean(&self) -> bool {
        let counts = [
            self.missed,
            self.doubled,
            self.unmarked,
            self.lost_results,
            self.lost_deliveries,
            self.doubled_deliveries,
            self.failed,
            self.stuck,
        ];
        counts.iter().all(|count| *count == 0)
    }
}

/// Returns the stored results of runs and of steps.
pub fn results(tables: &Connection) -> Result<HashMap<(u64, String), String>> {
    let sql = "SELECT id, '', coalesce(result, '') FROM runs WHERE state = 'done'
        UNION ALL SELECT run, step, coalesce(result, '') FROM run_steps WHERE state = 'done'";
    let mut query = tables.prepare_cached(sql)?;
    let rows = query.query_map([], |row| {
        let run: i64 = row.get(0)?;
        Ok(((run as u64, row.get(1)?), row.get(2)?))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A row of `runs`.
struct RunRow {
    id: u64,
    job: Option<String>,
    kind: String,
    due: Timestamp,
    state: String,
    reason: String,
    result: String,
}

fn runs(tables: &Connection) -> Result<Vec<RunRow>> {
    let sql = "SELECT r.id, j.name, r.kind, r.due, r.state,
            coalesce(r.error, r.reason, ''), coalesce(r.result, '')
        FROM runs r LEFT JOIN jobs j ON j.id = r.job ORDER BY r.id";
    let mut query = tables.prepare(sql)?;
    let rows = query.query_map([], |row| {
        let due: String = row.get(3)?;
        Ok(RunRow {
            id: row.get::<_, i64>(0)? as u64,
            job: row.get(1)?,
            kind: row.get(2)?,
            due: due.parse().unwrap_or(Timestamp::MIN),
            state: row.get(4)?,
            reason: row.get(5)?,
            result: row.get(6)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub fn audit(harness: &SchedulerKills) -> Result<KillReport> {
    let tables = &harness.tables;
    let mut audit = Audit {
        harness,
        effects: Effects::read(&harness.folder)?,
        runs: runs(tables)?,
        report: KillReport {
            bench: "automation kill",
            kills: 0,
            seed: 0,
            seconds: 0.0,
            leases: harness.count("SELECT number FROM scheduler_lease")?,
            due: 0,
            done: 0,
            stood_in: 0,
            taken_over: harness.count("SELECT count(*) FROM runs WHERE attempt > 1")?,
            steps: 0,
            effects: 0,
            deliveries: harness.count("SELECT count(*) FROM deliveries")?,
            waited: harness.answers.values().map(|answers| answers.asked).sum(),
            waited_with_effect: 0,
            repeated_by_user: 0,
            missed: 0,
            doubled: 0,
            unmarked: 0,
            lost_results: 0,
            lost_deliveries: 0,
            doubled_deliveries: 0,
            failed: 0,
            stuck: 0,
            problems: Vec::new(),
        },
    };
    audit.report.effects = audit.effects.count();
    audit.occurrences();
    audit.run_states();
    audit.run_effects();
    audit.main_sessions();
    audit.steps()?;
    audit.results()?;
    audit.deliveries()?;
    for problem in audit.report.problems.iter().take(SHOWN_PROBLEMS) {
        eprintln!("{problem}");
    }
    Ok(audit.report)
}

struct Audit<'a> {
    harness: &'a SchedulerKills,
    effects: Effects,
    runs: Vec<RunRow>,
    report: KillReport,
}

impl Audit<'_> {
    fn problem(&mut self, text: String) {
        self.report.problems.push(text);
    }

    /// Checks that every occurrence that was due has exactly one row, and that there are no others.
    fn occurrences(&mut self) {
        let mut rows: BTreeMap<(String, Timestamp), usize> = BTreeMap::new();
        for run in &self.runs {
            if let Some(job) = &run.job {
                *rows.entry((job.clone(), run.due)).or_default() += 1;
            }
        }
        // The last process may have decided what became due while it ran.
        let (now, begun) = (self.harness.now(), self.harness.drain_begun);
        let mut expected: Vec<(String, Timestamp)> = self.harness.single_jobs.clone();
        for job in &self.harness.jobs {
            let dues = job.due_times(now).into_iter();
            expected.extend(dues.map(|due| (job.name.clone(), due)));
        }
        for occurrence in expected {
            match rows.remove(&occurrence) {
                Some(1) => self.report.due += 1,
                Some(_) => {
                    self.report.doubled += 1;
                    self.problem(format!("{occurrence:?} has several rows"));
                }
                None if occurrence.1 > begun => {}
                None => {
                    self.report.missed += 1;
                    self.problem(format!("{occurrence:?} has no row"));
                }
            }
        }
        for occurrence in rows.into_keys() {
            self.report.doubled += 1;
            self.problem(format!("{occurrence:?} was not due"));
        }
        let stored: HashSet<u64> = self.runs.iter().map(|run| run.id).collect();
        for run in &self.harness.direct_runs {
            self.report.due += 1;
            if !stored.contains(&run.get()) {
                self.report.missed += 1;
            }
        }
    }

    /// Checks that every run is done, except those that another one stands in for.
    fn run_states(&mut self) {
        let stands_in: HashSet<&str> = self
            .harness
            .jobs
            .iter()
            .filter(|job| !job.runs_all)
            .map(|job| job.name.as_str())
            .collect();
        let mut problems = Vec::new();
        let report = &mut self.report;
        for run in &self.runs {
            let may_idle = run
                .job
                .as_deref()
                .is_some_and(|job| stands_in.contains(job));
            let count = match run.state.as_str() {
                "done" => &mut report.done,
                "missed" | "skipped" if may_idle => &mut report.stood_in,
                "queued" | "running" | "waiting" => &mut report.stuck,
                "missed" | "skipped" => &mut report.missed,
                _ => &mut report.failed,
            };
            *count += 1;
            let is_problem = run.state != "done" && !may_idle;
            if is_problem {
                problems.push(format!("run {} is {}: {}", run.id, run.state, run.reason));
            }
        }
        report.problems.extend(problems);
    }

    /// Checks that every prompt had its effect once.
    fn run_effects(&mut self) {
        let works: HashMap<&str, Work> = self
            .harness
            .jobs
            .iter()
            .map(|job| (job.name.as_str(), job.work))
            .collect();
        let mut wrong = Vec::new();
        for run in &self.runs {
            let work = run.job.as_deref().and_then(|job| works.get(job));
            let has_effect = match work {
                Some(Work::Prompt | Work::TeamPrompt) => run.state == "done",
                Some(_) => continue,
                None => run.kind == "background",
            };
            let count = self.effects.of_session(&format!("run-{}", run.id));
            if count != usize::from(has_effect) {
                wrong.push((run.id, count, has_effect));
            }
        }
        for (run, count, has_effect) in wrong {
            match count {
                0 => self.report.missed += 1,
                _ => self.report.doubled += 1,
            }
            self.problem(format!(
                "run {run} had {count} effects, expected {has_effect}"
            ));
        }
    }

    /// Checks the jobs whose runs share a session: as many effects as runs.
    fn main_sessions(&mut self) {
        let sql = "SELECT j.name, 'job-' || j.id FROM jobs j";
        let jobs = self.harness.tables.prepare(sql).and_then(|mut query| {
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<HashMap<String, String>>>()
        });
        let jobs = jobs.unwrap_or_default();
        let planned = self.harness.jobs.iter();
        for job in planned.filter(|job| job.work == Work::MainPrompt) {
            let is_done = |run: &&RunRow| {
                run.job.as_deref() == Some(job.name.as_str()) && run.state == "done"
            };
            let done = self.runs.iter().filter(is_done).count();
            let session = jobs.get(&job.name).map_or("", String::as_str);
            let count = self.effects.of_session(session);
            self.report.missed += done.saturating_sub(count);
            self.report.doubled += count.saturating_sub(done);
            if count != done {
                let text = format!("{}: {done} runs, {count} effects", job.name);
                self.report.problems.push(text);
            }
        }
    }

    /// Checks the effects of the steps of workflows.
    fn steps(&mut self) -> Result<()> {
        let sql = "SELECT run, step, state, is_repeated FROM run_steps";
        let mut query = self.harness.tables.prepare(sql)?;
        let rows = query.query_map([], |row| {
            let run: i64 = row.get(0)?;
            Ok((run as u64, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
        let rows: Vec<(u64, String, String, bool)> = rows.collect::<rusqlite::Result<_>>()?;
        for (run, step, state, is_repeated) in rows {
            self.report.steps += 1;
            let is_agent = AGENT_STEPS.contains(&step.as_str());
            if !is_agent && !TOOL_STEPS.contains(&step.as_str()) {
                continue;
            }
            let count = self.effects.of_step(run, &step);
            let answers = self.harness.answers.get(&(run, step.clone()));
            let answers = answers.copied().unwrap_or_default();
            self.report.repeated_by_user += answers.careless;
            self.report.waited_with_effect += answers.careless + answers.skipped;
            let allowed = 1 + answers.careless;
            if count == 0 {
                self.report.missed += 1;
            } else if count > allowed || (is_agent && count > 1) {
                self.report.doubled += 1;
            } else if count > 1 && !is_repeated {
                self.report.unmarked += 1;
            } else {
                continue;
            }
            self.problem(format!(
                "step {step} of run {run} is {state}: {count} effects, {answers:?}, repeated: {is_repeated}"
            ));
        }
        Ok(())
    }

    /// Checks that results that were once seen are unchanged, and that each belongs to its run.
    fn results(&mut self) -> Result<()> {
        let stored = results(&self.harness.tables)?;
        let seen = self.harness.seen_results.iter();
        let lost: Vec<String> = seen
            .filter(|(key, seen)| stored.get(key) != Some(seen))
            .map(|(key, seen)| format!("the result of {key:?} was {seen}"))
            .collect();
        let is_own = |run: &RunRow| match run.kind.as_str() {
            "background" => run.result.contains(&format!("run-{}", run.id)),
            "workflow" => run.result.contains(&step_key(&run.id.to_string(), "last")),
            _ => !run.result.is_empty(),
        };
        let done = self.runs.iter().filter(|run| run.state == "done");
        let foreign = done.filter(|run| !is_own(run));
        let foreign = foreign.map(|run| format!("run {} has the result {}", run.id, run.result));
        let problems: Vec<String> = lost.into_iter().chain(foreign).collect();
        self.report.lost_results += problems.len();
        self.report.problems.extend(problems);
        Ok(())
    }

    /// Checks that every result was delivered once.
    fn deliveries(&mut self) -> Result<()> {
        let lost = "SELECT count(*) FROM runs r WHERE state = 'done' AND NOT EXISTS (
            SELECT 1 FROM deliveries d WHERE d.run = r.id AND d.occasion = 'result'
            AND d.state = 'delivered')";
        let doubled = "SELECT count(*) - count(DISTINCT run) FROM deliveries
            WHERE occasion = 'result'";
        let delivered = |target: &str| {
            self.harness.count(&format!(
                "SELECT count(*) FROM deliveries WHERE state = 'delivered' AND target = '{target}'"
            ))
        };
        let entries = self.harness.count("SELECT count(*) FROM inbox")?;
        let notes = fs::read_to_string(self.harness.folder.deliveries()).context("the notes")?;
        let lines = notes.lines().filter(|line| line.starts_with("--- "));
        let received = [
            (entries, delivered("inbox")?),
            (lines.count() as i64, delivered("file:notes.md")?),
        ];
        let mut lost = self.harness.count(lost)?;
        let mut doubled = self.harness.count(doubled)?;
        for (received, delivered) in received {
            lost += (delivered - received).max(0);
            doubled += (received - delivered).max(0);
        }
        self.report.lost_deliveries = usize::try_from(lost)?;
        self.report.doubled_deliveries = usize::try_from(doubled)?;
        Ok(())
    }
}
