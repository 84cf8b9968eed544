//! Which session a conversation belongs to, when the client sends all of it every time and names none.
//!
//! A session is gone on with only where its log says exactly what the client says, no more and no less: then the team
//! remembers its own calls and results, too. Everything else (a retry, an edited message, two answers to one question at
//! the same time, a history from elsewhere) begins a new session with the client's history as it was sent. So an answer
//! never rests on anything that the client did not show.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::event::{
    Author, Branch, Event, EventBody, NewEvent, Principal, SessionId, TurnId,
};
use lango_domain::session::{HistoryWindow, SessionKey, SessionKeyRef, SessionStore};
use lango_domain::{AgentName, Label};
use lango_engine::{LegacyMessage, LegacyRole, replay_author};
use sha2::{Digest, Sha256};

use super::chat::{ChatMessage, ChatRequest};
use crate::client_context::SOURCE_NAME;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::turns::TurnTarget;

/// Of conversations that began with the same words, so many of the newest are looked at.
const MAX_CANDIDATES: usize = 8;

/// Sessions that somebody is about to go on with.
#[derive(Clone, Default)]
pub(crate) struct SessionClaims {
    claimed: Arc<Mutex<HashSet<SessionKey>>>,
}

/// Keeps others from going on with the same session until the turn has begun.
pub(crate) struct SessionClaim {
    claims: SessionClaims,
    key: SessionKey,
}

impl SessionClaims {
    fn claim(&self, thread: &SessionKey) -> Option<SessionClaim> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.insert(thread.clone()).then(|| SessionClaim {
            claims: self.clone(),
            key: thread.clone(),
        })
    }
}

impl Drop for SessionClaim {
    fn drop(&mut self) {
        self.claims
            .claimed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.key);
    }
}

/// Where the turn is to run.
pub(crate) struct SessionMatch {
    pub session: SessionId,
    /// Whether nothing is in it yet.
    pub is_new: bool,
    pub claim: Option<SessionClaim>,
}

/// The session for a conversation.
pub(crate) async fn find_or_create_session(
    gateway: &Gateway,
    principal: &Principal,
    chat: &ChatRequest,
) -> Result<SessionMatch, ApiError> {
    let beginning = session_prefix(chat);
    let session = SessionId::new(format!("{beginning}{}", gateway.new_id()));
    if chat.history.is_empty() {
        return Ok(SessionMatch {
            session,
            is_new: true,
            claim: None,
        });
    }
    for found in gateway
        .store()
        .sessions_with_prefix(principal, &beginning, MAX_CANDIDATES)
        .await?
    {
        let thread = SessionKey {
            principal: principal.clone(),
            session: found,
        };
        let Some(claim) = gateway.session_claims().claim(&thread) else {
            continue;
        };
        if gateway.running_turns().contains(&thread) {
            continue;
        }
        let key = SessionKeyRef {
            session: &thread.session,
            principal,
        };
        if matches_history(
            &gateway.store().load(key, HistoryWindow::Everything).await?,
            &chat.history,
        ) {
            return Ok(SessionMatch {
                session: thread.session,
                is_new: false,
                claim: Some(claim),
            });
        }
    }
    // Before the history is in it, because then it is what others with the same history look for.
    let claim = gateway.session_claims().claim(&SessionKey {
        principal: principal.clone(),
        session: session.clone(),
    });
    let key = SessionKeyRef {
        session: &session,
        principal,
    };
    gateway
        .store()
        .append(key, import_history(gateway, chat))
        .await?;
    Ok(SessionMatch {
        session,
        is_new: false,
        claim,
    })
}

/// What the names of a conversation's sessions begin with: it says nothing, and the same beginnings share it.
fn session_prefix(chat: &ChatRequest) -> String {
    let mut hash = Sha256::new();
    for text in [&chat.model, &chat.system, chat.first_request()] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let mut name = "chat-".to_owned();
    for byte in hash.finalize().iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    name + "-"
}

/// Whether the log holds exactly this conversation, and has come to its end.
fn matches_history(log: &[Arc<Event>], history: &[ChatMessage]) -> bool {
    let is_settled = log
        .last()
        .is_some_and(|event| matches!(event.body, EventBody::TurnDone));
    let mut history = history.iter();
    for turn in visible_turns(log) {
        if let Some(asked) = turn.request
            && !matches!(history.next(), Some(ChatMessage::User(text)) if text == asked.trim())
        {
            return false;
        }
        let heard = |text: &String| turn.answer_forms().iter().any(|spoken| spoken == text);
        if !matches!(history.next(), Some(ChatMessage::Assistant(text)) if heard(text)) {
            return false;
        }
    }
    is_settled && history.next().is_none()
}

/// What of a turn reached whoever asked.
#[derive(Default)]
struct VisibleTurn<'a> {
    request: Option<&'a str>,
    answers: Vec<&'a str>,
    /// Answers, and what was said in passing before them.
    texts: Vec<&'a str>,
}

impl VisibleTurn<'_> {
    /// The answer as it is given whole, and as it is streamed.
    fn answer_forms(&self) -> [String; 2] {
        [
            self.answers.join("\n\n").trim().to_owned(),
            self.texts.join("\n\n").trim().to_owned(),
        ]
    }
}

fn visible_turns(log: &[Arc<Event>]) -> Vec<VisibleTurn<'_>> {
    let mut places: HashMap<&TurnId, usize> = HashMap::new();
    let mut turns: Vec<VisibleTurn<'_>> = Vec::new();
    for event in log {
        let at = *places.entry(&event.turn).or_insert_with(|| {
            turns.push(VisibleTurn::default());
            turns.len() - 1
        });
        match &event.body {
            EventBody::User { text } => turns[at].request = Some(text),
            EventBody::Note { text } => turns[at].texts.push(text.trim()),
            EventBody::Answer { text } => {
                turns[at].answers.push(text.trim());
                turns[at].texts.push(text.trim());
            }
            _ => {}
        }
    }
    turns
}

/// The client's history as a log; an answer is the root's, since nobody knows better (S70).
fn import_history(gateway: &Gateway, chat: &ChatRequest) -> Vec<NewEvent> {
    let root = match &chat.target {
        TurnTarget::Agent(agent) => agent.clone(),
        TurnTarget::Team => gateway.team().runner.root().clone(),
    };
    let (at, mut number) = (gateway.now(), 0);
    let mut drafts: Vec<NewEvent> = Vec::new();
    let mut is_open = false;
    for said in &chat.history {
        let (role, text) = match said {
            ChatMessage::User(text) => (LegacyRole::User, text),
            ChatMessage::Assistant(text) => (LegacyRole::Assistant, text),
        };
        let message = LegacyMessage {
            role,
            content: text.clone(),
            author: None,
        };
        number += usize::from(!is_open);
        is_open = role == LegacyRole::User;
        let author = replay_author(&message, &root);
        let mut bodies = vec![(author, message.body())];
        if is_open && number == 1 && !chat.system.is_empty() {
            bodies.push((Author::Agent(root.clone()), context_event(&chat.system)));
        }
        if !is_open {
            bodies.push((Author::Agent(root.clone()), EventBody::TurnDone));
        }
        let turn = TurnId::new(format!("imported-{number}"));
        drafts.extend(
            bodies
                .into_iter()
                .map(|(author, body)| new_event(&turn, &root, author, body, at)),
        );
    }
    drafts
}

fn context_event(system: &str) -> EventBody {
    EventBody::Context {
        source: SOURCE_NAME.to_owned(),
        text: crate::client_context::truncate(system),
    }
}

fn new_event(
    turn: &TurnId,
    root: &AgentName,
    author: Author,
    body: EventBody,
    at: jiff::Timestamp,
) -> NewEvent {
    // What the client says that others said is not in the user's own words.
    let label = match author {
        Author::User => Label::default(),
        // Answers may hold anything that was read for them.
        _ => {
            Label::untrusted("the client's history").joined(&Label::private("the client's history"))
        }
    };
    NewEvent {
        turn: turn.clone(),
        author,
        branch: Branch::root(root),
        at,
        label,
        body,
    }
}
