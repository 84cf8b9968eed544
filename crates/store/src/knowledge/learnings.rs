//! Learnings, and the outcomes of the advice that was given from them.

use lango_domain::event::SessionId;
use lango_domain::knowledge::{
    Effect, FailureCategory, Learning, LearningSaved, NewLearning, OutcomeBatch,
};
use lango_domain::session::SessionKey;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::{provenance, timestamp};
use crate::damage::{RowReader, display_column};
use crate::event_rows;

const SELECT_LEARNING: &str =
    "SELECT l.id, l.trigger, l.fix, l.category, l.helped, l.failed, s.name, l.turn, l.source, l.at,
    l.label FROM learnings l
    LEFT JOIN sessions s ON s.id = l.session";

/// Reads every learning to find damaged rows.
pub fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    reader
        .query_rows(SELECT_LEARNING, [], learning_name, learning)
        .map(drop)
}

/// Returns the principal's learnings, newest first.
pub fn list(connection: &RowReader<'_>, principal: &str) -> rusqlite::Result<Vec<Learning>> {
    let sql = format!("{SELECT_LEARNING} WHERE l.principal = ?1 ORDER BY l.id DESC");
    connection.query_rows(&sql, [principal], learning_name, learning)
}

/// Saves a learning. Each trigger has one fix: another fix replaces it and resets its counts, and
/// so does the same fix after it has failed.
pub fn save(
    connection: &mut Connection,
    principal: &str,
    new: &NewLearning,
) -> rusqlite::Result<LearningSaved> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "SELECT id, fix, failed FROM learnings WHERE principal = ?1 AND folded = ?2";
    let columns = |row: &Row<'_>| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, u32>(2)?,
        ))
    };
    let existing = transaction
        .query_row(sql, params![principal, new.trigger.to_lowercase()], columns)
        .optional()?;
    let saved = match existing {
        Some((id, fix, 0)) if fix == new.fix => LearningSaved::Same(id as u64),
        Some((id, ..)) => {
            replace(&transaction, principal, id, new)?;
            LearningSaved::Changed(id as u64)
        }
        None => {
            insert(&transaction, principal, new)?;
            LearningSaved::New(transaction.last_insert_rowid() as u64)
        }
    };
    transaction.commit()?;
    Ok(saved)
}

fn insert(transaction: &Connection, principal: &str, new: &NewLearning) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO learnings
        (principal, trigger, folded, fix, category, session, turn, source, at, label)
        VALUES (?1, ?2, ?3, ?4, ?5,
        (SELECT id FROM sessions WHERE principal = ?1 AND name = ?6), ?7, ?8, ?9, ?10)";
    let values = params![
        principal,
        new.trigger,
        new.trigger.to_lowercase(),
        new.fix,
        new.category.as_str(),
        new.source.session.as_ref().map(SessionId::as_str),
        new.source.turn.as_str(),
        new.source.by,
        event_rows::sortable_time(new.at),
        event_rows::label_json(&new.source.label),
    ];
    transaction.execute(sql, values)
}

fn replace(
    transaction: &Connection,
    principal: &str,
    id: i64,
    new: &NewLearning,
) -> rusqlite::Result<usize> {
    let sql = "UPDATE learnings SET trigger = ?3, fix = ?4, category = ?5, helped = 0, failed = 0,
        session = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?6),
        turn = ?7, source = ?8, at = ?9, label = ?10
        WHERE principal = ?1 AND id = ?2";
    let values = params![
        principal,
        id,
        new.trigger,
        new.fix,
        new.category.as_str(),
        new.source.session.as_ref().map(SessionId::as_str),
        new.source.turn.as_str(),
        new.source.by,
        event_rows::sortable_time(new.at),
        event_rows::label_json(&new.source.label),
    ];
    transaction.execute(sql, values)
}

fn learning_name(row: &Row<'_>) -> String {
    format!("learning {}", display_column(row, 0))
}

fn learning(row: &Row<'_>) -> rusqlite::Result<Learning> {
    Ok(Learning {
        id: row.get::<_, i64>(0)? as u64,
        trigger: row.get(1)?,
        fix: row.get(2)?,
        category: FailureCategory::from_name(row.get_ref(3)?.as_str()?).unwrap_or_default(),
        helped: row.get(4)?,
        failed: row.get(5)?,
        source: provenance(row, 6)?,
        at: timestamp(row, 9)?,
    })
}

/// Returns the last event of a session whose outcomes were counted.
pub fn counted_through(connection: &Connection, key: &SessionKey) -> rusqlite::Result<u64> {
    let sql = "SELECT l.outcomes FROM looked_at l JOIN sessions s ON s.id = l.session
        WHERE s.principal = ?1 AND s.name = ?2";
    let values = params![key.principal.as_str(), key.session.as_str()];
    let found = connection
        .prepare_cached(sql)?
        .query_row(values, |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(found.unwrap_or_default() as u64)
}

/// Counts the outcomes of a batch. Does nothing if the session is gone or another process has
/// counted since the batch was made.
pub fn count_outcomes(
    connection: &mut Connection,
    key: &SessionKey,
    batch: &OutcomeBatch,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(session_row) =
        event_rows::find_session(&transaction, key.principal.as_str(), key.session.as_str())?
    else {
        return Ok(());
    };
    if counted_through(&transaction, key)? != batch.after {
        return Ok(());
    }
    let sql = "INSERT INTO looked_at (session, outcomes) VALUES (?1, ?2)
        ON CONFLICT (session) DO UPDATE SET outcomes = ?2";
    transaction.execute(sql, params![session_row.id, batch.through as i64])?;
    for outcome in &batch.outcomes {
        let column = match outcome.effect {
            Effect::Helped => "helped",
            Effect::Failed => "failed",
        };
        let sql = format!(
            "UPDATE learnings SET {column} = {column} + 1 WHERE principal = ?1 AND id = ?2"
        );
        transaction.execute(
            &sql,
            params![key.principal.as_str(), outcome.learning as i64],
        )?;
    }
    transaction.commit()
}

/// Marks all events of a copied session as scanned. The original session was scanned itself.
pub(crate) fn mark_as_counted(
    transaction: &Connection,
    session: i64,
    events: usize,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO looked_at (session, outcomes, answers, gaps) VALUES (?1, ?2, ?2, ?2)";
    transaction
        .execute(sql, params![session, events as i64])
        .map(drop)
}
