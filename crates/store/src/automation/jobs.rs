//! Jobs, and the decisions about their occurrences.

use futures::future::FutureExt;
use jiff::{SignedDuration, Timestamp};
use lango_domain::StoreError;
use lango_domain::automation::{
    DecisionRewind, Job, JobEdit, JobId, JobStore, LeaseNumber, NewJob, OccurrenceDecision,
    RunState,
};
use lango_domain::event::Principal;
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{JOB_COLUMNS, job, optional_time, row_name, to_json, to_word};
use super::{deliveries, lease, runs};
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;
use crate::writer::WriteError;

impl JobStore for SqliteStore {
    fn add_job(&self, new: NewJob, limit: usize) -> StoreFuture<'_, Job> {
        async move {
            self.batch(move |connection| insert_job(connection, &new, limit))
                .await
        }
        .boxed()
    }

    fn edit_job<'a>(
        &'a self,
        principal: &'a Principal,
        id: JobId,
        edit: JobEdit,
    ) -> StoreFuture<'a, Job> {
        let principal = principal.clone();
        async move {
            self.batch(move |connection| update_job(connection, &principal, id, edit))
                .await
        }
        .boxed()
    }

    fn remove_job<'a>(
        &'a self,
        principal: &'a Principal,
        id: JobId,
        at: Timestamp,
    ) -> StoreFuture<'a, ()> {
        let principal = principal.clone();
        async move {
            self.batch(move |connection| delete_job(connection, &principal, id, at))
                .await
        }
        .boxed()
    }

    fn job<'a>(&'a self, principal: &'a Principal, name: &'a str) -> StoreFuture<'a, Option<Job>> {
        let (principal, name) = (principal.to_string(), name.to_owned());
        async move {
            self.read(move |connection| {
                let sql =
                    format!("SELECT {JOB_COLUMNS} FROM jobs WHERE principal = ?1 AND name = ?2");
                let found = connection.query_rows(&sql, [principal, name], row_name("job"), job)?;
                Ok(found.into_iter().next())
            })
            .await
        }
        .boxed()
    }

    fn jobs<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Job>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| {
                let sql =
                    format!("SELECT {JOB_COLUMNS} FROM jobs WHERE principal = ?1 ORDER BY name");
                connection.query_rows(&sql, [principal], row_name("job"), job)
            })
            .await
        }
        .boxed()
    }

    fn due_jobs(&self, at: Timestamp, limit: usize) -> StoreFuture<'_, Vec<Job>> {
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {JOB_COLUMNS} FROM jobs WHERE next_due IS NOT NULL AND next_due <= ?1
                    ORDER BY next_due LIMIT ?2"
                );
                let values = params![sortable_time(at), limit as i64];
                connection.query_rows(&sql, values, row_name("job"), job)
            })
            .await
        }
        .boxed()
    }

    fn decide(
        &self,
        number: LeaseNumber,
        decision: OccurrenceDecision,
    ) -> StoreFuture<'_, Option<usize>> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                Ok(store_decision(connection, &decision)?)
            })
            .await
        }
        .boxed()
    }

    fn jobs_decided_after(&self, at: Timestamp) -> StoreFuture<'_, Vec<Job>> {
        async move {
            self.read(move |connection| {
                let sql =
                    format!("SELECT {JOB_COLUMNS} FROM jobs WHERE decided_until > ?1 AND enabled");
                connection.query_rows(&sql, [sortable_time(at)], row_name("job"), job)
            })
            .await
        }
        .boxed()
    }

    fn rewind_job(&self, number: LeaseNumber, new: DecisionRewind) -> StoreFuture<'_, bool> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                Ok(rewind(connection, &new)?)
            })
            .await
        }
        .boxed()
    }

    fn shorten_waits(&self, number: LeaseNumber, latest: Timestamp) -> StoreFuture<'_, ()> {
        async move {
            self.batch(move |connection| {
                lease::check(connection, number)?;
                let latest = sortable_time(latest);
                let sql =
                    "UPDATE deliveries SET next_try = ?1 WHERE state = 'pending' AND next_try > ?1";
                connection.execute(sql, [&latest])?;
                let sql = "UPDATE runs SET resume_at = ?1 WHERE ended IS NULL AND resume_at > ?1";
                connection.execute(sql, [&latest])?;
                Ok(())
            })
            .await
        }
        .boxed()
    }
}

fn rewind(connection: &Connection, rewind: &DecisionRewind) -> rusqlite::Result<bool> {
    let now = sortable_time(rewind.decided_until);
    let id = rewind.job.get() as i64;
    // Rows that a wrong clock decided were made in the future. What they left out is decided again.
    let of_wrong_clock =
        "job = ?1 AND (due > ?2 OR created > ?2) AND state IN ('skipped', 'missed')";
    let sql = format!("SELECT min(due) FROM runs WHERE {of_wrong_clock}");
    let first_wrong = connection.query_row(&sql, params![id, now], |row| optional_time(row, 0))?;
    let next_due = rewind.next_due.into_iter().chain(first_wrong).min();
    let until = next_due.and_then(|due| due.checked_sub(SignedDuration::from_nanos(1)).ok());
    let until = until.map_or(rewind.decided_until, |until| {
        until.min(rewind.decided_until)
    });
    let sql = "UPDATE jobs SET decided_until = ?3, next_due = ?4 WHERE id = ?1 AND version = ?2";
    let (until, next_due) = (sortable_time(until), next_due.map(sortable_time));
    let values = params![id, rewind.job_version as i64, until, next_due];
    if connection.execute(sql, values)? == 0 {
        return Ok(false);
    }
    let sql = format!("DELETE FROM runs WHERE {of_wrong_clock}");
    connection.execute(&sql, params![id, now])?;
    Ok(true)
}

/// A job whose occurrences are all over. A paused job is not.
const IS_OVER: &str = "(next_due IS NULL AND enabled)";

fn insert_job(connection: &Connection, new: &NewJob, limit: usize) -> Result<Job, WriteError> {
    let principal = new.principal.as_str();
    let sql = format!("SELECT count(*) FROM jobs WHERE principal = ?1 AND NOT {IS_OVER}");
    let count: i64 = connection.query_row(&sql, [principal], |row| row.get(0))?;
    if count >= limit as i64 {
        return Err(StoreError::TooManyJobs(limit).into());
    }
    let sql = format!(
        "UPDATE jobs SET name = name || ' #' || id WHERE principal = ?1 AND name = ?2 AND {IS_OVER}"
    );
    connection.execute(&sql, [principal, &new.name])?;
    let sql = format!(
        "INSERT INTO jobs (principal, name, schedule, catch_up, grace_seconds, overlap, enabled, spec,
            created, version, decided_until, next_due)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, 1, ?8, ?9)
        ON CONFLICT (principal, name) DO NOTHING RETURNING {JOB_COLUMNS}"
    );
    let values = params![
        principal,
        new.name,
        to_json(&new.schedule)?,
        to_word(new.catch_up)?,
        new.grace.as_secs(),
        to_word(new.overlap)?,
        to_json(&new.spec)?,
        sortable_time(new.created),
        new.next_due.map(sortable_time),
    ];
    let added = connection.query_row(&sql, values, job).optional()?;
    added.ok_or_else(|| StoreError::JobExists(new.name.clone()).into())
}

fn find_job(connection: &Connection, principal: &Principal, id: JobId) -> Result<Job, WriteError> {
    let sql = format!("SELECT {JOB_COLUMNS} FROM jobs WHERE id = ?1 AND principal = ?2");
    let values = params![id.get() as i64, principal.as_str()];
    let found = connection.query_row(&sql, values, job).optional()?;
    found.ok_or_else(|| StoreError::JobNotFound(id.to_string()).into())
}

fn update_job(
    connection: &Connection,
    principal: &Principal,
    id: JobId,
    edit: JobEdit,
) -> Result<Job, WriteError> {
    let old = find_job(connection, principal, id)?;
    let new = Job {
        enabled: edit.enabled.unwrap_or(old.enabled),
        schedule: edit.schedule.unwrap_or(old.schedule),
        catch_up: edit.catch_up.unwrap_or(old.catch_up),
        grace: edit.grace.unwrap_or(old.grace),
        overlap: edit.overlap.unwrap_or(old.overlap),
        spec: edit.spec.unwrap_or(old.spec),
        decided_until: edit.decided_until.unwrap_or(old.decided_until),
        next_due: edit.next_due,
        version: old.version + 1,
        ..old
    };
    let sql = "UPDATE jobs SET enabled = ?2, schedule = ?3, catch_up = ?4, grace_seconds = ?5,
        overlap = ?6, spec = ?7, decided_until = ?8, next_due = ?9, version = ?10 WHERE id = ?1";
    connection.execute(
        sql,
        params![
            id.get() as i64,
            new.enabled,
            to_json(&new.schedule)?,
            to_word(new.catch_up)?,
            new.grace.as_secs(),
            to_word(new.overlap)?,
            to_json(&new.spec)?,
            sortable_time(new.decided_until),
            new.next_due.map(sortable_time),
            new.version as i64,
        ],
    )?;
    Ok(new)
}

fn delete_job(
    connection: &Connection,
    principal: &Principal,
    id: JobId,
    at: Timestamp,
) -> Result<(), WriteError> {
    find_job(connection, principal, id)?;
    let id = id.get() as i64;
    let sql = format!("SELECT id FROM runs WHERE job = ?1 AND {}", runs::IS_HELD);
    let mut query = connection.prepare(&sql)?;
    let held: Vec<i64> = query
        .query_map([id], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for run in held {
        runs::stop(connection, run, "its job was removed", at)?;
        connection.execute("UPDATE runs SET job = NULL WHERE id = ?1", [run])?;
    }
    // A message that was not delivered yet still goes out.
    let sql = "UPDATE runs SET job = NULL WHERE job = ?1 AND EXISTS
        (SELECT 1 FROM deliveries d WHERE d.run = runs.id AND d.state = 'pending')";
    connection.execute(sql, [id])?;
    connection.execute("DELETE FROM runs WHERE job = ?1", [id])?;
    connection.execute("DELETE FROM jobs WHERE id = ?1", [id])?;
    Ok(())
}

fn store_decision(
    connection: &Connection,
    decision: &OccurrenceDecision,
) -> rusqlite::Result<Option<usize>> {
    let at = sortable_time(decision.at);
    let id = decision.job.get() as i64;
    let sql = "UPDATE jobs SET decided_until = max(decided_until, ?3), next_due = ?4
        WHERE id = ?1 AND version = ?2";
    let changed = connection.prepare_cached(sql)?.execute(params![
        id,
        decision.job_version as i64,
        sortable_time(decision.decided_until),
        decision.next_due.map(sortable_time),
    ])?;
    if changed == 0 {
        return Ok(None);
    }
    for run in &decision.replaced {
        let reason = "a later occurrence replaced it";
        runs::stop(connection, run.get() as i64, reason, decision.at)?;
    }
    let sql = "INSERT INTO runs
            (kind, job, principal, name, due, state, reason, created, ended, spec)
        SELECT 'job', id, principal, name, ?2, ?3, ?4, ?5, ?6, spec FROM jobs WHERE id = ?1
        ON CONFLICT (job, due) DO NOTHING";
    let mut insert = connection.prepare_cached(sql)?;
    let mut added = 0;
    for occurrence in &decision.occurrences {
        let ended = (occurrence.state != RunState::Queued).then_some(&at);
        let due = sortable_time(occurrence.due);
        let state = occurrence.state.as_str();
        added += insert.execute(params![id, due, state, occurrence.reason, at, ended])?;
    }
    deliveries::insert(connection, &decision.deliveries)?;
    Ok(Some(added))
}
