//! The log of the running turn. Events are stored first and published afterwards (B71).
//!
//! A single task writes the log. A branch of the turn sends it events and waits until they are stored,
//! without holding a lock. So a branch that is dropped or not polled cannot block another branch.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lango_domain::StoreError;
use lango_domain::event::{
    Author, Branch, CallId, Event, EventBody, Grant, NewEvent, Principal, SessionId, TurnId, Update,
};
use lango_domain::redaction::redacted_event;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, TurnLock};
use lango_domain::{AgentName, Label, ToolOutputSink};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::secrets::TurnSecrets;
use crate::turn_clock::ClockAndIds;
use crate::turn_error::TurnError;

/// The log of a session, open for one turn.
pub(crate) struct TurnLog {
    pub session: SessionId,
    pub principal: Principal,
    pub turn: TurnId,
    /// Redacts everything that is stored or published.
    pub secrets: Arc<TurnSecrets>,
    store: Arc<dyn SessionStore>,
    events: Arc<RwLock<Vec<Arc<Event>>>>,
    call_ids: Mutex<HashSet<CallId>>,
    updates: UnboundedSender<Update>,
    writes: UnboundedSender<LogWrite>,
}

/// The parts that a [`TurnLog`] is opened with.
pub(crate) struct TurnLogOptions {
    pub session: SessionId,
    pub principal: Principal,
    pub secrets: TurnSecrets,
    pub store: Arc<dyn SessionStore>,
    pub clock_and_ids: ClockAndIds,
    pub updates: UnboundedSender<Update>,
    /// The part of the log that agents can read.
    pub history_window: HistoryWindow,
    /// Released after the last event is written.
    pub lock: TurnLock,
}

/// An event before it has a timestamp and a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogEntry {
    pub author: Author,
    pub branch: Branch,
    pub label: Label,
    pub body: EventBody,
}

impl LogEntry {
    /// Returns an entry of the engine itself, with a plain label.
    pub fn plain(author: Author, branch: Branch, body: EventBody) -> Self {
        Self {
            author,
            branch,
            label: Label::default(),
            body,
        }
    }
}

/// A write request for [`LogWriter`].
struct LogWrite {
    kind: WriteKind,
    done: oneshot::Sender<Result<(), StoreError>>,
}

enum WriteKind {
    Append {
        turn: TurnId,
        entries: Vec<LogEntry>,
        /// True if nothing may be written after this.
        is_last: bool,
    },
    /// Removes known values from the events that are stored already.
    Redact,
}

impl TurnLog {
    pub async fn open(options: TurnLogOptions) -> Result<Self, StoreError> {
        let TurnLogOptions {
            session,
            principal,
            secrets,
            store,
            clock_and_ids,
            updates,
            history_window,
            lock,
        } = options;
        let secrets = Arc::new(secrets);
        let key = SessionKeyRef {
            session: &session,
            principal: &principal,
        };
        let mut events = store.load(key, history_window).await?;
        redact_earlier(&*store, key, &secrets, &mut events).await?;
        let call_ids = events
            .iter()
            .filter_map(|event| call_id(event))
            .cloned()
            .collect();
        let (turn, events) = ((clock_and_ids.new_turn_id)(), Arc::new(RwLock::new(events)));
        let (writes, queue) = unbounded_channel();
        let writer = LogWriter {
            session: session.clone(),
            principal: principal.clone(),
            secrets: Arc::clone(&secrets),
            store: Arc::clone(&store),
            clock_and_ids,
            events: Arc::clone(&events),
            updates: updates.clone(),
            _lock: lock,
        };
        tokio::spawn(writer.run(queue));
        Ok(Self {
            session,
            principal,
            turn,
            secrets,
            store,
            events,
            call_ids: Mutex::new(call_ids),
            updates,
            writes,
        })
    }

    /// Stores events of this turn, then publishes them.
    pub async fn append(&self, entries: Vec<LogEntry>) -> Result<(), TurnError> {
        Ok(self.append_to_turn(&self.turn, entries).await?)
    }

    /// Stores events of a turn that may be an earlier one, then publishes them.
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

    /// Stores the last events of the turn. Tasks of the turn that still run cannot append afterwards.
    pub async fn close(&self, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        self.enqueue(&self.turn, entries, true).await
    }

    async fn enqueue(
        &self,
        turn: &TurnId,
        entries: Vec<LogEntry>,
        is_last: bool,
    ) -> Result<(), StoreError> {
        self.enqueue_write(WriteKind::Append {
            turn: turn.clone(),
            entries,
            is_last,
        })
        .await
    }

    async fn enqueue_write(&self, kind: WriteKind) -> Result<(), StoreError> {
        let (done, stored) = oneshot::channel();
        self.writes
            .send(LogWrite { kind, done })
            .map_err(|_| StoreError::Other("the turn has ended".to_owned()))?;
        stored
            .await
            .map_err(|_| StoreError::Other("the store panicked during a write".to_owned()))?
    }

    /// Reads the values to redact again. A new value is removed from the events of the session as well,
    /// since it may have been typed before it was stored (B130).
    pub async fn learn_secrets(&self) {
        match self.secrets.refresh().await {
            Ok(false) => {}
            Ok(true) => {
                // The next turn of the session tries it again.
                if let Err(error) = self.enqueue_write(WriteKind::Redact).await {
                    tracing::warn!(%error, "a new secret could not be removed from the session's log");
                }
            }
            Err(error) => tracing::warn!(%error, "the values of secrets cannot be read"),
        }
    }

    /// Publishes a piece of text that is not stored yet.
    pub fn publish_delta(&self, author: &AgentName, text: String) {
        self.send(Update::Delta {
            author: author.clone(),
            text,
        });
    }

    /// Returns the sink for the output of a running call.
    pub fn output_sink(&self, author: &AgentName, call: &CallId) -> ToolOutputSink {
        let (updates, author, call) = (self.updates.clone(), author.clone(), call.clone());
        ToolOutputSink::new(move |text| {
            let (author, call, text) = (author.clone(), call.clone(), text.to_owned());
            let _ = updates.send(Update::ToolOutputDelta { author, call, text });
        })
    }

    /// Returns the grants for a tool in this session.
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

    pub fn read<T>(&self, f: impl FnOnce(&[Arc<Event>]) -> T) -> T {
        f(&self.events.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the model's id for a call, or a new one if the id is empty or already in use: ids pair
    /// calls with results.
    pub fn unique_call_id(&self, given: &CallId) -> CallId {
        let mut call_ids = self.call_ids.lock().unwrap_or_else(PoisonError::into_inner);
        let numbered = |n: usize| CallId::new(format!("call-{n}"));
        let is_free = |id: &CallId| !id.as_str().is_empty() && !call_ids.contains(id);
        let id = if is_free(given) {
            given.clone()
        } else {
            (call_ids.len() + 1..)
                .map(numbered)
                .find(is_free)
                .unwrap_or_else(|| given.clone())
        };
        call_ids.insert(id.clone());
        id
    }

    /// Publishes an update. The receiver may be gone; the log is written anyway.
    fn send(&self, update: Update) {
        let _ = self.updates.send(update);
    }
}

/// The writer task. It holds the session's lock as long as it may write.
struct LogWriter {
    session: SessionId,
    principal: Principal,
    secrets: Arc<TurnSecrets>,
    store: Arc<dyn SessionStore>,
    clock_and_ids: ClockAndIds,
    events: Arc<RwLock<Vec<Arc<Event>>>>,
    updates: UnboundedSender<Update>,
    _lock: TurnLock,
}

impl LogWriter {
    async fn run(self, mut queue: UnboundedReceiver<LogWrite>) {
        while let Some(LogWrite { kind, done }) = queue.recv().await {
            let (written, is_last) = match kind {
                WriteKind::Append {
                    turn,
                    entries,
                    is_last,
                } => (self.append(&turn, entries).await, is_last),
                WriteKind::Redact => (self.redact().await, false),
            };
            if is_last {
                // Release the session before anyone can see that the turn has ended.
                drop(self);
                let _ = done.send(written);
                return;
            }
            let _ = done.send(written);
        }
    }

    async fn redact(&self) -> Result<(), StoreError> {
        let key = SessionKeyRef {
            session: &self.session,
            principal: &self.principal,
        };
        let changed = self.store.redact(key, &self.secrets.redactor()).await?;
        let mut events = self.events.write().unwrap_or_else(PoisonError::into_inner);
        replace_events(&mut events, changed);
        Ok(())
    }

    async fn append(&self, turn: &TurnId, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let at = (self.clock_and_ids.now)();
        let new_event = |entry: LogEntry| {
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
        let mut events: Vec<NewEvent> = entries.into_iter().map(new_event).collect();
        self.secrets.redact(&mut events[..]);
        let events = self.store.append(key, events).await?;
        // Extend the log first: a subscriber that has seen an event can find it in the log.
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

/// Removes values from the earlier turns of the session. Another session may have stored a secret since
/// then, or the process may have ended before its value was removed.
async fn redact_earlier(
    store: &dyn SessionStore,
    key: SessionKeyRef<'_>,
    secrets: &TurnSecrets,
    events: &mut [Arc<Event>],
) -> Result<(), StoreError> {
    let redactor = secrets.redactor();
    let has_value = |event: &Arc<Event>| redacted_event(event, &redactor).is_some();
    if !redactor.is_empty() && events.iter().any(has_value) {
        replace_events(events, store.redact(key, &redactor).await?);
    }
    Ok(())
}

fn replace_events(events: &mut [Arc<Event>], changed: Vec<Arc<Event>>) {
    for changed in changed {
        if let Ok(at) = events.binary_search_by_key(&changed.seq, |event| event.seq) {
            events[at] = changed;
        }
    }
}

fn call_id(event: &Event) -> Option<&CallId> {
    match &event.body {
        EventBody::ToolCall { id, .. } | EventBody::Transfer { id, .. } => Some(id),
        _ => None,
    }
}
