//! The log of the running turn: stored, then shown (B71).
//!
//! One task writes it. A branch of the turn hands over what happened and waits for the receipt; it holds no lock
//! meanwhile. So a branch that is dropped, or is not polled for a while, cannot keep another branch from writing.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lango_domain::event::{
    Author, Branch, CallId, Event, EventBody, Grant, NewEvent, Principal, SessionId, TurnId, Update,
};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError, TurnLock};
use lango_domain::{AgentName, Label, ToolOutputSink};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::runner::ClockAndIds;
use crate::turn_error::TurnError;

pub(crate) struct TurnLog {
    pub session: SessionId,
    pub principal: Principal,
    pub turn: TurnId,
    store: Arc<dyn SessionStore>,
    events: Arc<RwLock<Vec<Arc<Event>>>>,
    call_ids: Mutex<HashSet<CallId>>,
    updates: UnboundedSender<Update>,
    writes: UnboundedSender<LogWrite>,
}

/// What a record is opened for.
pub(crate) struct TurnLogOptions {
    pub session: SessionId,
    pub principal: Principal,
    pub store: Arc<dyn SessionStore>,
    pub clock_and_ids: ClockAndIds,
    pub updates: UnboundedSender<Update>,
    /// How much of the log any agent can read.
    pub history_window: HistoryWindow,
    /// Released when the last event is written.
    pub lock: TurnLock,
}

/// An event before it has a time and a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogEntry {
    pub author: Author,
    pub branch: Branch,
    pub label: Label,
    pub body: EventBody,
}

impl LogEntry {
    /// Something that the engine itself says.
    pub fn plain(author: Author, branch: Branch, body: EventBody) -> Self {
        Self {
            author,
            branch,
            label: Label::default(),
            body,
        }
    }
}

/// Events for the task that writes, and where it reports that they are durable.
struct LogWrite {
    turn: TurnId,
    entries: Vec<LogEntry>,
    /// Nothing is written after this one.
    is_last: bool,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl TurnLog {
    pub async fn open(opening: TurnLogOptions) -> Result<Self, StoreError> {
        let TurnLogOptions {
            session,
            principal,
            store,
            clock_and_ids: surroundings,
            updates,
            history_window: reach,
            lock,
        } = opening;
        let log = store
            .load(
                SessionKeyRef {
                    session: &session,
                    principal: &principal,
                },
                reach,
            )
            .await?;
        let calls = log
            .iter()
            .filter_map(|event| call_id(event))
            .cloned()
            .collect();
        let (turn, log) = ((surroundings.new_turn_id)(), Arc::new(RwLock::new(log)));
        let (jobs, waiting) = unbounded_channel();
        let writer = LogWriter {
            session: session.clone(),
            principal: principal.clone(),
            store: Arc::clone(&store),
            clock_and_ids: surroundings,
            events: Arc::clone(&log),
            updates: updates.clone(),
            _lock: lock,
        };
        tokio::spawn(writer.run(waiting));
        Ok(Self {
            session,
            principal,
            turn,
            store,
            events: log,
            call_ids: Mutex::new(calls),
            updates,
            writes: jobs,
        })
    }

    /// Stores what happened, then shows it.
    pub async fn append(&self, entries: Vec<LogEntry>) -> Result<(), TurnError> {
        Ok(self.append_to_turn(&self.turn, entries).await?)
    }

    /// The same for a turn that may be another one.
    pub async fn append_to_turn(
        &self,
        turn: &TurnId,
        entries: Vec<LogEntry>,
    ) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.enqueue(turn, entries, false).await
    }

    /// Stores the last events of the turn. Whatever still runs for it can write nothing afterwards.
    pub async fn close(&self, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        self.enqueue(&self.turn, entries, true).await
    }

    async fn enqueue(
        &self,
        turn: &TurnId,
        entries: Vec<LogEntry>,
        is_last: bool,
    ) -> Result<(), StoreError> {
        let (done, receipt) = oneshot::channel();
        let job = LogWrite {
            turn: turn.clone(),
            entries,
            is_last,
            done,
        };
        self.writes
            .send(job)
            .map_err(|_| StoreError("the turn has ended".to_owned()))?;
        receipt
            .await
            .map_err(|_| StoreError("the store broke while it wrote".to_owned()))?
    }

    /// Shows text that may still change.
    pub fn publish_delta(&self, author: &AgentName, text: String) {
        self.send(Update::Delta {
            author: author.clone(),
            text,
        });
    }

    /// Where a call shows what it prints.
    pub fn output_sink(&self, author: &AgentName, call: &CallId) -> ToolOutputSink {
        let (updates, author, call) = (self.updates.clone(), author.clone(), call.clone());
        ToolOutputSink::new(move |text| {
            let (author, call, text) = (author.clone(), call.clone(), text.to_owned());
            let _ = updates.send(Update::ToolOutputDelta { author, call, text });
        })
    }

    /// The permissions for a tool's calls that hold for the rest of the session.
    pub async fn grants(&self, tool: &str) -> Result<Vec<Grant>, StoreError> {
        self.store
            .grants(
                SessionKeyRef {
                    session: &self.session,
                    principal: &self.principal,
                },
                tool,
            )
            .await
    }

    pub fn read<T>(&self, look: impl FnOnce(&[Arc<Event>]) -> T) -> T {
        look(&self.events.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The id that the model gave, unless it gave none or gave it before: ids pair calls with results.
    pub fn unique_call_id(&self, given: &CallId) -> CallId {
        let mut calls = self.call_ids.lock().unwrap_or_else(PoisonError::into_inner);
        let made_up = |n: usize| CallId::new(format!("call-{n}"));
        let is_free = |id: &CallId| !id.as_str().is_empty() && !calls.contains(id);
        let id = if is_free(given) {
            given.clone()
        } else {
            (calls.len() + 1..)
                .map(made_up)
                .find(is_free)
                .unwrap_or_else(|| given.clone())
        };
        calls.insert(id.clone());
        id
    }

    /// Whoever listened may have left; the log is kept all the same.
    fn send(&self, update: Update) {
        let _ = self.updates.send(update);
    }
}

/// The task that writes. It holds the session's lock for as long as it may still write.
struct LogWriter {
    session: SessionId,
    principal: Principal,
    store: Arc<dyn SessionStore>,
    clock_and_ids: ClockAndIds,
    events: Arc<RwLock<Vec<Arc<Event>>>>,
    updates: UnboundedSender<Update>,
    _lock: TurnLock,
}

impl LogWriter {
    async fn run(self, mut jobs: UnboundedReceiver<LogWrite>) {
        while let Some(LogWrite {
            turn,
            entries,
            is_last,
            done,
        }) = jobs.recv().await
        {
            let written = self.append(&turn, entries).await;
            if is_last {
                // The session is free before anyone learns that the turn has ended.
                drop(self);
                let _ = done.send(written);
                return;
            }
            let _ = done.send(written);
        }
    }

    async fn append(&self, turn: &TurnId, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let at = (self.clock_and_ids.now)();
        let draft = |entry: LogEntry| {
            let LogEntry {
                author,
                branch,
                label,
                body,
            } = entry;
            NewEvent {
                turn: turn.clone(),
                author,
                branch,
                at,
                label,
                body,
            }
        };
        let key = SessionKeyRef {
            session: &self.session,
            principal: &self.principal,
        };
        let events = self
            .store
            .append(key, entries.into_iter().map(draft).collect())
            .await?;
        // A reader that has seen an event finds it in the log.
        self.events
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(events.iter().cloned());
        for event in events {
            let _ = self.updates.send(Update::Event(event));
        }
        Ok(())
    }
}

fn call_id(event: &Event) -> Option<&CallId> {
    match &event.body {
        EventBody::ToolCall { id, .. } | EventBody::Transfer { id, .. } => Some(id),
        _ => None,
    }
}
