//! The one thread that writes. It takes everything that waits, commits it at once, and then acknowledges: the more
//! sessions write, the more of them share one flush of the disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lango_domain::event::{Event, NewEvent};
use lango_domain::session::SessionKey;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::database::StoreLocation;
use crate::error::SqliteStoreError;
use crate::event_rows;

/// So many wishes share a commit at most; those behind them wait for the next.
const MAX_AT_ONCE: usize = 512;

/// More sessions than this are forgotten and looked up again.
const MAX_KNOWN: usize = 4_096;

type JobResponder<T> = oneshot::Sender<Result<T, SqliteStoreError>>;
type ExclusiveJob = Box<dyn FnOnce(&mut Connection) + Send>;

/// What the thread is asked to do.
enum WriteJob {
    Append(AppendJob),
    /// Something that is not an append and has the connection to itself.
    Exclusive(ExclusiveJob),
}

struct AppendJob {
    key: SessionKey,
    drafts: Vec<NewEvent>,
    responder: JobResponder<Vec<Arc<Event>>>,
}

/// The way to the thread; it ends when every one of these is gone.
#[derive(Clone)]
pub(crate) struct StoreWriter {
    jobs: Sender<WriteJob>,
}

impl StoreWriter {
    pub fn start(connection: Connection, place: StoreLocation) -> std::io::Result<Self> {
        let (wishes, received) = channel();
        let thread = thread::Builder::new().name("lango-store".to_owned());
        thread.spawn(move || run(connection, &place, &received))?;
        Ok(Self { jobs: wishes })
    }

    /// Returns when the events are durable.
    pub async fn append(
        &self,
        key: SessionKey,
        drafts: Vec<NewEvent>,
    ) -> Result<Vec<Arc<Event>>, SqliteStoreError> {
        let (answer, answered) = oneshot::channel();
        self.send(
            WriteJob::Append(AppendJob {
                key,
                drafts,
                responder: answer,
            }),
            answered,
        )
        .await
    }

    /// Does something else on the thread.
    pub async fn run<T, Run>(&self, run: Run) -> Result<T, SqliteStoreError>
    where
        T: Send + 'static,
        Run: FnOnce(&mut Connection) -> Result<T, SqliteStoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let task: ExclusiveJob = Box::new(move |connection| {
            let _ = answer.send(run(connection));
        });
        self.send(WriteJob::Exclusive(task), answered).await
    }

    async fn send<T>(
        &self,
        wish: WriteJob,
        answered: oneshot::Receiver<Result<T, SqliteStoreError>>,
    ) -> Result<T, SqliteStoreError> {
        let gone = || SqliteStoreError::Other("the store has stopped".to_owned());
        self.jobs.send(wish).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn run(connection: Connection, place: &StoreLocation, wishes: &Receiver<WriteJob>) {
    let mut desk = WriterState {
        connection,
        session_rows: HashMap::new(),
        version: 0,
    };
    while let Ok(first) = wishes.recv() {
        let (mut appends, mut next) = (Vec::new(), Some(first));
        while let Some(wish) = next.take() {
            match wish {
                WriteJob::Append(append) => appends.push(append),
                WriteJob::Exclusive(task) => {
                    desk.commit(place, std::mem::take(&mut appends));
                    desk.session_rows.clear();
                    task(&mut desk.connection);
                }
            }
            if appends.len() < MAX_AT_ONCE {
                next = wishes.try_recv().ok();
            }
        }
        desk.commit(place, appends);
    }
}

type AppendedEvents = Result<Vec<Arc<Event>>, SqliteStoreError>;

/// The connection, and what it need not look up again.
struct WriterState {
    connection: Connection,
    /// Sessions that were written to; true for as long as nobody else writes to the file.
    session_rows: HashMap<SessionKey, event_rows::SessionRow>,
    /// SQLite's number for what others wrote.
    version: i64,
}

impl WriterState {
    /// One commit for all; each is acknowledged only behind it. One that cannot be written does not take others along.
    fn commit(&mut self, file: &StoreLocation, appends: Vec<AppendJob>) {
        if appends.is_empty() {
            return;
        }
        let (wishes, answers): (Vec<_>, Vec<_>) = appends
            .into_iter()
            .map(
                |AppendJob {
                     key,
                     drafts,
                     responder: answer,
                 }| ((key, drafts), answer),
            )
            .unzip();
        let written = self.append_all(wishes, file).unwrap_or_else(|error| {
            self.session_rows.clear();
            let words = SqliteStoreError::from_sqlite(error, file.path()).to_string();
            tracing::error!(words, "events could not be kept");
            answers
                .iter()
                .map(|_| Err(SqliteStoreError::Other(words.clone())))
                .collect()
        });
        for (answer, events) in answers.into_iter().zip(written) {
            let _ = answer.send(events);
        }
    }

    fn append_all(
        &mut self,
        wishes: Vec<(SessionKey, Vec<NewEvent>)>,
        file: &StoreLocation,
    ) -> rusqlite::Result<Vec<AppendedEvents>> {
        let mut change = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 = change
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        if version != self.version || self.session_rows.len() > MAX_KNOWN {
            self.session_rows.clear();
            self.version = version;
        }
        let mut all = Vec::with_capacity(wishes.len());
        for (key, drafts) in wishes {
            let step = change.savepoint()?;
            match append_events(&step, &mut self.session_rows, &key, drafts) {
                Ok(events) => {
                    step.commit()?;
                    all.push(Ok(events));
                }
                Err(error) => {
                    // A full disk takes the whole change back by itself.
                    if step.is_autocommit() {
                        return Err(error);
                    }
                    // Dropping the step takes back what it did.
                    drop(step);
                    self.session_rows.remove(&key);
                    all.push(Err(SqliteStoreError::from_sqlite(error, file.path())));
                }
            }
        }
        change.commit()?;
        Ok(all)
    }
}

fn append_events(
    connection: &Connection,
    known: &mut HashMap<SessionKey, event_rows::SessionRow>,
    key: &SessionKey,
    drafts: Vec<NewEvent>,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let Some(first) = drafts.first() else {
        return Ok(Vec::new());
    };
    let SessionKey { session, principal } = key;
    let place = match known.get(key) {
        Some(place) => *place,
        None => match event_rows::find_session(connection, principal.as_str(), session.as_str())? {
            Some(place) => place,
            None => event_rows::create_session(
                connection,
                principal.as_str(),
                session.as_str(),
                &event_rows::sortable_time(first.at),
            )?,
        },
    };
    let numbers = place.last + 1..;
    let events: Vec<Arc<Event>> = numbers
        .zip(drafts)
        .map(|(seq, draft)| Arc::new(draft.into_event(session.clone(), seq)))
        .collect();
    for event in &events {
        event_rows::insert_event(connection, place.id, event)?;
    }
    event_rows::update_session(connection, place.id, &events)?;
    let last = place.last + events.len() as u64;
    known.insert(key.clone(), event_rows::SessionRow { last, ..place });
    Ok(events)
}
