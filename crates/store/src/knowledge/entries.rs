//! Entries of the knowledge base, with their versions.

use lango_domain::event::SessionId;
use lango_domain::knowledge::{EntrySaved, KnowledgeCategory, KnowledgeEntry, NewKnowledgeEntry};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::{provenance, timestamp};
use crate::damage::{RowReader, display_column};
use crate::event_rows;

const SELECT_ENTRY: &str =
    "SELECT k.key, k.version, k.category, k.content, k.tags, s.name, k.turn, k.source, k.at, k.label
    FROM knowledge k
    LEFT JOIN sessions s ON s.id = k.session";

/// Reads every entry to find damaged rows.
pub fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    reader
        .query_rows(SELECT_ENTRY, [], entry_name, entry)
        .map(drop)
}

/// Returns the newest version of each entry, newest first.
pub fn newest(
    connection: &RowReader<'_>,
    principal: &str,
) -> rusqlite::Result<Vec<KnowledgeEntry>> {
    let sql = format!(
        "{SELECT_ENTRY} WHERE k.principal = ?1 AND NOT EXISTS (SELECT 1 FROM knowledge newer
            WHERE newer.principal = k.principal AND newer.key = k.key AND newer.version > k.version)
        ORDER BY k.id DESC"
    );
    connection.query_rows(&sql, [principal], entry_name, entry)
}

/// Returns all versions of an entry, newest first.
pub fn history(
    connection: &RowReader<'_>,
    principal: &str,
    key: &str,
) -> rusqlite::Result<Vec<KnowledgeEntry>> {
    let sql =
        format!("{SELECT_ENTRY} WHERE k.principal = ?1 AND k.key = ?2 ORDER BY k.version DESC");
    connection.query_rows(&sql, params![principal, key], entry_name, entry)
}

/// Saves a new version of an entry within the caller's transaction. Does nothing if the newest
/// version is the same.
pub(crate) fn upsert(
    transaction: &Connection,
    principal: &str,
    new: &NewKnowledgeEntry,
) -> rusqlite::Result<EntrySaved> {
    let sql = format!(
        "{SELECT_ENTRY} WHERE k.principal = ?1 AND k.key = ?2 ORDER BY k.version DESC LIMIT 1"
    );
    let known = transaction
        .prepare_cached(&sql)?
        .query_row(params![principal, new.key], entry)
        .optional()?;
    if let Some(known) = &known
        && (known.category, &known.content, &known.tags) == (new.category, &new.content, &new.tags)
    {
        return Ok(EntrySaved::Same(known.version));
    }
    let version = known.as_ref().map_or(1, |known| known.version + 1);
    let tags = serde_json::to_string(&new.tags)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let sql = "INSERT INTO knowledge
        (principal, key, version, category, content, tags, session, turn, source, at, label)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6,
        (SELECT id FROM sessions WHERE principal = ?1 AND name = ?7), ?8, ?9, ?10, ?11)";
    let (category, at) = (new.category.as_str(), event_rows::sortable_time(new.at));
    let session = new.source.session.as_ref().map(SessionId::as_str);
    let (turn, by) = (new.source.turn.as_str(), &new.source.by);
    transaction.prepare_cached(sql)?.execute(params![
        principal,
        new.key,
        version,
        category,
        new.content,
        tags,
        session,
        turn,
        by,
        at,
        event_rows::label_json(&new.source.label)
    ])?;
    Ok(if version == 1 {
        EntrySaved::New
    } else {
        EntrySaved::Changed(version)
    })
}

/// Deletes all versions of an entry, and the answer that it was made from. Returns the number of
/// deleted versions.
pub fn forget(connection: &mut Connection, principal: &str, key: &str) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "DELETE FROM knowledge WHERE principal = ?1 AND key = ?2";
    let deleted = transaction.execute(sql, params![principal, key])?;
    let sql = "UPDATE inquiries SET answer = NULL, knowledge_key = NULL
        WHERE principal = ?1 AND knowledge_key = ?2";
    transaction.execute(sql, params![principal, key])?;
    transaction.commit()?;
    Ok(deleted)
}

fn entry_name(row: &Row<'_>) -> String {
    format!(
        "version {} of the knowledge `{}`",
        display_column(row, 1),
        display_column(row, 0)
    )
}

fn entry(row: &Row<'_>) -> rusqlite::Result<KnowledgeEntry> {
    Ok(KnowledgeEntry {
        key: row.get(0)?,
        version: row.get(1)?,
        category: KnowledgeCategory::from_name(row.get_ref(2)?.as_str()?).unwrap_or_default(),
        content: row.get(3)?,
        tags: serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or_default(),
        source: provenance(row, 5)?,
        at: timestamp(row, 8)?,
    })
}
