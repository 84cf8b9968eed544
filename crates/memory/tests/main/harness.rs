//! Shared set-up of the tests: a SQLite store, a manual clock, and turns as the engine writes them.

use std::sync::{Arc, Mutex};

use jiff::{Timestamp, ToSpan};
use lango_domain::event::{
    Author, Branch, CallId, EventBody, NewEvent, Principal, SessionId, ToolCode, TurnId,
};
use lango_domain::inquiries::InquiryStore;
use lango_domain::knowledge::KnowledgeStore;
use lango_domain::lazy::Lazy;
use lango_domain::session::SessionKey;
use lango_domain::session::{SessionKeyRef, SessionStore};
use lango_domain::{AgentName, Label, Tool, ToolContext, ToolError, ToolOutput};
use lango_memory::inquiries;
use lango_memory::knowledge_base::{self, KnowledgeBase};
use lango_store::{SqliteStore, StoreLocation};
use lango_text::secret_scan::SecretScanner;
use serde_json::Value;
use tempfile::TempDir;

use lango_testkit::tool_context as context;

pub struct KnowledgeHarness {
    pub folder: TempDir,
    pub store: SqliteStore,
    pub now: Arc<Mutex<Timestamp>>,
}

impl KnowledgeHarness {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store =
            SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite"))).unwrap();
        let now = "2026-11-16T08:00:00Z".parse().unwrap();
        Self {
            folder,
            store,
            now: Arc::new(Mutex::new(now)),
        }
    }

    pub fn knowledge_base(&self) -> KnowledgeBase {
        let now = Arc::clone(&self.now);
        KnowledgeBase {
            store: Lazy::ready(Arc::new(self.store.clone()) as Arc<dyn KnowledgeStore>),
            secret_scanner: SecretScanner::default(),
            now: Arc::new(move || *now.lock().unwrap()),
        }
    }

    pub fn inquiry_store(&self) -> Lazy<dyn InquiryStore> {
        Lazy::ready(Arc::new(self.store.clone()) as Arc<dyn InquiryStore>)
    }

    pub fn sessions(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.store.clone())
    }

    fn time(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }

    pub fn advance_minutes(&self, minutes: i64) {
        let mut now = self.now.lock().unwrap();
        *now = now.checked_add(minutes.minutes()).unwrap();
    }

    /// Calls a tool of the librarian and returns its text.
    pub async fn call(
        &self,
        key: &SessionKey,
        name: &str,
        args: Value,
    ) -> Result<String, ToolError> {
        self.call_output(key, name, args)
            .await
            .map(|output| output.content.text)
    }

    pub async fn call_output(
        &self,
        key: &SessionKey,
        name: &str,
        args: Value,
    ) -> Result<ToolOutput, ToolError> {
        self.call_labelled(key, name, args, Label::default()).await
    }

    /// Calls a tool from an agent whose context has this label.
    pub async fn call_labelled(
        &self,
        key: &SessionKey,
        name: &str,
        args: Value,
        label: Label,
    ) -> Result<ToolOutput, ToolError> {
        let knowledge_base = self.knowledge_base();
        let now = Arc::clone(&knowledge_base.now);
        let mut tools = knowledge_base::tools(&knowledge_base);
        tools.extend(inquiries::tools(&self.inquiry_store(), &now));
        let tool: Tool = tools.into_iter().find(|tool| tool.name == name).unwrap();
        let context = ToolContext {
            session: key.session.clone(),
            principal: key.principal.clone(),
            label,
            typed_addresses: Vec::new(),
            ..context()
        };
        tool.call(context, args).await
    }

    /// Appends a whole turn: the request, the given events and the end.
    pub async fn turn(&self, key: &SessionKey, turn: &str, request: &str, then: Vec<EventBody>) {
        let request = EventBody::User(request.into());
        let bodies = std::iter::once(request).chain(then).collect();
        self.turn_labelled(key, turn, bodies, &Label::default())
            .await;
    }

    /// Appends a turn in which all events of the agent have this label.
    pub async fn turn_labelled(
        &self,
        key: &SessionKey,
        turn: &str,
        mut bodies: Vec<EventBody>,
        label: &Label,
    ) {
        let agent = AgentName::new("lango-orchestrator").unwrap();
        let has_failed = bodies
            .iter()
            .any(|body| matches!(body, EventBody::TurnFailed { .. }));
        bodies.extend((!has_failed).then_some(EventBody::turn_done()));
        let new_event = |body: EventBody| {
            let (author, label) = match body {
                EventBody::User(_) => (Author::User, Label::default()),
                _ => (Author::Agent(agent.clone()), label.clone()),
            };
            let branch = Branch::root(&agent);
            NewEvent {
                turn: TurnId::new(turn),
                author,
                branch,
                at: self.time(),
                label,
                body,
            }
        };
        let key = SessionKeyRef {
            session: &key.session,
            principal: &key.principal,
        };
        self.store
            .append(key, bodies.into_iter().map(new_event).collect())
            .await
            .unwrap();
    }
}

pub fn conversation(session: &str) -> SessionKey {
    SessionKey {
        session: SessionId::new(session),
        principal: Principal::local(),
    }
}

pub fn bob_conversation(session: &str) -> SessionKey {
    SessionKey {
        session: SessionId::new(session),
        principal: Principal::new("bob"),
    }
}

pub fn answer(text: &str) -> Vec<EventBody> {
    vec![EventBody::Answer(text.into())]
}

/// Returns the events of a tool call and its result.
pub fn call_and_result(
    id: &str,
    tool: &str,
    args: Value,
    result: Result<(), (&str, Option<String>)>,
) -> [EventBody; 2] {
    let id = CallId::new(id);
    let call = EventBody::ToolCall {
        id: id.clone(),
        tool: tool.to_owned(),
        args,
    };
    let (error, advice) = match result {
        Ok(()) => (None, None),
        Err((error, advice)) => (Some(error.to_owned()), advice),
    };
    let (ok, code) = (error.is_none(), error.as_ref().map(|_| ToolCode::Failed));
    [
        call,
        EventBody::ToolResult {
            id,
            ok,
            content: String::new(),
            attachments: Vec::new(),
            error,
            code,
            untrusted: false,
            advice,
        },
    ]
}
