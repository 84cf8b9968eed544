//! The writer thread. Each opened store has at most one: a read-only store has none, and other
//! processes (or other stores opened in this one) have their own.
//!
//! The thread commits all queued appends and small writes in one transaction, then acknowledges them, so
//! concurrent sessions and runs share one fsync.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lango_domain::StoreError;
use lango_domain::event::{Event, NewEvent};
use lango_domain::session::SessionKey;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::database::StoreLocation;
use crate::error::sqlite_error;

use crate::event_rows;

/// Maximum number of writes in one commit. The rest wait for the next one.
const MAX_BATCH_SIZE: usize = 512;

/// Maximum number of cached session rows. The cache is cleared when it grows larger.
const MAX_CACHED_SESSIONS: usize = 4_096;

type JobResponder<T> = oneshot::Sender<Result<T, StoreError>>;
type ExclusiveJob = Box<dyn FnOnce(&mut Connection) + Send>;

type SessionRows = HashMap<SessionKey, event_rows::SessionRow>;

/// A job for the writer thread.
enum WriteJob {
    /// A write that shares its transaction with others.
    Batched(Box<dyn BatchedWrite>),
    /// Any other write. It runs alone on the connection.
    Exclusive(ExclusiveJob),
}

/// A write in a savepoint of a shared transaction. If it fails, it is rolled back alone.
trait BatchedWrite: Send {
    fn run(&mut self, connection: &Connection, rows: &mut SessionRows) -> Result<(), WriteError>;

    /// Replaces the result, because the write was rolled back.
    fn fail(&mut self, error: StoreError);

    /// Reports the result. Called after the commit.
    fn acknowledge(self: Box<Self>);
}

/// The error of a batched write: one of SQLite, or the reason why the write was refused.
pub(crate) enum WriteError {
    Sqlite(rusqlite::Error),
    Refused(StoreError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

struct AppendJob {
    key: SessionKey,
    drafts: Vec<NewEvent>,
    appended: Result<Vec<Arc<Event>>, StoreError>,
    responder: JobResponder<Vec<Arc<Event>>>,
}

impl BatchedWrite for AppendJob {
    fn run(&mut self, connection: &Connection, rows: &mut SessionRows) -> Result<(), WriteError> {
        let drafts = std::mem::take(&mut self.drafts);
        let appended = append_events(connection, rows, &self.key, drafts).inspect_err(|_| {
            rows.remove(&self.key);
        })?;
        self.appended = Ok(appended);
        Ok(())
    }

    fn fail(&mut self, error: StoreError) {
        self.appended = Err(error);
    }

    fn acknowledge(self: Box<Self>) {
        let _ = self.responder.send(self.appended);
    }
}

struct SmallWrite<T, Run> {
    run: Option<Run>,
    value: Result<T, StoreError>,
    responder: JobResponder<T>,
}

impl<T, Run> BatchedWrite for SmallWrite<T, Run>
where
    T: Send,
    Run: FnOnce(&Connection) -> Result<T, WriteError> + Send,
{
    fn run(&mut self, connection: &Connection, _: &mut SessionRows) -> Result<(), WriteError> {
        if let Some(run) = self.run.take() {
            self.value = Ok(run(connection)?);
        }
        Ok(())
    }

    fn fail(&mut self, error: StoreError) {
        self.value = Err(error);
    }

    fn acknowledge(self: Box<Self>) {
        let _ = self.responder.send(self.value);
    }
}

/// A handle to the writer thread. The thread ends when the last handle is dropped.
#[derive(Clone)]
pub(crate) struct StoreWriter {
    jobs: Sender<WriteJob>,
}

impl StoreWriter {
    pub fn start(connection: Connection, location: StoreLocation) -> std::io::Result<Self> {
        let (jobs, receiver) = channel();
        let thread = thread::Builder::new().name("lango-store".to_owned());
        thread.spawn(move || run(connection, &location, &receiver))?;
        Ok(Self { jobs })
    }

    /// Appends events and returns them once they are durable.
    pub async fn append(
        &self,
        key: SessionKey,
        drafts: Vec<NewEvent>,
    ) -> Result<Vec<Arc<Event>>, StoreError> {
        let (responder, response) = oneshot::channel();
        let job = AppendJob {
            key,
            drafts,
            appended: Ok(Vec::new()),
            responder,
        };
        self.send(WriteJob::Batched(Box::new(job)), response).await
    }

    /// Runs a small write in a transaction that it shares with others. Returns once it is durable. The
    /// write must not end the transaction.
    pub async fn batch<T, Run>(&self, run: Run) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Run: FnOnce(&Connection) -> Result<T, WriteError> + Send + 'static,
    {
        let (responder, response) = oneshot::channel();
        let job = SmallWrite {
            run: Some(run),
            value: Err(stopped()),
            responder,
        };
        self.send(WriteJob::Batched(Box::new(job)), response).await
    }

    /// Runs a closure on the writer thread.
    pub async fn run<T, Run>(&self, run: Run) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Run: FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (responder, response) = oneshot::channel();
        let job: ExclusiveJob = Box::new(move |connection| {
            let _ = responder.send(run(connection));
        });
        self.send(WriteJob::Exclusive(job), response).await
    }

    async fn send<T>(
        &self,
        job: WriteJob,
        response: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.jobs.send(job).map_err(|_| stopped())?;
        response.await.map_err(|_| stopped())?
    }
}

fn stopped() -> StoreError {
    StoreError::Other("the writer thread of the store has stopped".to_owned())
}

fn run(connection: Connection, location: &StoreLocation, jobs: &Receiver<WriteJob>) {
    let mut state = WriterState {
        connection,
        session_rows: HashMap::new(),
        version: 0,
    };
    while let Ok(first) = jobs.recv() {
        let (mut batch, mut next) = (Vec::new(), Some(first));
        while let Some(job) = next.take() {
            match job {
                WriteJob::Batched(write) => batch.push(write),
                WriteJob::Exclusive(job) => {
                    state.commit(location, std::mem::take(&mut batch));
                    state.session_rows.clear();
                    job(&mut state.connection);
                }
            }
            if batch.len() < MAX_BATCH_SIZE {
                next = jobs.try_recv().ok();
            }
        }
        state.commit(location, batch);
    }
}

/// The writer's connection and its cache of session rows.
struct WriterState {
    connection: Connection,
    /// Rows of sessions that were written to. Valid until another connection writes to the file.
    session_rows: SessionRows,
    /// SQLite's `data_version`, which changes when another connection commits.
    version: i64,
}

impl WriterState {
    /// Commits the writes in one transaction, then acknowledges each of them. A write that fails does
    /// not affect the others.
    fn commit(&mut self, file: &StoreLocation, mut batch: Vec<Box<dyn BatchedWrite>>) {
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.run_all(&mut batch, file) {
            self.session_rows.clear();
            let reason = sqlite_error(error, file.path()).to_string();
            tracing::error!(reason, "data could not be stored");
            for write in &mut batch {
                write.fail(StoreError::Other(reason.clone()));
            }
        }
        batch.into_iter().for_each(|write| write.acknowledge());
    }

    fn run_all(
        &mut self,
        batch: &mut [Box<dyn BatchedWrite>],
        file: &StoreLocation,
    ) -> rusqlite::Result<()> {
        let mut transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 = transaction
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        if version != self.version || self.session_rows.len() > MAX_CACHED_SESSIONS {
            self.session_rows.clear();
            self.version = version;
        }
        for write in batch {
            let savepoint = transaction.savepoint()?;
            match write.run(&savepoint, &mut self.session_rows) {
                Ok(()) => savepoint.commit()?,
                // Dropping the savepoint rolls it back.
                Err(WriteError::Refused(error)) => write.fail(error),
                Err(WriteError::Sqlite(error)) => {
                    // SQLite rolls back the whole transaction when the disk is full.
                    if savepoint.is_autocommit() {
                        return Err(error);
                    }
                    write.fail(sqlite_error(error, file.path()));
                }
            }
        }
        transaction.commit()
    }
}

fn append_events(
    connection: &Connection,
    session_rows: &mut SessionRows,
    key: &SessionKey,
    drafts: Vec<NewEvent>,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let Some(first) = drafts.first() else {
        return Ok(Vec::new());
    };
    let SessionKey { session, principal } = key;
    let session_row = match session_rows.get(key) {
        Some(session_row) => *session_row,
        None => match event_rows::find_session(connection, principal.as_str(), session.as_str())? {
            Some(session_row) => session_row,
            None => event_rows::create_session(
                connection,
                principal.as_str(),
                session.as_str(),
                &event_rows::sortable_time(first.at),
            )?,
        },
    };
    let numbers = session_row.last + 1..;
    let events: Vec<Arc<Event>> = numbers
        .zip(drafts)
        .map(|(seq, draft)| Arc::new(draft.into_event(session.clone(), seq)))
        .collect();
    for event in &events {
        event_rows::insert_event(connection, session_row.id, event)?;
    }
    event_rows::update_session(connection, session_row.id, &events)?;
    let last = session_row.last + events.len() as u64;
    session_rows.insert(
        key.clone(),
        event_rows::SessionRow {
            last,
            ..session_row
        },
    );
    Ok(events)
}
