//! Steps of workflows.

use lango_domain::automation::{RunId, RunStep, StepDecision, StepState};
use lango_domain::event::{Principal, SessionId};
use rusqlite::{Connection, params};

use super::rows::label_column;
use super::runs;
use crate::event_rows::sortable_time;

pub(super) fn upsert(connection: &Connection, step: &RunStep) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO run_steps (run, step, state, reason, attempt, started, ended, session, result,
            error, label, is_repeated, question, deadline)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
        ON CONFLICT (run, step) DO UPDATE SET state = ?3, reason = ?4, attempt = ?5, started = ?6,
            ended = ?7, session = ?8, result = ?9, error = ?10, label = ?11, is_repeated = ?12,
            question = ?13, deadline = ?14,
            decision = CASE WHEN ?3 IN ('waiting', 'unknown') AND state <> ?3 THEN NULL
                ELSE decision END";
    let session = step.session.as_ref().map(SessionId::as_str);
    connection.prepare_cached(sql)?.execute(params![
        step.run.get() as i64,
        step.step,
        step.state.as_str(),
        step.reason,
        step.attempt,
        step.started.map(sortable_time),
        step.ended.map(sortable_time),
        session,
        step.result,
        step.error,
        label_column(&step.label)?,
        step.is_repeated,
        step.question,
        step.deadline.map(sortable_time),
    ])?;
    Ok(())
}

/// A run that gets on is not one that ends its process again and again: its attempts count from here.
pub(super) fn count_progress(connection: &Connection, steps: &[RunStep]) -> rusqlite::Result<()> {
    let sql = "UPDATE runs SET attempt = 1 WHERE id = ?1 AND attempt > 1";
    let mut update = connection.prepare_cached(sql)?;
    let mut done = steps.iter().filter(|step| step.state == StepState::Done);
    done.try_for_each(|step| update.execute([step.run.get() as i64]).map(drop))
}

/// Leaves no step of a run that is over as running, because its process ended during the step, and no
/// question as waiting.
pub(super) fn close_open(connection: &Connection, run: RunId) -> rusqlite::Result<()> {
    let sql = "UPDATE run_steps SET
            reason = CASE WHEN question IS NOT NULL THEN reason
                WHEN state = 'running' THEN 'the run ended while it ran, so its effect is unknown'
                ELSE 'the run ended' END,
            state = CASE state WHEN 'running' THEN 'unknown' ELSE 'cancelled' END
        WHERE run = ?1 AND state IN ('running', 'pending', 'waiting')";
    connection
        .prepare_cached(sql)?
        .execute([run.get() as i64])?;
    Ok(())
}

pub(super) fn answer(
    connection: &Connection,
    principal: &Principal,
    (run, step): (RunId, &str),
    decision: StepDecision,
) -> rusqlite::Result<bool> {
    let open = runs::state(connection, principal, run)?.filter(|state| !state.is_final());
    if open.is_none() {
        return Ok(false);
    }
    let sql = "UPDATE run_steps SET decision = ?3
        WHERE run = ?1 AND step = ?2 AND state IN ('waiting', 'unknown')
            AND (question IS NULL OR decision IS NULL)";
    let id = run.get() as i64;
    if connection.execute(sql, params![id, step, decision.as_str()])? == 0 {
        return Ok(false);
    }
    let sql = "UPDATE runs SET state = 'queued', resume_at = NULL, reason = 'a step was answered'
        WHERE id = ?1 AND state = 'waiting' AND resume_at IS NOT NULL";
    connection.execute(sql, [id])?;
    Ok(true)
}

pub(super) fn requeue(
    connection: &Connection,
    principal: &Principal,
    run: RunId,
    changed: &[(String, StepState)],
) -> rusqlite::Result<bool> {
    let over = runs::state(connection, principal, run)?.filter(|state| state.is_final());
    if over.is_none() {
        return Ok(false);
    }
    let sql = "UPDATE runs SET state = 'queued', reason = 'a user asked for it again', attempt = 0,
        ended = NULL, result = NULL, error = NULL, label = NULL, is_cancel_requested = 0,
        active_ms = 0
        WHERE id = ?1";
    let id = run.get() as i64;
    connection.execute(sql, [id])?;
    let sql = "INSERT INTO run_steps (run, step, state, attempt, is_repeated, decision)
        VALUES (?1, ?2, ?3, 0, 0, CASE ?3 WHEN 'skipped' THEN 'skip' END)
        ON CONFLICT (run, step) DO UPDATE SET state = ?3, reason = NULL, started = NULL, ended = NULL,
            session = NULL, result = NULL, error = NULL, label = NULL,
            is_repeated = attempt > 0 OR is_repeated, attempt = 0,
            decision = CASE ?3 WHEN 'skipped' THEN 'skip' END";
    for (step, state) in changed {
        connection.execute(sql, params![id, step, state.as_str()])?;
    }
    Ok(true)
}
