//! Removal of values from the events of a session, for a secret that was written before it was stored.

use std::sync::Arc;

use lango_domain::StoreError;
use lango_domain::content::{Attachment, BlobData};
use lango_domain::event::{Event, EventBody};
use lango_domain::redaction::redacted_event;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::session::{SessionKey, SessionKeyRef};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::blobs;
use crate::event_rows;
use crate::store::SqliteStore;

impl SqliteStore {
    /// Removes values from a session in one transaction. Old rows are overwritten, and the WAL is
    /// truncated: no file contains the values afterwards.
    pub(crate) async fn redact_session(
        &self,
        key: SessionKeyRef<'_>,
        redactor: &SecretRedactor,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        let (key, redactor) = (key.to_owned(), redactor.clone());
        let changed = self
            .write(move |connection| redact(connection, &key, &redactor))
            .await?;
        if !changed.is_empty() {
            self.checkpoint_wal().await;
        }
        Ok(changed)
    }
}

fn redact(
    connection: &mut Connection,
    key: &SessionKey,
    redactor: &SecretRedactor,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (principal, name) = (key.principal.as_str(), key.session.as_str());
    let Some(session) = event_rows::find_session(&transaction, principal, name)? else {
        return Ok(Vec::new());
    };
    let mut changed = Vec::new();
    for event in readable_events(&transaction, session.id, key)? {
        let event = with_texts(&transaction, &event)?;
        let Some(redacted) = redacted_event(&event, redactor) else {
            continue;
        };
        event_rows::update_event(&transaction, session.id, &redacted)?;
        blobs::replace_blobs(&transaction, session.id, &event, &redacted)?;
        redact_title(&transaction, session.id, &event, &redacted)?;
        changed.push(Arc::new(redacted));
    }
    transaction.commit()?;
    Ok(changed)
}

/// Returns the events that can be read. `doctor` reports the others.
fn readable_events(
    connection: &Connection,
    session: i64,
    key: &SessionKey,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 ORDER BY seq",
        event_rows::COLUMNS
    );
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query(params![session])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.extend(event_rows::event(row, &key.session));
    }
    Ok(events)
}

/// Returns the event with the bytes of its text files.
fn with_texts(connection: &Connection, event: &Event) -> rusqlite::Result<Event> {
    let mut event = event.clone();
    let is_text = |attachment: &&mut Attachment| attachment.is_text();
    for attachment in event.body.attachments_mut().iter_mut().filter(is_text) {
        if let Some(bytes) = blobs::read_blob(connection, &attachment.blob)? {
            attachment.data = BlobData::loaded(bytes);
        }
    }
    Ok(event)
}

/// A title is the start of a request, which may end within a value. So it is made again.
fn redact_title(
    connection: &Connection,
    session: i64,
    event: &Event,
    redacted: &Event,
) -> rusqlite::Result<()> {
    let (EventBody::User(before), EventBody::User(after)) = (&event.body, &redacted.body) else {
        return Ok(());
    };
    let titles = [&before.text, &after.text].map(|text| event_rows::title(text));
    let sql = "UPDATE sessions SET title = ?3 WHERE id = ?1 AND title = ?2";
    connection.execute(sql, params![session, titles[0], titles[1]])?;
    Ok(())
}
