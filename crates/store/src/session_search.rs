//! Search in the requests and answers of sessions.

use lango_domain::Content;
use lango_domain::event::{EventBody, SessionId};
use lango_domain::session_catalog::SessionSearchHit;
use rusqlite::params;

use crate::damage::{RowReader, display_column};
use crate::event_rows;

pub(crate) fn search(
    connection: &RowReader<'_>,
    principal: &str,
    words: &[String],
    limit: usize,
) -> rusqlite::Result<Vec<SessionSearchHit>> {
    let sql =
        "SELECT e.seq, e.turn, e.author, e.branch, e.at, e.body, s.name, s.title FROM events e
        JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND e.kind IN ('user', 'answer')
        ORDER BY s.updated DESC, e.seq DESC";
    let mut query = connection.prepare(sql)?;
    let mut rows = query.query(params![principal])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        if hits.len() == limit {
            break;
        }
        let session = SessionId::new(display_column(row, 6));
        let event = connection.check_row(
            row,
            event_rows::joined_event_name,
            event_rows::event(row, &session),
        )?;
        let Some(event) = event else { continue };
        let (EventBody::User(Content { text, .. })
        | EventBody::Answer(Content { text, .. })
        | EventBody::Report(Content { text, .. })) = &event.body
        else {
            continue;
        };
        let text = text.to_lowercase();
        if words.iter().all(|word| text.contains(word)) {
            hits.push(SessionSearchHit {
                session,
                title: display_column(row, 7),
                event,
            });
        }
    }
    Ok(hits)
}
