//! The one thread that writes. It takes everything that waits, commits it at once, and then acknowledges: the more
//! sessions write, the more of them share one flush of the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lango_domain::event::{Draft, Event, Principal, SessionId};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::error::Trouble;
use crate::file::Place;
use crate::rows;

/// So many wishes share a commit at most; those behind them wait for the next.
const MOST_AT_ONCE: usize = 512;

type Answer<T> = oneshot::Sender<Result<T, Trouble>>;
type Task = Box<dyn FnOnce(&mut Connection) + Send>;

/// What the thread is asked to do.
enum Wish {
    Append(Append),
    /// Something that is not an append and has the connection to itself.
    Task(Task),
}

struct Append {
    principal: Principal,
    session: SessionId,
    drafts: Vec<Draft>,
    answer: Answer<Vec<Arc<Event>>>,
}

/// The way to the thread; it ends when every one of these is gone.
#[derive(Clone)]
pub(crate) struct Writer {
    wishes: Sender<Wish>,
}

impl Writer {
    pub fn start(connection: Connection, place: Place) -> std::io::Result<Self> {
        let (wishes, received) = channel();
        let thread = thread::Builder::new().name("lango-store".to_owned());
        thread.spawn(move || run(connection, &place, &received))?;
        Ok(Self { wishes })
    }

    /// Returns when the events are durable.
    pub async fn append(
        &self,
        principal: Principal,
        session: SessionId,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Arc<Event>>, Trouble> {
        let (answer, answered) = oneshot::channel();
        self.send(Wish::Append(Append { principal, session, drafts, answer }), answered).await
    }

    /// Does something else on the thread.
    pub async fn run<T, Run>(&self, run: Run) -> Result<T, Trouble>
    where
        T: Send + 'static,
        Run: FnOnce(&mut Connection) -> Result<T, Trouble> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let task: Task = Box::new(move |connection| {
            let _ = answer.send(run(connection));
        });
        self.send(Wish::Task(task), answered).await
    }

    async fn send<T>(
        &self,
        wish: Wish,
        answered: oneshot::Receiver<Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let gone = || Trouble::Other("the store has stopped".to_owned());
        self.wishes.send(wish).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn run(mut connection: Connection, place: &Place, wishes: &Receiver<Wish>) {
    while let Ok(first) = wishes.recv() {
        let (mut appends, mut next) = (Vec::new(), Some(first));
        while let Some(wish) = next.take() {
            match wish {
                Wish::Append(append) => appends.push(append),
                Wish::Task(task) => {
                    commit(&mut connection, place, std::mem::take(&mut appends));
                    task(&mut connection);
                }
            }
            if appends.len() < MOST_AT_ONCE {
                next = wishes.try_recv().ok();
            }
        }
        commit(&mut connection, place, appends);
    }
}

/// One commit for all; each is acknowledged only behind it.
fn commit(connection: &mut Connection, place: &Place, appends: Vec<Append>) {
    if appends.is_empty() {
        return;
    }
    let mut answers = Vec::with_capacity(appends.len());
    let written = (|| -> rusqlite::Result<Vec<Vec<Arc<Event>>>> {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut all = Vec::with_capacity(appends.len());
        for Append { principal, session, drafts, answer } in appends {
            answers.push(answer);
            all.push(write(&change, &principal, &session, drafts)?);
        }
        change.commit()?;
        Ok(all)
    })();
    match written {
        Ok(all) => {
            for (answer, events) in answers.into_iter().zip(all) {
                let _ = answer.send(Ok(events));
            }
        }
        Err(error) => {
            let words = Trouble::of(error, place.file()).to_string();
            tracing::error!(words, "events could not be kept");
            for answer in answers {
                let _ = answer.send(Err(Trouble::Other(words.clone())));
            }
        }
    }
}

fn write(
    connection: &Connection,
    principal: &Principal,
    session: &SessionId,
    drafts: Vec<Draft>,
) -> rusqlite::Result<Vec<Arc<Event>>> {
    let Some(first) = drafts.first() else { return Ok(Vec::new()) };
    let place = match rows::find(connection, principal.as_str(), session.as_str())? {
        Some(place) => place,
        None => rows::create(connection, principal.as_str(), session.as_str(), &first.at.to_string())?,
    };
    let numbers = place.last as u64 + 1..;
    let events: Vec<Arc<Event>> =
        numbers.zip(drafts).map(|(seq, draft)| Arc::new(draft.into_event(session.clone(), seq))).collect();
    for event in &events {
        rows::insert(connection, place.id, event)?;
        rows::insert_usage(connection, principal.as_str(), event)?;
    }
    rows::touch(connection, place.id, &events)?;
    Ok(events)
}
