//! The events of the audit log.

use lango_domain::audit::{AuditBuilder, AuditEntry};
use lango_domain::event::SessionId;
use rusqlite::params;

use crate::damage::RowReader;
use crate::event_rows;

/// Returns the newest tool calls in one session of the principal, or in all. Folds row by row, since
/// results can be large.
pub(crate) fn entries(
    connection: &RowReader<'_>,
    principal: &str,
    session: Option<&str>,
    limit: usize,
) -> rusqlite::Result<Vec<AuditEntry>> {
    let sql = "SELECT seq, turn, author, branch, at, body, name FROM events
        JOIN sessions ON id = session
        WHERE principal = ?1 AND (?2 IS NULL OR name = ?2)
        AND kind IN ('call', 'approval', 'result')
        ORDER BY session, seq";
    let mut query = connection.prepare(sql)?;
    let mut rows = query.query(params![principal, session])?;
    let mut builder = AuditBuilder::default();
    while let Some(row) = rows.next()? {
        let event = event_rows::event(row, &SessionId::new(row.get::<_, String>(6)?));
        let event = connection.check_row(row, event_rows::joined_event_name, event)?;
        event.iter().for_each(|event| builder.add(event));
    }
    Ok(builder.into_newest(limit))
}
