//! The log of the running turn: stored, then shown (B71).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lango_domain::event::{
    Author, Body, Branch, CallId, Draft, Event, Grant, Principal, SessionId, TurnId, Update,
};
use lango_domain::session::{Reach, SessionKey, SessionStore, StoreError};
use lango_domain::{AgentName, Live};
use tokio::sync::mpsc::UnboundedSender;

use crate::failure::Failure;
use crate::runner::Surroundings;

pub(crate) struct Record {
    pub session: SessionId,
    pub principal: Principal,
    pub turn: TurnId,
    store: Arc<dyn SessionStore>,
    surroundings: Surroundings,
    /// Keeps the order of the log, of this copy of it and of what is shown the same, whichever branch appends.
    order: tokio::sync::Mutex<()>,
    log: RwLock<Vec<Arc<Event>>>,
    calls: Mutex<HashSet<CallId>>,
    updates: UnboundedSender<Update>,
}

/// What a record is opened for.
pub(crate) struct Opening {
    pub session: SessionId,
    pub principal: Principal,
    pub store: Arc<dyn SessionStore>,
    pub surroundings: Surroundings,
    pub updates: UnboundedSender<Update>,
    /// How much of the log any agent can read.
    pub reach: Reach,
}

impl Record {
    pub async fn open(opening: Opening) -> Result<Self, StoreError> {
        let Opening { session, principal, store, surroundings, updates, reach } = opening;
        let log = store.load(SessionKey { session: &session, principal: &principal }, reach).await?;
        let calls = log.iter().filter_map(|event| call_of(event)).cloned().collect();
        let turn = (surroundings.new_turn)();
        let (order, log, calls) = (tokio::sync::Mutex::new(()), RwLock::new(log), Mutex::new(calls));
        Ok(Self { session, principal, turn, store, surroundings, order, log, calls, updates })
    }

    /// Stores what happened, then shows it.
    pub async fn keep(&self, author: &Author, branch: &Branch, bodies: Vec<Body>) -> Result<(), Failure> {
        let drafts = bodies.into_iter().map(|body| (author.clone(), branch.clone(), body)).collect();
        Ok(self.keep_of(&self.turn, drafts).await?)
    }

    /// The same for a turn that may be another one.
    pub async fn keep_of(
        &self,
        turn: &TurnId,
        bodies: Vec<(Author, Branch, Body)>,
    ) -> Result<(), StoreError> {
        if bodies.is_empty() {
            return Ok(());
        }
        let _order = self.order.lock().await;
        let at = (self.surroundings.now)();
        let draft = |(author, branch, body)| Draft { turn: turn.clone(), author, branch, at, body };
        let key = SessionKey { session: &self.session, principal: &self.principal };
        let events = self.store.append(key, bodies.into_iter().map(draft).collect()).await?;
        for event in &events {
            self.send(Update::Event(Arc::clone(event)));
        }
        self.log.write().unwrap_or_else(PoisonError::into_inner).extend(events);
        Ok(())
    }

    /// Shows text that may still change.
    pub fn show(&self, author: &AgentName, text: String) {
        self.send(Update::Delta { author: author.clone(), text });
    }

    /// Where a call shows what it prints.
    pub fn live(&self, author: &AgentName, call: &CallId) -> Live {
        let (updates, author, call) = (self.updates.clone(), author.clone(), call.clone());
        Live::to(move |text| {
            let (author, call, text) = (author.clone(), call.clone(), text.to_owned());
            let _ = updates.send(Update::Printed { author, call, text });
        })
    }

    /// The permissions for a tool's calls that hold for the rest of the session.
    pub async fn grants(&self, tool: &str) -> Result<Vec<Grant>, StoreError> {
        self.store.grants(SessionKey { session: &self.session, principal: &self.principal }, tool).await
    }

    pub fn read<T>(&self, look: impl FnOnce(&[Arc<Event>]) -> T) -> T {
        look(&self.log.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The id that the model gave, unless it gave none or gave it before: ids pair calls with results.
    pub fn fresh_id(&self, given: &CallId) -> CallId {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let made_up = |n: usize| CallId::new(format!("call-{n}"));
        let is_free = |id: &CallId| !id.as_str().is_empty() && !calls.contains(id);
        let id = if is_free(given) {
            given.clone()
        } else {
            (calls.len() + 1..).map(made_up).find(is_free).unwrap_or_else(|| given.clone())
        };
        calls.insert(id.clone());
        id
    }

    /// Whoever listened may have left; the log is kept all the same.
    fn send(&self, update: Update) {
        let _ = self.updates.send(update);
    }
}

fn call_of(event: &Event) -> Option<&CallId> {
    match &event.body {
        Body::ToolCall { id, .. } | Body::Transfer { id, .. } => Some(id),
        _ => None,
    }
}
