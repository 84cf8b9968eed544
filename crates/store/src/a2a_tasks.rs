//! A2A tasks.

use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::session::StoreFuture;
use lango_domain::tasks::{NewTask, PushConfigRow, TaskCreation, TaskQuery, TaskRow, TaskStore};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::event_rows::sortable_time;
use crate::store::SqliteStore;

pub(crate) const TABLES: &str = "
    CREATE TABLE tasks (
        id TEXT PRIMARY KEY,
        principal TEXT NOT NULL,
        session TEXT NOT NULL,
        turn TEXT,
        state TEXT NOT NULL,
        is_over INTEGER NOT NULL,
        created TEXT NOT NULL,
        updated TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tasks_by_use ON tasks (principal, updated, id);
    -- Message ids, so that a repeated message does not create a second task.
    CREATE TABLE task_messages (
        principal TEXT NOT NULL,
        message TEXT NOT NULL,
        task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
        at TEXT NOT NULL,
        PRIMARY KEY (principal, message)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX task_messages_by_task ON task_messages (task);
    CREATE TABLE task_listeners (
        task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (task, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER tasks_go_with_their_session AFTER DELETE ON sessions BEGIN
        DELETE FROM tasks WHERE principal = old.principal AND session = old.name;
    END;
";

const COLUMNS: &str = "id, principal, session, turn, state, is_over, created, updated, body";

impl TaskStore for SqliteStore {
    fn create_task(&self, new: NewTask) -> StoreFuture<'_, TaskCreation> {
        Box::pin(async move {
            self.write(move |connection| insert_task(connection, &new))
                .await
        })
    }

    fn update_task(&self, row: TaskRow) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.write(move |connection| {
                let sql =
                    "UPDATE tasks SET turn = ?3, state = ?4, is_over = ?5, updated = ?6, body = ?7
                WHERE id = ?1 AND principal = ?2";
                let (turn, updated) = (
                    row.turn.as_ref().map(TurnId::as_str),
                    sortable_time(row.updated),
                );
                let principal = row.principal.as_str();
                connection.execute(
                    sql,
                    params![
                        row.id,
                        principal,
                        turn,
                        row.state,
                        row.is_terminal,
                        updated,
                        row.body
                    ],
                )
            })
            .await?;
            Ok(())
        })
    }

    fn delete_task<'a>(&'a self, principal: &'a Principal, id: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (principal, id) = (principal.clone(), id.to_owned());
            self.write(move |connection| {
                let sql = "DELETE FROM tasks WHERE id = ?1 AND principal = ?2";
                connection.execute(sql, params![id, principal.as_str()])
            })
            .await?;
            Ok(())
        })
    }

    fn task<'a>(
        &'a self,
        principal: &'a Principal,
        id: &'a str,
    ) -> StoreFuture<'a, Option<TaskRow>> {
        Box::pin(async move {
            let (principal, id) = (principal.clone(), id.to_owned());
            self.read(move |connection| {
                let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1 AND principal = ?2");
                connection
                    .prepare_cached(&sql)?
                    .query_row(params![id, principal.as_str()], task)
                    .optional()
            })
            .await
        })
    }

    fn tasks(&self, query: TaskQuery) -> StoreFuture<'_, (Vec<TaskRow>, usize)> {
        Box::pin(async move {
            self.read(move |connection| find_tasks(connection, &query))
                .await
        })
    }

    fn open_tasks<'a>(
        &'a self,
        principal: Option<&'a Principal>,
    ) -> StoreFuture<'a, Vec<(Principal, String)>> {
        Box::pin(async move {
            let principal = principal.cloned();
            self.read(move |connection| {
                let sql = "SELECT principal, id FROM tasks
                WHERE NOT is_over AND (?1 IS NULL OR principal = ?1)";
                let principal = principal.as_ref().map(Principal::as_str);
                let mut query = connection.prepare_cached(sql)?;
                query
                    .query_map([principal], |row| {
                        Ok((Principal::new(row.get::<_, String>(0)?), row.get(1)?))
                    })?
                    .collect()
            })
            .await
        })
    }

    fn upsert_push_config<'a>(
        &'a self,
        task: &'a str,
        config: PushConfigRow,
        limit: usize,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let task = task.to_owned();
            self.write(move |connection| {
                let sql = "INSERT INTO task_listeners (task, id, body)
                SELECT ?1, ?2, ?3
                WHERE (SELECT count(*) FROM task_listeners WHERE task = ?1 AND id <> ?2) < ?4
                ON CONFLICT (task, id) DO UPDATE SET body = excluded.body";
                let changed =
                    connection.execute(sql, params![task, config.id, config.body, limit as i64])?;
                Ok(changed > 0)
            })
            .await
        })
    }

    fn push_configs<'a>(&'a self, task: &'a str) -> StoreFuture<'a, Vec<PushConfigRow>> {
        Box::pin(async move {
            let task = task.to_owned();
            self.read(move |connection| {
                let sql = "SELECT id, body FROM task_listeners WHERE task = ?1 ORDER BY id";
                let mut query = connection.prepare_cached(sql)?;
                query
                    .query_map([task], |row| {
                        Ok(PushConfigRow {
                            id: row.get(0)?,
                            body: row.get(1)?,
                        })
                    })?
                    .collect()
            })
            .await
        })
    }

    fn delete_push_config<'a>(&'a self, task: &'a str, id: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (task, id) = (task.to_owned(), id.to_owned());
            self.write(move |connection| {
                connection.execute(
                    "DELETE FROM task_listeners WHERE task = ?1 AND id = ?2",
                    params![task, id],
                )
            })
            .await?;
            Ok(())
        })
    }
}

fn insert_task(connection: &mut Connection, new: &NewTask) -> rusqlite::Result<TaskCreation> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (row, principal) = (&new.row, new.row.principal.as_str());
    if let Some(found) = find_repeated(&transaction, new)? {
        return Ok(TaskCreation::Repeated(Box::new(found)));
    }
    let count: i64 = transaction.query_row(
        "SELECT count(*) FROM tasks WHERE principal = ?1",
        [principal],
        |row| row.get(0),
    )?;
    let surplus = count + 1 - new.max_tasks as i64;
    if surplus > 0 {
        let sql = "DELETE FROM tasks WHERE id IN
            (SELECT id FROM tasks WHERE principal = ?1 AND is_over ORDER BY updated LIMIT ?2)";
        if (transaction.execute(sql, params![principal, surplus])? as i64) < surplus {
            return Ok(TaskCreation::TooMany);
        }
    }
    let sql = format!("INSERT INTO tasks ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    let (session, turn) = (row.session.as_str(), row.turn.as_ref().map(TurnId::as_str));
    let (created, updated) = (sortable_time(row.created), sortable_time(row.updated));
    let values = params![
        row.id,
        principal,
        session,
        turn,
        row.state,
        row.is_terminal,
        created,
        updated,
        row.body
    ];
    transaction.execute(&sql, values)?;
    let sql = "INSERT OR REPLACE INTO task_messages (principal, message, task, at)
        VALUES (?1, ?2, ?3, ?4)";
    transaction.execute(sql, params![principal, new.message, row.id, created])?;
    transaction.commit()?;
    Ok(TaskCreation::New)
}

fn find_repeated(connection: &Connection, new: &NewTask) -> rusqlite::Result<Option<TaskRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tasks WHERE id =
            (SELECT task FROM task_messages WHERE principal = ?1 AND message = ?2 AND at >= ?3)"
    );
    let since = sortable_time(new.repeated_since);
    connection
        .query_row(
            &sql,
            params![new.row.principal.as_str(), new.message, since],
            task,
        )
        .optional()
}

fn find_tasks(
    connection: &Connection,
    query: &TaskQuery,
) -> rusqlite::Result<(Vec<TaskRow>, usize)> {
    const FILTER: &str =
        "principal = ?1 AND (?2 IS NULL OR session = ?2) AND (?3 IS NULL OR state = ?3)
        AND (?4 IS NULL OR updated > ?4)";
    let principal = query.principal.as_str();
    let session = query.session.as_ref().map(SessionId::as_str);
    let after = query.changed_after.map(sortable_time);
    let sql = format!("SELECT count(*) FROM tasks WHERE {FILTER}");
    let count: i64 = connection.query_row(
        &sql,
        params![principal, session, query.state, after],
        |row| row.get(0),
    )?;
    let sql = format!(
        "SELECT {COLUMNS} FROM tasks WHERE {FILTER} AND (?5 IS NULL OR (updated, id) < (?5, ?6))
        ORDER BY updated DESC, id DESC LIMIT ?7"
    );
    let (at, id) = query
        .after
        .clone()
        .map(|(at, id)| (sortable_time(at), id))
        .unzip();
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement
        .query_map(
            params![
                principal,
                session,
                query.state,
                after,
                at,
                id,
                query.limit as i64
            ],
            task,
        )?
        .collect::<rusqlite::Result<_>>()?;
    Ok((rows, usize::try_from(count).unwrap_or(0)))
}

fn task(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    let time = |at: usize| {
        row.get::<_, String>(at)
            .map(|text| text.parse::<Timestamp>().unwrap_or_default())
    };
    Ok(TaskRow {
        id: row.get(0)?,
        principal: Principal::new(row.get::<_, String>(1)?),
        session: SessionId::new(row.get::<_, String>(2)?),
        turn: row.get::<_, Option<String>>(3)?.map(TurnId::new),
        state: row.get(4)?,
        is_terminal: row.get(5)?,
        created: time(6)?,
        updated: time(7)?,
        body: row.get(8)?,
    })
}
