//! Starting runs, and taking over the runs of earlier processes.

use lango_domain::automation::{LeaseNumber, Recovery, Run, RunClaim};
use rusqlite::{Connection, params};

use super::rows::{RUN_COLUMNS, run};
use super::runs::IS_HELD;
use crate::damage::is_row_error;
use crate::event_rows::sortable_time;

pub(super) fn claim(
    connection: &Connection,
    number: LeaseNumber,
    claim: RunClaim,
) -> rusqlite::Result<Vec<Run>> {
    // Of a job, only the first queued run starts, and only if none is running or waiting.
    let sql = "SELECT id FROM runs r WHERE ended IS NULL
        AND (state = 'queued' OR (state = 'waiting' AND resume_at <= ?1))
        AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.job = r.job AND o.ended IS NULL AND o.id <> r.id
            AND (o.state = 'running' OR (r.state = 'queued'
                AND (o.state = 'waiting' OR (o.due, o.id) < (r.due, r.id)))))
        ORDER BY due, id LIMIT ?2";
    let at = sortable_time(claim.at);
    let ids: Vec<i64> = connection
        .prepare_cached(sql)?
        .query_map(params![at, claim.limit as i64], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let sql = format!(
        "UPDATE runs SET state = 'running', reason = NULL, attempt = attempt + 1, lease = ?2,
            started = coalesce(started, ?3), resume_at = NULL
        WHERE id = ?1 RETURNING {RUN_COLUMNS}"
    );
    let mut update = connection.prepare_cached(&sql)?;
    let claimed = ids.into_iter().map(|id| {
        let claimed = update.query_row(params![id, number.get() as i64, at], run);
        readable(connection, id, claimed, &at)
    });
    claimed.filter_map(Result::transpose).collect()
}

pub(super) fn recover(
    connection: &Connection,
    number: LeaseNumber,
    recovery: Recovery,
) -> rusqlite::Result<Vec<Run>> {
    let sql = format!(
        "SELECT id FROM runs WHERE ended IS NULL AND {IS_HELD} AND coalesce(lease, 0) < ?1
        ORDER BY due, id"
    );
    let ids: Vec<i64> = connection
        .prepare(&sql)?
        .query_map([number.get() as i64], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let sql = "UPDATE runs SET state = 'queued', reason = 'the process that ran it ended'
        WHERE id = ?1 AND attempt < ?2 AND NOT is_cancel_requested";
    let mut update = connection.prepare(sql)?;
    let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?1");
    let mut select = connection.prepare(&sql)?;
    let recovered = ids.into_iter().map(|id| {
        update.execute(params![id, recovery.max_attempts])?;
        let recovered = select.query_row([id], run);
        readable(connection, id, recovered, &sortable_time(recovery.at))
    });
    recovered.filter_map(Result::transpose).collect()
}

/// Ends a run whose row cannot be read, so that it does not hold up all others.
fn readable(
    connection: &Connection,
    id: i64,
    read: rusqlite::Result<Run>,
    at: &str,
) -> rusqlite::Result<Option<Run>> {
    match read {
        Ok(run) => Ok(Some(run)),
        Err(error) if is_row_error(&error) => {
            tracing::error!(run = id, %error, "a run cannot be read; it has failed");
            let sql = "UPDATE runs SET state = 'failed', ended = ?2,
                error = 'the stored run is damaged' WHERE id = ?1";
            connection.execute(sql, params![id, at])?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
