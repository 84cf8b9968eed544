//! Matches a conversation to a session. Clients send the whole history each time and no session id.
//!
//! A session is continued only if its log matches the client's history exactly; then the team also
//! sees its earlier tool calls and results. Otherwise (a retry, an edited message, concurrent
//! requests with the same history, a history from another system) the client's history is imported
//! into a new session. So an answer never depends on anything that the client did not send.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use lango_domain::content::BlobId;
use lango_domain::event::{
    Author, Branch, Event, EventBody, NewEvent, Principal, SessionId, TurnId,
};
use lango_domain::markers::ATTACHMENTS_ONLY_REQUEST;
use lango_domain::session::{HistoryWindow, SessionKey, SessionKeyRef};
use lango_domain::{AgentName, Content, Label};
use sha2::{Digest, Sha256};

use super::chat::{ChatMessage, ChatRequest};
use crate::error::ApiError;
use crate::gateway::Gateway;
use lango_runtime::TurnTarget;
use lango_runtime::client_context::{self, SOURCE_NAME};

/// Maximum number of sessions with the same first request that are compared, newest first.
const MAX_CANDIDATES: usize = 8;

/// The sessions that requests are about to continue.
#[derive(Clone, Default)]
pub(crate) struct SessionClaims {
    claimed: Arc<Mutex<HashSet<SessionKey>>>,
}

/// Keeps other requests from continuing the same session until the turn has started.
pub(crate) struct SessionClaim {
    claims: SessionClaims,
    key: SessionKey,
}

impl SessionClaims {
    fn claim(&self, key: &SessionKey) -> Option<SessionClaim> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.insert(key.clone()).then(|| SessionClaim {
            claims: self.clone(),
            key: key.clone(),
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

/// The session for a turn.
pub(crate) struct SessionMatch {
    pub session: SessionId,
    /// True if the session has no events yet.
    pub is_new: bool,
    pub claim: Option<SessionClaim>,
}

/// Returns the session that matches a conversation, or a new one.
pub(crate) async fn find_or_create_session(
    gateway: &Gateway,
    principal: &Principal,
    chat: &ChatRequest,
) -> Result<SessionMatch, ApiError> {
    let prefix = session_prefix(chat);
    let session = SessionId::new(format!("{prefix}{}", gateway.new_id()));
    if chat.history.is_empty() {
        return Ok(SessionMatch {
            session,
            is_new: true,
            claim: None,
        });
    }
    if let Some(found) = find_session(gateway, principal, chat, &prefix).await? {
        return Ok(found);
    }
    // A request that is refused must not leave its history behind.
    gateway.check_capacity(principal)?;
    // Claim the session before the import: afterwards, requests with the same history match it.
    let claim = gateway.session_claims().claim(&SessionKey {
        principal: principal.clone(),
        session: session.clone(),
    });
    let key = SessionKeyRef {
        session: &session,
        principal,
    };
    gateway
        .stores()
        .sessions
        .append(key, import_history(gateway, chat))
        .await?;
    Ok(SessionMatch {
        session,
        is_new: false,
        claim,
    })
}

/// Returns a session that is not in use and whose log is exactly the conversation, with a claim on it.
async fn find_session(
    gateway: &Gateway,
    principal: &Principal,
    chat: &ChatRequest,
    prefix: &str,
) -> Result<Option<SessionMatch>, ApiError> {
    for candidate in gateway
        .stores()
        .catalog
        .sessions_with_prefix(principal, prefix, MAX_CANDIDATES)
        .await?
    {
        let key = SessionKey {
            principal: principal.clone(),
            session: candidate,
        };
        let Some(claim) = gateway.session_claims().claim(&key) else {
            continue;
        };
        if gateway.runtime().has_turn(&key) {
            continue;
        }
        let key_ref = SessionKeyRef {
            session: &key.session,
            principal,
        };
        let log = gateway
            .stores()
            .sessions
            .load(key_ref, HistoryWindow::Everything)
            .await?;
        if matches_history(&log, &chat.history) {
            return Ok(Some(SessionMatch {
                session: key.session,
                is_new: false,
                claim: Some(claim),
            }));
        }
    }
    Ok(None)
}

/// Returns the prefix of a conversation's session ids: a hash of the model, the system prompt and
/// the first request.
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

/// Returns true if the log contains exactly this history and its last turn is done.
fn matches_history(log: &[Arc<Event>], history: &[ChatMessage]) -> bool {
    let is_settled = log
        .last()
        .is_some_and(|event| matches!(event.body, EventBody::TurnDone { .. }));
    let mut history = history.iter();
    for turn in visible_turns(log) {
        if let Some(request) = turn.request
            && !matches!(history.next(), Some(ChatMessage::User(content)) if is_same_request(content, request))
        {
            return false;
        }
        let is_answer = |text: &String| turn.answer_forms().contains(text);
        if !matches!(history.next(), Some(ChatMessage::Assistant(text)) if is_answer(text)) {
            return false;
        }
    }
    is_settled && history.next().is_none()
}

/// Returns true if a client's message is a logged request: the same text and the same bytes.
fn is_same_request(sent: &Content, logged: &Content) -> bool {
    let has_no_text = sent.text.is_empty() && logged.text == ATTACHMENTS_ONLY_REQUEST;
    let blobs = |content: &Content| -> Vec<BlobId> {
        let attachments = content.attachments.iter();
        attachments
            .map(|attachment| attachment.blob.clone())
            .collect()
    };
    (sent.text.trim() == logged.text.trim() || has_no_text) && blobs(sent) == blobs(logged)
}

/// The part of a turn that was visible to the client.
#[derive(Default)]
struct VisibleTurn<'a> {
    request: Option<&'a Content>,
    answers: Vec<String>,
    /// Answers and the notes before them.
    texts: Vec<String>,
}

impl VisibleTurn<'_> {
    /// Returns the answer as sent in a full response and as streamed.
    fn answer_forms(&self) -> [String; 2] {
        [
            self.answers.join("\n\n").trim().to_owned(),
            self.texts.join("\n\n").trim().to_owned(),
        ]
    }
}

fn visible_turns(log: &[Arc<Event>]) -> Vec<VisibleTurn<'_>> {
    let mut indexes: HashMap<&TurnId, usize> = HashMap::new();
    let mut turns: Vec<VisibleTurn<'_>> = Vec::new();
    for event in log {
        let index = *indexes.entry(&event.turn).or_insert_with(|| {
            turns.push(VisibleTurn::default());
            turns.len() - 1
        });
        match &event.body {
            EventBody::User(content) => turns[index].request = Some(content),
            EventBody::Note { text } => turns[index].texts.push(text.trim().to_owned()),
            EventBody::Answer(content) => {
                let text = content.to_plain_text().trim().to_owned();
                turns[index].answers.push(text.clone());
                turns[index].texts.push(text);
            }
            _ => {}
        }
    }
    turns
}

/// Converts the client's history to events. Answers are attributed to the root agent, because their
/// author is unknown (S70).
fn import_history(gateway: &Gateway, chat: &ChatRequest) -> Vec<NewEvent> {
    let root = match &chat.target {
        TurnTarget::Agent(agent) => agent.clone(),
        TurnTarget::Team | TurnTarget::Call { .. } => gateway.runtime().root(),
    };
    let (at, mut number) = (gateway.now(), 0);
    let mut events: Vec<NewEvent> = Vec::new();
    let mut is_open = false;
    for message in &chat.history {
        number += usize::from(!is_open);
        let (author, body) = match message {
            ChatMessage::User(content) => (Author::User, EventBody::User(content.clone())),
            ChatMessage::Assistant(text) => {
                let body = EventBody::Answer(text.as_str().into());
                (Author::Agent(root.clone()), body)
            }
        };
        is_open = author == Author::User;
        let mut bodies = vec![(author, body)];
        if is_open && number == 1 && !chat.system.is_empty() {
            bodies.push((Author::Agent(root.clone()), context_event(&chat.system)));
        }
        if !is_open {
            bodies.push((Author::Agent(root.clone()), EventBody::turn_done()));
        }
        let turn = TurnId::new(format!("imported-{number}"));
        events.extend(
            bodies
                .into_iter()
                .map(|(author, body)| new_event(&turn, &root, author, body, at)),
        );
    }
    events
}

fn context_event(system: &str) -> EventBody {
    EventBody::Context {
        source: SOURCE_NAME.to_owned(),
        text: client_context::truncate(system),
    }
}

fn new_event(
    turn: &TurnId,
    root: &AgentName,
    author: Author,
    body: EventBody,
    at: jiff::Timestamp,
) -> NewEvent {
    // Only the user's own messages are trusted.
    let label = match author {
        Author::User => Label::default(),
        // Answers may contain anything that was read to produce them.
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
