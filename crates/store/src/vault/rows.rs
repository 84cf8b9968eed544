//! Conversions between rows of the vault and values.

use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::vault::{KeySlot, RecordKey, RecordKind, SealedRecord, SlotKind};
use rusqlite::Row;
use rusqlite::types::Type;

use crate::damage::display_column;

pub(super) const SLOT_COLUMNS: &str = "kind, parameters, nonce, wrapped_key, created";

pub(super) const RECORD_COLUMNS: &str =
    "kind, principal, name, version, attributes, nonce, ciphertext, created, used";

/// Reads a slot. Returns `None` for a kind of a newer version, which this one cannot open.
pub(super) fn read_slot(row: &Row<'_>) -> rusqlite::Result<Option<KeySlot>> {
    let Some(kind) = SlotKind::from_text(&row.get::<_, String>(0)?) else {
        return Ok(None);
    };
    Ok(Some(KeySlot {
        kind,
        parameters: row.get(1)?,
        nonce: row.get(2)?,
        wrapped_key: row.get(3)?,
        created: time(row, 4)?,
    }))
}

pub(super) fn read_record(row: &Row<'_>) -> rusqlite::Result<SealedRecord> {
    let kind: String = row.get(0)?;
    let kind = RecordKind::from_text(&kind)
        .ok_or_else(|| invalid_column(0, format!("unknown kind of record `{kind}`").into()))?;
    Ok(SealedRecord {
        key: RecordKey {
            kind,
            principal: Principal::new(row.get::<_, String>(1)?),
            name: row.get(2)?,
        },
        version: number(row, 3)?,
        attributes: row.get(4)?,
        nonce: row.get(5)?,
        ciphertext: row.get(6)?,
        created: time(row, 7)?,
        used: match row.get::<_, Option<String>>(8)? {
            Some(_) => Some(time(row, 8)?),
            None => None,
        },
    })
}

/// Names a record in a report about damage.
pub(super) fn record_name(row: &Row<'_>) -> String {
    let (kind, principal) = (display_column(row, 0), display_column(row, 1));
    format!("vault {kind} `{}` of {principal}", display_column(row, 2))
}

pub(super) fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Timestamp> {
    let text: String = row.get(at)?;
    text.parse()
        .map_err(|error: jiff::Error| invalid_column(at, error.into()))
}

pub(super) fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, number))
}

fn invalid_column(at: usize, cause: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, cause)
}
