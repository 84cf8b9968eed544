//! Runs.

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::automation::{
    Agenda, JobId, LeaseNumber, NewDelivery, NewRun, Recovery, Run, RunClaim, RunEnd, RunId,
    RunProgress, RunQuery, RunState, RunStep, RunStore, StepDecision, StepState,
};
use lango_domain::event::{Principal, SessionId};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{RUN_COLUMNS, STEP_COLUMNS, label_column, row_name, run, step, to_json};
use super::{claims, deliveries, lease, steps, upkeep};
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;
use crate::writer::WriteError;

/// A run that some process holds, or held when it ended. A waiting run with a time is held by none.
pub(super) const IS_HELD: &str = "(state = 'running' OR (state = 'waiting' AND resume_at IS NULL))";

impl RunStore for SqliteStore {
    fn submit_run(&self, new: NewRun) -> StoreFuture<'_, Run> {
        async move { self.batch(move |connection| submit(connection, &new)).await }.boxed()
    }

    fn run<'a>(&'a self, principal: &'a Principal, id: RunId) -> StoreFuture<'a, Option<Run>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| {
                let sql =
                    format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?1 AND principal = ?2");
                let values = params![id.get() as i64, principal];
                let found = connection.query_rows(&sql, values, row_name("run"), run)?;
                Ok(found.into_iter().next())
            })
            .await
        }
        .boxed()
    }

    fn run_of_session<'a>(
        &'a self,
        principal: &'a Principal,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Option<Run>> {
        let (principal, session) = (principal.to_string(), session.to_string());
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {RUN_COLUMNS} FROM runs WHERE principal = ?1 AND id = coalesce(
                        (SELECT max(id) FROM runs WHERE principal = ?1 AND session = ?2),
                        (SELECT max(s.run) FROM run_steps s JOIN runs r ON r.id = s.run
                            WHERE s.session = ?2 AND r.principal = ?1))"
                );
                let found =
                    connection.query_rows(&sql, [principal, session], row_name("run"), run)?;
                Ok(found.into_iter().next())
            })
            .await
        }
        .boxed()
    }

    fn runs(&self, query: RunQuery) -> StoreFuture<'_, Vec<Run>> {
        async move {
            self.read(move |connection| {
                // Kinds and states are few and fixed, so they are matched as a list of words.
                let words = |words: Vec<&str>| match words.is_empty() {
                    true => None,
                    false => Some(format!(" {} ", words.join(" "))),
                };
                let sql = format!(
                    "SELECT {RUN_COLUMNS} FROM runs WHERE principal = ?1 AND (?2 IS NULL OR job = ?2)
                    AND (?3 IS NULL OR instr(?3, ' ' || kind || ' '))
                    AND (?4 IS NULL OR instr(?4, ' ' || state || ' '))
                    AND (?5 IS NULL OR id < ?5) ORDER BY id DESC LIMIT ?6"
                );
                let values = params![
                    query.principal.as_str(),
                    query.job.map(|job| job.get() as i64),
                    words(query.kinds.iter().map(|kind| kind.as_str()).collect()),
                    words(query.states.iter().map(|state| state.as_str()).collect()),
                    query.before.map(|run| run.get() as i64),
                    query.limit as i64,
                ];
                connection.query_rows(&sql, values, row_name("run"), run)
            })
            .await
        }
        .boxed()
    }

    fn open_runs(&self, job: JobId) -> StoreFuture<'_, Vec<Run>> {
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {RUN_COLUMNS} FROM runs WHERE job = ?1 AND ended IS NULL ORDER BY due, id"
                );
                connection.query_rows(&sql, [job.get() as i64], row_name("run"), run)
            })
            .await
        }
        .boxed()
    }

    fn cancel_run<'a>(
        &'a self,
        principal: &'a Principal,
        id: RunId,
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        let principal = principal.to_string();
        async move {
            self.batch(move |connection| {
                let sql = "SELECT 1 FROM runs WHERE id = ?1 AND principal = ?2";
                let is_own = connection
                    .prepare_cached(sql)?
                    .exists(params![id.get() as i64, principal])?;
                Ok(is_own && stop(connection, id.get() as i64, "a user cancelled it", at)?)
            })
            .await
        }
        .boxed()
    }

    fn claim_runs(&self, number: LeaseNumber, claim: RunClaim) -> StoreFuture<'_, Vec<Run>> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                Ok(claims::claim(connection, number, claim)?)
            })
            .await
        }
        .boxed()
    }

    fn recover_runs(&self, number: LeaseNumber, recovery: Recovery) -> StoreFuture<'_, Vec<Run>> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                Ok(claims::recover(connection, number, recovery)?)
            })
            .await
        }
        .boxed()
    }

    fn record_progress(&self, number: LeaseNumber, progress: RunProgress) -> StoreFuture<'_, bool> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                Ok(update_progress(connection, &progress)?)
            })
            .await
        }
        .boxed()
    }

    fn end_run(&self, number: LeaseNumber, end: RunEnd) -> StoreFuture<'_, bool> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                Ok(end_run(connection, &end)?)
            })
            .await
        }
        .boxed()
    }

    fn record_steps(
        &self,
        number: LeaseNumber,
        new_steps: Vec<RunStep>,
        new_deliveries: Vec<NewDelivery>,
    ) -> StoreFuture<'_, ()> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                for step in &new_steps {
                    steps::upsert(connection, step)?;
                }
                steps::count_progress(connection, &new_steps)?;
                deliveries::insert(connection, &new_deliveries)?;
                Ok(())
            })
            .await
        }
        .boxed()
    }

    fn steps<'a>(&'a self, principal: &'a Principal, id: RunId) -> StoreFuture<'a, Vec<RunStep>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {STEP_COLUMNS} FROM run_steps WHERE run = ?1
                    AND EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND principal = ?2) ORDER BY id"
                );
                let values = params![id.get() as i64, principal];
                connection.query_rows(&sql, values, row_name("step of run"), step)
            })
            .await
        }
        .boxed()
    }

    fn answer_step<'a>(
        &'a self,
        principal: &'a Principal,
        id: RunId,
        step: &'a str,
        decision: StepDecision,
    ) -> StoreFuture<'a, bool> {
        let (principal, step) = (principal.clone(), step.to_owned());
        async move {
            self.batch(move |connection| {
                Ok(steps::answer(
                    connection,
                    &principal,
                    (id, &step),
                    decision,
                )?)
            })
            .await
        }
        .boxed()
    }

    fn requeue_run<'a>(
        &'a self,
        principal: &'a Principal,
        id: RunId,
        changed: Vec<(String, StepState)>,
    ) -> StoreFuture<'a, bool> {
        let principal = principal.clone();
        async move {
            self.batch(move |connection| Ok(steps::requeue(connection, &principal, id, &changed)?))
                .await
        }
        .boxed()
    }

    fn prune_runs(&self, number: LeaseNumber, before: Timestamp) -> StoreFuture<'_, usize> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                Ok(upkeep::prune(connection, before)?)
            })
            .await
        }
        .boxed()
    }

    fn agenda(&self) -> StoreFuture<'_, Agenda> {
        async move { self.read(|connection| upkeep::agenda(connection)).await }.boxed()
    }
}

fn submit(connection: &Connection, new: &NewRun) -> Result<Run, WriteError> {
    let (principal, job) = (new.principal.as_str(), new.job.map(|job| job.get() as i64));
    let due = sortable_time(new.due);
    if let (Some(id), Some(job)) = (new.job, job) {
        let sql = "SELECT 1 FROM jobs WHERE id = ?1 AND principal = ?2";
        if !connection.prepare(sql)?.exists(params![job, principal])? {
            return Err(StoreError::JobNotFound(id.to_string()).into());
        }
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE job = ?1 AND due = ?2");
        let existing = connection.query_row(&sql, params![job, due], run);
        if let Some(existing) = existing.optional()? {
            return Ok(existing);
        }
    }
    let sql = format!(
        "INSERT INTO runs (kind, job, principal, name, due, state, created, spec)
        VALUES (?1, ?2, ?3, ?4, ?5, 'queued', ?5, ?6) RETURNING {RUN_COLUMNS}"
    );
    let spec = to_json(&new.spec)?;
    let values = params![new.kind.as_str(), job, principal, new.name, due, spec];
    Ok(connection.prepare_cached(&sql)?.query_row(values, run)?)
}

/// Cancels a run that no process holds, and asks others to stop. Returns false if it is over.
pub(super) fn stop(
    connection: &Connection,
    id: i64,
    reason: &str,
    at: Timestamp,
) -> rusqlite::Result<bool> {
    let sql = format!(
        "UPDATE runs SET is_cancel_requested = 1, reason = ?2
        WHERE id = ?1 AND ended IS NULL AND {IS_HELD}"
    );
    if connection.execute(&sql, params![id, reason])? > 0 {
        return Ok(true);
    }
    let sql = "UPDATE runs SET state = 'cancelled', reason = ?2, ended = ?3, resume_at = NULL
        WHERE id = ?1 AND ended IS NULL";
    let changed = connection.execute(sql, params![id, reason, sortable_time(at)])?;
    if changed > 0 {
        let sql = "UPDATE run_steps SET state = 'cancelled'
            WHERE run = ?1 AND state IN ('pending', 'waiting')";
        connection.execute(sql, [id])?;
    }
    Ok(changed > 0)
}

fn update_progress(connection: &Connection, progress: &RunProgress) -> rusqlite::Result<bool> {
    // An answer that came while the run was still running must not wait for the deadline.
    // Questions of turns are not meant: their turn is over, or asks again.
    let is_answered = "EXISTS (SELECT 1 FROM run_steps WHERE run = ?1 AND question IS NULL
        AND state IN ('waiting', 'unknown') AND decision IS NOT NULL)";
    let sql = format!(
        "UPDATE runs SET session = coalesce(?4, session), reason = ?3,
        attempt = CASE WHEN ?2 IN ('queued', 'waiting') THEN 0 ELSE attempt END,
        active_ms = coalesce(?6, active_ms),
        state = CASE WHEN ?5 IS NOT NULL AND {is_answered} THEN 'queued' ELSE ?2 END,
        resume_at = CASE WHEN {is_answered} THEN NULL ELSE ?5 END
        WHERE id = ?1 AND ended IS NULL"
    );
    let changed = connection.prepare_cached(&sql)?.execute(params![
        progress.run.get() as i64,
        progress.state.as_str(),
        progress.reason,
        progress.session.as_ref().map(SessionId::as_str),
        progress.resume_at.map(sortable_time),
        progress.active.map(|active| active.as_millis() as i64),
    ])?;
    Ok(changed > 0)
}

fn end_run(connection: &Connection, end: &RunEnd) -> rusqlite::Result<bool> {
    let sql =
        "UPDATE runs SET state = ?2, reason = coalesce(?3, reason), ended = ?4, result = ?5, error = ?6, label = ?7,
        resume_at = NULL WHERE id = ?1 AND ended IS NULL";
    let changed = connection.prepare_cached(sql)?.execute(params![
        end.run.get() as i64,
        end.state.as_str(),
        end.reason,
        sortable_time(end.at),
        end.result,
        end.error,
        label_column(&end.label)?,
    ])?;
    if changed > 0 {
        steps::close_open(connection, end.run)?;
        deliveries::insert(connection, &end.deliveries)?;
    }
    Ok(changed > 0)
}

/// Returns the state of a run of the principal.
pub(super) fn state(
    connection: &Connection,
    principal: &Principal,
    id: RunId,
) -> rusqlite::Result<Option<RunState>> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?1 AND principal = ?2");
    let values = params![id.get() as i64, principal.as_str()];
    let found = connection.query_row(&sql, values, run).optional()?;
    Ok(found.map(|run| run.state))
}
