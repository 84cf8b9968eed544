//! Storage of the vault: slots and sealed records.

mod rows;

use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::session::StoreFuture;
use lango_domain::vault::{
    KeySlot, OtherVersions, RecordChange, RecordKey, RecordKind, RecordWrite, RecordsRevision,
    SealedRecord, SlotKind, StoredVault, VaultStore,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::event_rows::sortable_time;
use crate::store::SqliteStore;
use crate::writer::WriteError;
use rows::{RECORD_COLUMNS, SLOT_COLUMNS, number, read_record, read_slot, record_name};

pub(crate) const TABLES: &str = "
    CREATE TABLE vault (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        id TEXT NOT NULL,
        created TEXT NOT NULL
    ) STRICT;
    CREATE TABLE vault_slots (
        kind TEXT PRIMARY KEY,
        parameters TEXT NOT NULL,
        nonce BLOB NOT NULL,
        wrapped_key BLOB NOT NULL,
        created TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- The id is never used again, so that it tells readers about changes.
    CREATE TABLE vault_records (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        version INTEGER NOT NULL,
        attributes TEXT NOT NULL,
        nonce BLOB NOT NULL,
        ciphertext BLOB NOT NULL,
        created TEXT NOT NULL,
        used TEXT,
        UNIQUE (principal, kind, name, version)
    ) STRICT;
";

/// Selects the records of a key, whose values are the first three parameters.
const OF_KEY: &str = "kind = ?1 AND principal = ?2 AND name = ?3";

impl VaultStore for SqliteStore {
    fn vault(&self) -> StoreFuture<'_, Option<StoredVault>> {
        Box::pin(async move { self.read(|connection| find_vault(connection)).await })
    }

    fn create_vault(&self, vault: StoredVault) -> StoreFuture<'_, StoredVault> {
        Box::pin(async move {
            self.batch(move |connection| {
                if let Some(found) = find_vault(connection)? {
                    return Ok(found);
                }
                let sql = "INSERT INTO vault (only, id, created) VALUES (1, ?1, ?2)";
                connection.execute(sql, params![vault.id.0, sortable_time(vault.created)])?;
                for slot in &vault.slots {
                    write_slot(connection, slot)?;
                }
                Ok(vault)
            })
            .await
        })
    }

    fn put_slot(&self, slot: KeySlot) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.batch(move |connection| Ok(write_slot(connection, &slot)?))
                .await
        })
    }

    fn remove_slot(&self, kind: SlotKind) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            self.batch(move |connection| {
                let sql = "DELETE FROM vault_slots
                    WHERE kind = ?1 AND (SELECT count(*) FROM vault_slots) > 1";
                Ok(connection.execute(sql, [kind.as_str()])? > 0)
            })
            .await
        })
    }

    fn change_records(&self, changes: Vec<RecordChange>) -> StoreFuture<'_, RecordWrite> {
        Box::pin(async move {
            self.batch(move |connection| change_all(connection, &changes))
                .await
        })
    }

    fn record_versions<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Vec<SealedRecord>> {
        let key = key.clone();
        Box::pin(async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {RECORD_COLUMNS} FROM vault_records WHERE {OF_KEY} ORDER BY version DESC"
                );
                let values = params![key.kind.as_str(), key.principal.as_str(), key.name];
                connection.query_rows(&sql, values, record_name, read_record)
            })
            .await
        })
    }

    fn records<'a>(
        &'a self,
        principal: &'a Principal,
        kind: RecordKind,
    ) -> StoreFuture<'a, Vec<SealedRecord>> {
        let principal = principal.to_string();
        Box::pin(async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {RECORD_COLUMNS} FROM vault_records r WHERE kind = ?1 AND principal = ?2
                    AND version = (SELECT max(n.version) FROM vault_records n
                        WHERE n.principal = r.principal AND n.kind = r.kind AND n.name = r.name)
                    ORDER BY name"
                );
                let values = params![kind.as_str(), principal];
                connection.query_rows(&sql, values, record_name, read_record)
            })
            .await
        })
    }

    fn all_records(&self) -> StoreFuture<'_, Vec<SealedRecord>> {
        Box::pin(async move {
            self.read(|connection| {
                let sql = format!(
                    "SELECT {RECORD_COLUMNS} FROM vault_records ORDER BY principal, kind, name, version"
                );
                // An export without a damaged row would look complete, so that such a row is an error.
                connection.prepare(&sql)?.query_map([], read_record)?.collect()
            })
            .await
        })
    }

    fn delete_record<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        let key = key.clone();
        Box::pin(async move {
            self.batch(move |connection| {
                let sql = format!("DELETE FROM vault_records WHERE {OF_KEY}");
                let values = params![key.kind.as_str(), key.principal.as_str(), key.name];
                Ok(connection.execute(&sql, values)? > 0)
            })
            .await
        })
    }

    fn mark_used<'a>(&'a self, key: &'a RecordKey, at: Timestamp) -> StoreFuture<'a, ()> {
        let key = key.clone();
        Box::pin(async move {
            self.batch(move |connection| {
                let sql = format!("UPDATE vault_records SET used = ?4 WHERE {OF_KEY}");
                let (kind, principal) = (key.kind.as_str(), key.principal.as_str());
                connection.execute(&sql, params![kind, principal, key.name, sortable_time(at)])?;
                Ok(())
            })
            .await
        })
    }

    fn records_revision<'a>(
        &'a self,
        principal: &'a Principal,
        kind: RecordKind,
    ) -> StoreFuture<'a, RecordsRevision> {
        let principal = principal.to_string();
        Box::pin(async move {
            self.read(move |connection| {
                let sql = "SELECT coalesce(max(id), 0), count(*) FROM vault_records
                    WHERE principal = ?1 AND kind = ?2";
                let mut query = connection.prepare_cached(sql)?;
                query.query_row(params![principal, kind.as_str()], |row| {
                    Ok(RecordsRevision {
                        newest: number(row, 0)?,
                        count: number(row, 1)?,
                    })
                })
            })
            .await
        })
    }
}

fn find_vault(connection: &Connection) -> rusqlite::Result<Option<StoredVault>> {
    let found = connection
        .prepare_cached("SELECT id, created FROM vault")?
        .query_row([], |row| Ok((row.get(0)?, rows::time(row, 1)?)))
        .optional()?;
    let Some((id, created)) = found else {
        return Ok(None);
    };
    let sql = format!("SELECT {SLOT_COLUMNS} FROM vault_slots ORDER BY kind");
    let mut query = connection.prepare_cached(&sql)?;
    let slots: Vec<Option<KeySlot>> = query
        .query_map([], read_slot)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some(StoredVault {
        id: lango_domain::vault::VaultId(id),
        created,
        slots: slots.into_iter().flatten().collect(),
    }))
}

fn write_slot(connection: &Connection, slot: &KeySlot) -> rusqlite::Result<()> {
    let sql =
        format!("INSERT OR REPLACE INTO vault_slots ({SLOT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5)");
    let created = sortable_time(slot.created);
    let KeySlot {
        parameters,
        nonce,
        wrapped_key,
        ..
    } = slot;
    connection.execute(
        &sql,
        params![slot.kind.as_str(), parameters, nonce, wrapped_key, created],
    )?;
    Ok(())
}

/// Makes all changes, or none if one of them does not know the newest version.
fn change_all(
    connection: &Connection,
    changes: &[RecordChange],
) -> Result<RecordWrite, WriteError> {
    for change in changes {
        let Some(record) = change.records.first() else {
            continue;
        };
        let key = &record.key;
        let values = params![key.kind.as_str(), key.principal.as_str(), key.name];
        let sql = format!("SELECT coalesce(max(version), 0) FROM vault_records WHERE {OF_KEY}");
        let newest = connection.query_row(&sql, values, |row| number(row, 0))?;
        if newest != change.expected_version {
            return Ok(RecordWrite::Outdated);
        }
    }
    for change in changes {
        apply(connection, change)?;
    }
    Ok(RecordWrite::Written)
}

fn apply(connection: &Connection, change: &RecordChange) -> rusqlite::Result<()> {
    let Some(first) = change.records.first() else {
        return Ok(());
    };
    let key = &first.key;
    if change.others == OtherVersions::Delete {
        let values = params![key.kind.as_str(), key.principal.as_str(), key.name];
        connection.execute(&format!("DELETE FROM vault_records WHERE {OF_KEY}"), values)?;
    }
    let sql = format!(
        "INSERT INTO vault_records ({RECORD_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    );
    for record in &change.records {
        connection.execute(
            &sql,
            params![
                key.kind.as_str(),
                key.principal.as_str(),
                key.name,
                record.version as i64,
                record.attributes,
                record.nonce,
                record.ciphertext,
                sortable_time(record.created),
                record.used.map(sortable_time),
            ],
        )?;
    }
    Ok(())
}
