//! A2A tasks. The store keeps owner, state and times in columns; the body is opaque JSON of the
//! gateway.

use jiff::Timestamp;
use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::session::SessionKeyRef;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::error::SqliteStoreError;
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

/// A stored task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    pub id: String,
    pub principal: Principal,
    pub session: SessionId,
    /// The turn that works on the task, once it has started.
    pub turn: Option<TurnId>,
    pub state: String,
    /// True if the task has reached a final state.
    pub is_terminal: bool,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// The whole task, serialized by the caller.
    pub body: String,
}

/// A task to create.
#[derive(Clone, Debug)]
pub struct NewTask {
    pub row: TaskRow,
    /// The id of the message that creates the task.
    pub message: String,
    /// A message with the same id counts as repeated if it was received at or after this time.
    pub repeated_since: Timestamp,
    /// Maximum number of stored tasks per principal. The oldest finished ones are deleted for new
    /// ones.
    pub max_tasks: usize,
}

/// The result of creating a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskCreation {
    New,
    /// The message was received before and created this task.
    Repeated(Box<TaskRow>),
    /// The principal has too many unfinished tasks.
    TooMany,
}

/// A filter for a principal's tasks.
#[derive(Clone, Debug)]
pub struct TaskQuery {
    pub principal: Principal,
    pub session: Option<SessionId>,
    pub state: Option<String>,
    pub changed_after: Option<Timestamp>,
    /// Pagination cursor: only tasks after the one with this time and id.
    pub after: Option<(Timestamp, String)>,
    pub limit: usize,
}

/// A stored push notification config of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConfigRow {
    pub id: String,
    pub body: String,
}

const COLUMNS: &str = "id, principal, session, turn, state, is_over, created, updated, body";

impl SqliteStore {
    /// Stores a new task, unless its message is repeated.
    pub async fn create_task(&self, new: NewTask) -> Result<TaskCreation, SqliteStoreError> {
        self.write(move |connection| insert_task(connection, &new))
            .await
    }

    /// Updates a task. Does nothing if the task was deleted.
    pub async fn update_task(&self, row: TaskRow) -> Result<(), SqliteStoreError> {
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
    }

    /// Deletes a task that never started.
    pub async fn delete_task(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<(), SqliteStoreError> {
        let (principal, id) = (principal.clone(), id.to_owned());
        self.write(move |connection| {
            let sql = "DELETE FROM tasks WHERE id = ?1 AND principal = ?2";
            connection.execute(sql, params![id, principal.as_str()])
        })
        .await?;
        Ok(())
    }

    /// Returns a task of the principal.
    pub async fn task(
        &self,
        principal: &Principal,
        id: &str,
    ) -> Result<Option<TaskRow>, SqliteStoreError> {
        let (principal, id) = (principal.clone(), id.to_owned());
        self.read(move |connection| {
            let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1 AND principal = ?2");
            connection
                .prepare_cached(&sql)?
                .query_row(params![id, principal.as_str()], task)
                .optional()
        })
        .await
    }

    /// Returns the matching tasks, most recently changed first, and their number without the cursor
    /// and the limit.
    pub async fn tasks(&self, query: TaskQuery) -> Result<(Vec<TaskRow>, usize), SqliteStoreError> {
        self.read(move |connection| find_tasks(connection, &query))
            .await
    }

    /// Returns owner and id of the unfinished tasks of one principal, or of all.
    pub async fn open_tasks(
        &self,
        principal: Option<&Principal>,
    ) -> Result<Vec<(Principal, String)>, SqliteStoreError> {
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
    }

    /// Returns true if a turn of the session is running in any process, or if its lock cannot be
    /// checked.
    pub async fn is_turn_running(&self, principal: &Principal, session: &SessionId) -> bool {
        !matches!(
            self.locks()
                .try_lock(SessionKeyRef { session, principal })
                .await,
            Ok(Some(_))
        )
    }

    /// Adds or replaces a push config of a task. Returns false if the task already has `limit`
    /// others.
    pub async fn upsert_push_config(
        &self,
        task: &str,
        config: PushConfigRow,
        limit: usize,
    ) -> Result<bool, SqliteStoreError> {
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
    }

    pub async fn push_configs(&self, task: &str) -> Result<Vec<PushConfigRow>, SqliteStoreError> {
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
    }

    pub async fn delete_push_config(&self, task: &str, id: &str) -> Result<(), SqliteStoreError> {
        let (task, id) = (task.to_owned(), id.to_owned());
        self.write(move |connection| {
            connection.execute(
                "DELETE FROM task_listeners WHERE task = ?1 AND id = ?2",
                params![task, id],
            )
        })
        .await?;
        Ok(())
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
