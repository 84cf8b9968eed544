//! Workflows that are stored under names.

use futures::future::FutureExt;
use lango_domain::automation::{NewSavedWorkflow, SavedWorkflow, WorkflowStore};
use lango_domain::event::Principal;
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::rows::{number, row_name, time};
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;
use crate::writer::WriteError;

const COLUMNS: &str = "principal, name, version, definition, saved";

impl WorkflowStore for SqliteStore {
    fn save_workflow(&self, workflow: NewSavedWorkflow) -> StoreFuture<'_, SavedWorkflow> {
        async move {
            self.batch(move |connection| insert(connection, &workflow))
                .await
        }
        .boxed()
    }

    fn saved_workflow<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
        version: Option<u64>,
    ) -> StoreFuture<'a, Option<SavedWorkflow>> {
        let (principal, name) = (principal.to_string(), name.to_owned());
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM workflows WHERE principal = ?1 AND name = ?2
                    AND (?3 IS NULL OR version = ?3) ORDER BY version DESC LIMIT 1"
                );
                let values = params![principal, name, version.map(|version| version as i64)];
                let found =
                    connection.query_rows(&sql, values, row_name("workflow of"), saved_workflow)?;
                Ok(found.into_iter().next())
            })
            .await
        }
        .boxed()
    }

    fn saved_workflows<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<SavedWorkflow>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM workflows w WHERE principal = ?1
                    AND version = (SELECT max(n.version) FROM workflows n
                        WHERE n.principal = w.principal AND n.name = w.name)
                    ORDER BY name"
                );
                connection.query_rows(&sql, [principal], row_name("workflow of"), saved_workflow)
            })
            .await
        }
        .boxed()
    }

    fn delete_workflow<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
    ) -> StoreFuture<'a, bool> {
        let (principal, name) = (principal.to_string(), name.to_owned());
        async move {
            self.batch(move |connection| {
                let sql = "DELETE FROM workflows WHERE principal = ?1 AND name = ?2";
                Ok(connection.execute(sql, [principal, name])? > 0)
            })
            .await
        }
        .boxed()
    }
}

fn insert(connection: &Connection, new: &NewSavedWorkflow) -> Result<SavedWorkflow, WriteError> {
    let principal = new.principal.as_str();
    let sql = format!(
        "SELECT {COLUMNS} FROM workflows WHERE principal = ?1 AND name = ?2
        ORDER BY version DESC LIMIT 1"
    );
    let newest = connection
        .query_row(&sql, params![principal, new.name], saved_workflow)
        .optional()?;
    let version = newest.as_ref().map_or(1, |newest| newest.version + 1);
    if let Some(newest) = newest
        && newest.definition == new.definition
    {
        return Ok(newest);
    }
    let sql = format!("INSERT INTO workflows ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5)");
    let saved = sortable_time(new.saved);
    let values = params![principal, new.name, version as i64, new.definition, saved];
    connection.execute(&sql, values)?;
    let sql = "DELETE FROM workflows WHERE principal = ?1 AND name = ?2 AND version <= ?3";
    let oldest = version.saturating_sub(new.max_versions.max(1) as u64);
    connection.execute(sql, params![principal, new.name, oldest as i64])?;
    Ok(SavedWorkflow {
        principal: new.principal.clone(),
        name: new.name.clone(),
        version,
        definition: new.definition.clone(),
        saved: new.saved,
    })
}

fn saved_workflow(row: &Row<'_>) -> rusqlite::Result<SavedWorkflow> {
    Ok(SavedWorkflow {
        principal: Principal::new(row.get::<_, String>(0)?),
        name: row.get(1)?,
        version: number(row, 2)?,
        definition: row.get(3)?,
        saved: time(row, 4)?,
    })
}
