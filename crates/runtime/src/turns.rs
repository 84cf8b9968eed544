//! Turns: their specification, and the task of each, which can outlive the client that started it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::stream::Stream;
use lango_domain::AgentName;
use lango_domain::event::Update;
use lango_domain::session::SessionKey;
use lango_engine::{Runner, TurnPermission, TurnRequest, TurnStream};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;

use crate::runtime::Runtime;
use crate::turn_limit::TurnPermit;
use crate::turn_meter::TurnMeter;

/// The specification of a turn.
#[derive(Clone, Debug)]
pub struct TurnSpec {
    pub input: TurnInput,
    pub target: TurnTarget,
    pub on_disconnect: OnDisconnect,
    /// The permission of this turn alone. The default leaves everything to the settings.
    pub permission: TurnPermission,
    /// Runs the turn instead of the runtime's team, such as one for another workspace.
    pub runner: Option<Runner>,
}

impl TurnSpec {
    /// A request to the team. A disconnect cancels the turn.
    pub fn request(request: TurnRequest) -> Self {
        Self::new(TurnInput::Request(request))
    }

    /// The rest of a session's suspended turn. A disconnect cancels it.
    pub fn resume(session: SessionKey) -> Self {
        Self::new(TurnInput::Resume(session))
    }

    pub fn new(input: TurnInput) -> Self {
        Self {
            input,
            target: TurnTarget::Team,
            on_disconnect: OnDisconnect::Cancel,
            permission: TurnPermission::default(),
            runner: None,
        }
    }
}

/// The recipient of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnTarget {
    Team,
    /// A single agent without the rest of the team.
    Agent(AgentName),
    /// One tool call, without a language model.
    Call {
        tool: String,
        arguments: Value,
    },
}

/// The input that starts a turn.
#[derive(Clone, Debug)]
pub enum TurnInput {
    Request(TurnRequest),
    /// Resumes the session's suspended turn (B73).
    Resume(SessionKey),
}

impl TurnInput {
    /// Returns the session of the turn.
    pub fn session_key(&self) -> SessionKey {
        match self {
            Self::Request(request) => SessionKey {
                session: request.session.clone(),
                principal: request.principal.clone(),
            },
            Self::Resume(session) => session.clone(),
        }
    }
}

/// The effect of a client disconnect on its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisconnect {
    Cancel,
    Continue,
    /// The turn stops without an end in its log, so that it can be resumed.
    Suspend,
}

/// The stream of a turn's updates. Dropping it counts as a disconnect.
pub struct TurnHandle {
    pub(crate) updates: UnboundedReceiver<Update>,
    pub(crate) cancel: CancellationToken,
}

impl TurnHandle {
    /// Cancels this turn, but no other turn of its session.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl Stream for TurnHandle {
    type Item = Update;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        self.updates.poll_recv(context)
    }
}

/// The running and queued turns by session.
#[derive(Default)]
pub(crate) struct RunningTurns {
    turns: Mutex<RunningTurnsInner>,
}

#[derive(Default)]
struct RunningTurnsInner {
    /// Number of turns inserted so far.
    count: u64,
    by_session: HashMap<SessionKey, Vec<RunningTurn>>,
}

struct RunningTurn {
    number: u64,
    cancel: CancellationToken,
    /// False while the turn waits for another turn of its session.
    has_started: bool,
}

impl RunningTurns {
    pub fn insert(&self, key: &SessionKey) -> (u64, CancellationToken) {
        let mut turns = self.turns();
        turns.count += 1;
        let (number, cancel) = (turns.count, CancellationToken::new());
        let entry = RunningTurn {
            number,
            cancel: cancel.clone(),
            has_started: false,
        };
        turns.by_session.entry(key.clone()).or_default().push(entry);
        (number, cancel)
    }

    fn mark_started(&self, key: &SessionKey, number: u64) {
        let mut turns = self.turns();
        let entries = turns.by_session.get_mut(key).into_iter().flatten();
        entries
            .filter(|entry| entry.number == number)
            .for_each(|entry| entry.has_started = true);
    }

    fn remove(&self, key: &SessionKey, number: u64) {
        let mut turns = self.turns();
        if let Some(entries) = turns.by_session.get_mut(key) {
            entries.retain(|entry| entry.number != number);
            if entries.is_empty() {
                turns.by_session.remove(key);
            }
        }
    }

    pub fn cancel(&self, key: &SessionKey) -> bool {
        let turns = self.turns();
        let Some(entries) = turns.by_session.get(key) else {
            return false;
        };
        // If none has started yet, the first one is next in line.
        let running = entries
            .iter()
            .find(|entry| entry.has_started)
            .or(entries.first());
        running.into_iter().for_each(|entry| entry.cancel.cancel());
        true
    }

    pub fn contains(&self, key: &SessionKey) -> bool {
        self.turns().by_session.contains_key(key)
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, RunningTurnsInner> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs one turn to its end.
pub(crate) struct TurnTask {
    pub runtime: Runtime,
    pub key: SessionKey,
    pub number: u64,
    pub cancel: CancellationToken,
    pub on_disconnect: OnDisconnect,
    /// Dropped before the sender, so that a client that has seen the end can start the next turn.
    #[expect(dead_code, reason = "held for its drop alone")]
    pub permit: TurnPermit,
    pub sender: UnboundedSender<Update>,
}

impl TurnTask {
    pub async fn run(self, mut stream: TurnStream) {
        let mut meter = TurnMeter::default();
        let (mut has_started, mut is_disconnected, mut is_stopped) = (false, false, false);
        loop {
            tokio::select! {
                biased;
                update = stream.next() => match update {
                    Some(update) => {
                        if !std::mem::replace(&mut has_started, true) {
                            self.runtime.running_turns().mark_started(&self.key, self.number);
                        }
                        meter.observe(&update);
                        self.runtime.subscribers().publish(&self.key, &update);
                        let _ = self.sender.send(update);
                    }
                    None => break,
                },
                () = self.sender.closed(), if !is_disconnected => {
                    is_disconnected = true;
                    match self.on_disconnect {
                        OnDisconnect::Cancel => stream.cancel(),
                        OnDisconnect::Suspend => stream.suspend(),
                        OnDisconnect::Continue => {}
                    }
                }
                () = self.cancel.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    stream.cancel();
                }
                () = self.runtime.suspend_turns().cancelled(), if !is_stopped => {
                    is_stopped = true;
                    stream.suspend();
                }
            }
        }
        self.runtime.record_turn(&meter);
    }
}

impl Drop for TurnTask {
    fn drop(&mut self) {
        self.runtime.running_turns().remove(&self.key, self.number);
    }
}
