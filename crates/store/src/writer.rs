//! The writer thread. Each opened store has at most one: a read-only store has none, and other
//! processes (or other stores opened in this one) have their own.
//!
//! The thread commits all queued appends in one transaction, then acknowledges them, so concurrent
//! sessions share one fsync.

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

/// Maximum number of appends in one commit. The rest wait for the next one.
const MAX_BATCH_SIZE: usize = 512;

/// Maximum number of cached session rows. The cache is cleared when it grows larger.
const MAX_CACHED_SESSIONS: usize = 4_096;

type JobResponder<T> = oneshot::Sender<Result<T, StoreError>>;
type ExclusiveJob = Box<dyn FnOnce(&mut Connection) + Send>;

/// A job for the writer thread.
enum WriteJob {
    Append(AppendJob),
    /// Any other write. It runs alone on the connection.
    Exclusive(ExclusiveJob),
}

struct AppendJob {
    key: SessionKey,
    drafts: Vec<NewEvent>,
    responder: JobResponder<Vec<Arc<Event>>>,
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
        self.send(
            WriteJob::Append(AppendJob {
                key,
                drafts,
                responder,
            }),
            response,
        )
        .await
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
        let stopped = || StoreError::Other("the writer thread of the store has stopped".to_owned());
        self.jobs.send(job).map_err(|_| stopped())?;
        response.await.map_err(|_| stopped())?
    }
}

fn run(connection: Connection, location: &StoreLocation, jobs: &Receiver<WriteJob>) {
    let mut state = WriterState {
        connection,
        session_rows: HashMap::new(),
        version: 0,
    };
    while let Ok(first) = jobs.recv() {
        let (mut appends, mut next) = (Vec::new(), Some(first));
        while let Some(job) = next.take() {
            match job {
                WriteJob::Append(append) => appends.push(append),
                WriteJob::Exclusive(job) => {
                    state.commit(location, std::mem::take(&mut appends));
                    state.session_rows.clear();
                    job(&mut state.connection);
                }
            }
            if appends.len() < MAX_BATCH_SIZE {
                next = jobs.try_recv().ok();
            }
        }
        state.commit(location, appends);
    }
}

type AppendedEvents = Result<Vec<Arc<Event>>, StoreError>;

/// The writer's connection and its cache of session rows.
struct WriterState {
    connection: Connection,
    /// Rows of sessions that were written to. Valid until another connection writes to the file.
    session_rows: HashMap<SessionKey, event_rows::SessionRow>,
    /// SQLite's `data_version`, which changes when another connection commits.
    version: i64,
}

impl WriterState {
    /// Commits the appends in one transaction, then acknowledges each of them. An append that fails
    /// does not affect the others.
    fn commit(&mut self, file: &StoreLocation, appends: Vec<AppendJob>) {
        if appends.is_empty() {
            return;
        }
        let (jobs, responders): (Vec<_>, Vec<_>) = appends
            .into_iter()
            .map(
                |AppendJob {
                     key,
                     drafts,
                     responder,
                 }| ((key, drafts), responder),
            )
            .unzip();
        let written = self.append_all(jobs, file).unwrap_or_else(|error| {
            self.session_rows.clear();
            let reason = sqlite_error(error, file.path()).to_string();
            tracing::error!(reason, "events could not be stored");
            responders
                .iter()
                .map(|_| Err(StoreError::Other(reason.clone())))
                .collect()
        });
        for (responder, events) in responders.into_iter().zip(written) {
            let _ = responder.send(events);
        }
    }

    fn append_all(
        &mut self,
        jobs: Vec<(SessionKey, Vec<NewEvent>)>,
        file: &StoreLocation,
    ) -> rusqlite::Result<Vec<AppendedEvents>> {
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
        let mut results = Vec::with_capacity(jobs.len());
        for (key, drafts) in jobs {
            let savepoint = transaction.savepoint()?;
            match append_events(&savepoint, &mut self.session_rows, &key, drafts) {
                Ok(events) => {
                    savepoint.commit()?;
                    results.push(Ok(events));
                }
                Err(error) => {
                    // SQLite rolls back the whole transaction when the disk is full.
                    if savepoint.is_autocommit() {
                        return Err(error);
                    }
                    // Dropping the savepoint rolls it back.
                    drop(savepoint);
                    self.session_rows.remove(&key);
                    results.push(Err(sqlite_error(error, file.path())));
                }
            }
        }
        transaction.commit()?;
        Ok(results)
    }
}

fn append_events(
    connection: &Connection,
    session_rows: &mut HashMap<SessionKey, event_rows::SessionRow>,
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
