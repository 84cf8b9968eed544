//! One way to run a turn for whoever comes in over HTTP. A task of its own carries each turn to its end, so that it does
//! not depend on a connection unless it is to.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::http::StatusCode;
use futures::StreamExt;
use futures::stream::Stream;
use lango_domain::AgentName;
use lango_domain::event::{Principal, SessionId, Update};
use lango_domain::session::SessionKey;
use lango_engine::{Runner, TurnRequest, TurnStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::metrics::TurnMeter;
use crate::rate_limit::TurnPermit;

/// A turn that somebody wants.
#[derive(Clone, Debug)]
pub struct TurnSpec {
    pub principal: Principal,
    pub session: SessionId,
    pub target: TurnTarget,
    pub input: TurnInput,
    pub on_disconnect: OnDisconnect,
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnTarget {
    Team,
    /// One agent of it alone.
    Agent(AgentName),
}

/// What the turn begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnInput {
    Request(String),
    /// Where an earlier turn was stopped (B73).
    Resume,
}

/// What becomes of the turn when nobody reads it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisconnect {
    Cancel,
    Continue,
}

/// The updates of a turn, for whoever asked for it.
pub struct TurnHandle {
    updates: UnboundedReceiver<Update>,
    cancel: CancellationToken,
}

impl TurnHandle {
    /// Ends this turn, and no other of its session.
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

impl Gateway {
    /// Starts a turn, if there is a place for it. Dropping what it gives is leaving.
    pub fn start_turn(&self, wish: TurnSpec) -> Result<TurnHandle, ApiError> {
        if self.shutdown_started().is_cancelled() {
            return Err(ApiError::shutting_down());
        }
        let runner = self.runner_for(&wish.target)?;
        let slot = self.rate_limiter().acquire_turn(&wish.principal)?;
        let TurnSpec {
            principal,
            session,
            input: begin,
            on_disconnect: leaving,
            ..
        } = wish;
        let thread = SessionKey {
            principal: principal.clone(),
            session: session.clone(),
        };
        let stream = match begin {
            TurnInput::Request(text) => {
                runner.run(TurnRequest::from_user(session, principal, text))
            }
            TurnInput::Resume => runner.resume(session, principal),
        };
        let (to, updates) = unbounded_channel();
        let (number, cancel) = self.running_turns().insert(&thread);
        let attached = TurnHandle {
            updates,
            cancel: cancel.clone(),
        };
        let pump = TurnTask {
            gateway: self.clone(),
            key: thread,
            number,
            cancel,
            on_disconnect: leaving,
            sender: to,
            _permit: slot,
        };
        self.turn_tasks().spawn(pump.run(stream));
        Ok(attached)
    }

    fn runner_for(&self, to: &TurnTarget) -> Result<Runner, ApiError> {
        let team = self.team();
        match to {
            TurnTarget::Team => Ok(team.runner.clone()),
            TurnTarget::Agent(agent) => team.runner.single_agent(agent.as_str()).ok_or_else(|| {
                let names: Vec<&str> = team
                    .specialists()
                    .map(|agent| agent.name.as_str())
                    .collect();
                ApiError::new(
                    StatusCode::NOT_FOUND,
                    "model_not_found",
                    format!("there is no agent `{agent}` that could be asked alone"),
                    format!("there are {}", names.join(", ")),
                )
            }),
        }
    }

    /// Ends the running turn of a session, and none that waits behind it; whether there was one.
    pub fn cancel_turn(&self, principal: &Principal, session: &SessionId) -> bool {
        self.running_turns().cancel(&SessionKey {
            principal: principal.clone(),
            session: session.clone(),
        })
    }
}

/// Turns that run at this moment, by session.
#[derive(Default)]
pub(crate) struct RunningTurns {
    turns: Mutex<RunningTurnsInner>,
}

#[derive(Default)]
struct RunningTurnsInner {
    /// How many turns were entered so far.
    count: u64,
    by_session: HashMap<SessionKey, Vec<RunningTurn>>,
}

struct RunningTurn {
    number: u64,
    cancel: CancellationToken,
    /// Turns of one session wait for each other.
    has_started: bool,
}

impl RunningTurns {
    fn insert(&self, thread: &SessionKey) -> (u64, CancellationToken) {
        let mut turns = self.turns();
        turns.count += 1;
        let (number, cancel) = (turns.count, CancellationToken::new());
        let entry = RunningTurn {
            number,
            cancel: cancel.clone(),
            has_started: false,
        };
        turns
            .by_session
            .entry(thread.clone())
            .or_default()
            .push(entry);
        (number, cancel)
    }

    fn mark_started(&self, thread: &SessionKey, number: u64) {
        let mut turns = self.turns();
        let of = turns.by_session.get_mut(thread).into_iter().flatten();
        of.filter(|entry| entry.number == number)
            .for_each(|entry| entry.has_started = true);
    }

    fn remove(&self, thread: &SessionKey, number: u64) {
        let mut turns = self.turns();
        if let Some(of) = turns.by_session.get_mut(thread) {
            of.retain(|entry| entry.number != number);
            if of.is_empty() {
                turns.by_session.remove(thread);
            }
        }
    }

    fn cancel(&self, thread: &SessionKey) -> bool {
        let turns = self.turns();
        let Some(of) = turns.by_session.get(thread) else {
            return false;
        };
        // Where none has said anything yet, the one that came first is the next to.
        let running = of.iter().find(|entry| entry.has_started).or(of.first());
        running.into_iter().for_each(|entry| entry.cancel.cancel());
        true
    }

    pub fn contains(&self, thread: &SessionKey) -> bool {
        self.turns().by_session.contains_key(thread)
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, RunningTurnsInner> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries one turn to its end.
struct TurnTask {
    gateway: Gateway,
    key: SessionKey,
    number: u64,
    cancel: CancellationToken,
    on_disconnect: OnDisconnect,
    sender: UnboundedSender<Update>,
    _permit: TurnPermit,
}

impl TurnTask {
    async fn run(self, mut stream: TurnStream) {
        let mut meter = TurnMeter::default();
        let (mut has_begun, mut is_left, mut is_stopped) = (false, false, false);
        loop {
            tokio::select! {
                biased;
                update = stream.next() => match update {
                    Some(update) => {
                        if !std::mem::replace(&mut has_begun, true) {
                            self.gateway.running_turns().mark_started(&self.key, self.number);
                        }
                        meter.observe(&update);
                        self.gateway.subscribers().publish(&self.key, &update);
                        let _ = self.sender.send(update);
                    }
                    None => break,
                },
                () = self.sender.closed(), if !is_left => {
                    is_left = true;
                    if self.on_disconnect == OnDisconnect::Cancel {
                        stream.cancel();
                    }
                }
                () = self.cancel.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    stream.cancel();
                }
                () = self.gateway.suspend_turns().cancelled(), if !is_stopped => {
                    is_stopped = true;
                    stream.suspend();
                }
            }
        }
        self.gateway.metrics().record_turn(meter);
    }
}

impl Drop for TurnTask {
    fn drop(&mut self) {
        self.gateway.running_turns().remove(&self.key, self.number);
    }
}
