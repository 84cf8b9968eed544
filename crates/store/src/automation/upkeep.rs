//! The times that the scheduler waits for, and the removal of old runs.

use jiff::Timestamp;
use lango_domain::automation::{Agenda, RunId};
use rusqlite::Connection;

use super::rows::{number, optional_time};
use crate::event_rows::sortable_time;

pub(super) fn prune(connection: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    let before = sortable_time(before);
    // If everything is old, the clock is more likely wrong than the history useless.
    let sql = "SELECT EXISTS (SELECT 1 FROM runs WHERE ended >= ?1)";
    if !connection.query_row(sql, [&before], |row| row.get::<_, bool>(0))? {
        return Ok(0);
    }
    let over = "next_due IS NULL AND enabled AND decided_until < ?1
        AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.job = jobs.id
            AND (runs.ended IS NULL OR runs.ended >= ?1))";
    let sql = format!("DELETE FROM jobs WHERE {over}");
    connection.execute(&sql, [&before])?;
    let sql = "DELETE FROM runs WHERE ended < ?1
        AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.run = runs.id AND d.state = 'pending')
        AND (job IS NULL OR id < (SELECT max(o.id) FROM runs o WHERE o.job = runs.job))";
    let deleted = connection.execute(sql, [&before])?;
    let sql = "DELETE FROM deliveries WHERE run IS NULL AND state <> 'pending' AND created < ?1";
    connection.execute(sql, [&before])?;
    Ok(deleted)
}

pub(super) fn agenda(connection: &Connection) -> rusqlite::Result<Agenda> {
    let first = |sql: &str| {
        let mut query = connection.prepare_cached(sql)?;
        query.query_row([], |row| optional_time(row, 0))
    };
    let sql = "SELECT min(resume_at), max(state = 'queued') FROM runs WHERE ended IS NULL";
    let (next_resume, has_queued) = connection.prepare_cached(sql)?.query_row([], |row| {
        Ok((optional_time(row, 0)?, row.get::<_, Option<bool>>(1)?))
    })?;
    let sql = "SELECT id FROM runs WHERE ended IS NULL AND is_cancel_requested";
    let cancel_requests = connection
        .prepare_cached(sql)?
        .query_map([], |row| number(row, 0).map(RunId::new))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Agenda {
        next_occurrence: first("SELECT min(next_due) FROM jobs WHERE next_due IS NOT NULL")?,
        next_resume,
        next_delivery: first("SELECT min(next_try) FROM deliveries WHERE state = 'pending'")?,
        has_queued_runs: has_queued.unwrap_or(false),
        cancel_requests,
    })
}
