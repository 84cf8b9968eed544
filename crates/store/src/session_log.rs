//! The log of a session: its events and the grants in it.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::StoreError;
use lango_domain::event::{Event, EventBody, Grant, NewEvent, Principal, SessionId};
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::session::{
    HistoryWindow, SessionKeyRef, SessionStore, TurnLock, grant_from_event,
};
use rusqlite::params;

use crate::damage::RowReader;
use crate::event_rows;
use crate::store::SqliteStore;

impl SessionStore for SqliteStore {
    fn lock<'a>(&'a self, key: SessionKeyRef<'a>) -> BoxFuture<'a, Result<TurnLock, StoreError>> {
        async move {
            self.writer()?;
            self.locks().lock(key).await
        }
        .boxed()
    }

    fn load<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        window: HistoryWindow,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        let (principal, session) = (key.principal.clone(), key.session.clone());
        async move {
            self.read(move |connection| load(connection, &principal, &session, window))
                .await
        }
        .boxed()
    }

    fn append<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        drafts: Vec<NewEvent>,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        async move {
            let events = self.writer()?.append(key.to_owned(), drafts).await?;
            if events.iter().any(|event| !event.attachments().is_empty()) {
                self.shrink_log().await;
            }
            Ok(events)
        }
        .boxed()
    }

    fn redact<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        redactor: &'a SecretRedactor,
    ) -> BoxFuture<'a, Result<Vec<Arc<Event>>, StoreError>> {
        self.redact_session(key, redactor).boxed()
    }

    fn grants<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Grant>, StoreError>> {
        let (principal, session, tool) =
            (key.principal.clone(), key.session.clone(), tool.to_owned());
        async move {
            self.read(move |connection| grants(connection, &principal, &session, &tool))
                .await
        }
        .boxed()
    }
}

fn grants(
    connection: &RowReader<'_>,
    principal: &Principal,
    session: &SessionId,
    tool: &str,
) -> rusqlite::Result<Vec<Grant>> {
    let Some(session_row) =
        event_rows::find_session(connection, principal.as_str(), session.as_str())?
    else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 AND kind = 'approval' ORDER BY seq",
        event_rows::COLUMNS
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut rows = query.query(params![session_row.id])?;
    let mut grants = Vec::new();
    while let Some(row) = rows.next()? {
        let event = connection.check_row(
            row,
            event_rows::event_name(session.as_str()),
            event_rows::event(row, session),
        )?;
        grants.extend(event.and_then(|event| grant_from_event(&event, tool)));
    }
    Ok(grants)
}

/// Loads a session's events backwards from the newest, and stops at the first turn boundary that
/// satisfies `window`.
pub(crate) fn load(
    connection: &RowReader<'_>,
    principal: &Principal,
    session: &SessionId,
    window: HistoryWindow,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let Some(session_row) =
        event_rows::find_session(connection, principal.as_str(), session.as_str())?
    else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {} FROM events WHERE session = ?1 ORDER BY seq DESC",
        event_rows::COLUMNS
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut rows = query.query(params![session_row.id])?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        bytes += row.get_ref(5)?.as_str().map_or(0, str::len);
        let event = connection.check_row(
            row,
            event_rows::event_name(session.as_str()),
            event_rows::event(row, session),
        )?;
        let Some(event) = event else { continue };
        let begins_turn = matches!(event.body, EventBody::User(_));
        events.push(event);
        if begins_turn && window.is_satisfied_by(bytes) {
            break;
        }
    }
    events.reverse();
    Ok(events)
}
