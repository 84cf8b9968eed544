//! Damaged rows. A row that cannot be read is skipped and reported, and does not hide other rows.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::maintenance::DamagedRow;
use lango_text::sanitize::one_line;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Params, Row};

/// Maximum length of the reason in a report, in characters.
const MAX_REASON_LEN: usize = 120;
/// Maximum number of reported rows.
const MAX_REPORTED: usize = 1_000;

/// The rows skipped so far. Clones share the same log.
#[derive(Clone, Default)]
pub(crate) struct DamageLog(Arc<Mutex<BTreeSet<DamagedRow>>>);

impl DamageLog {
    pub fn rows(&self) -> Vec<DamagedRow> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    pub fn add(&self, row: DamagedRow) {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= MAX_REPORTED || reported.contains(&row) {
            return;
        }
        tracing::warn!(row = %row, "skipped a damaged row");
        reported.insert(row);
    }
}

/// A connection for reading, with the log for rows that cannot be read.
pub(crate) struct RowReader<'a> {
    connection: &'a Connection,
    damage: &'a DamageLog,
}

impl Deref for RowReader<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'a> RowReader<'a> {
    pub fn new(connection: &'a Connection, damage: &'a DamageLog) -> Self {
        Self { connection, damage }
    }

    /// Runs a query and returns every row that can be read.
    pub fn query_rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        name: impl Fn(&Row<'_>) -> String,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut query = self.connection.prepare_cached(sql)?;
        let mut rows = query.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.extend(self.check_row(row, &name, read(row))?);
        }
        Ok(found)
    }

    /// Turns the error of a damaged row into `None` and reports the row. Other errors are returned.
    pub fn check_row<T>(
        &self,
        row: &Row<'_>,
        name: impl Fn(&Row<'_>) -> String,
        read: rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_row_error(&error) => {
                self.damage.add(DamagedRow {
                    name: name(row),
                    reason: describe_error(&error),
                });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads a text column. Invalid UTF-8 is reported and replaced for display.
    pub fn read_text(
        &self,
        row: &Row<'_>,
        at: usize,
        name: impl Fn(&Row<'_>) -> String,
    ) -> rusqlite::Result<String> {
        let read = row
            .get_ref(at)?
            .as_str()
            .map(str::to_owned)
            .map_err(Error::from);
        Ok(self
            .check_row(row, name, read)?
            .unwrap_or_else(|| display_column(row, at)))
    }
}

/// Formats a column of any type for display.
pub(crate) fn display_column(row: &Row<'_>, at: usize) -> String {
    match row.get_ref(at) {
        Ok(ValueRef::Integer(number)) => number.to_string(),
        Ok(ValueRef::Real(number)) => number.to_string(),
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
            one_line(&String::from_utf8_lossy(bytes))
        }
        Ok(ValueRef::Null) | Err(_) => "?".to_owned(),
    }
}

/// Returns true if the error is caused by the row, not by the disk or the file.
pub(crate) fn is_row_error(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}

fn describe_error(error: &Error) -> String {
    let text = match error {
        Error::FromSqlConversionFailure(_, _, cause) => cause.to_string(),
        other => other.to_string(),
    };
    one_line(&text).chars().take(MAX_REASON_LEN).collect()
}
