//! Observational memory from conversation to recall, over a real store.

mod crash_points;
mod forget;
mod observe;
mod recall;
mod tools;

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::stream::{BoxStream, StreamExt, iter};
use jiff::Timestamp;
use lango_domain::AgentName;
use lango_domain::event::{
    Author, Branch, CallId, EventBody, NewEvent, Principal, SessionId, TurnId, Usage,
};
use lango_domain::memory::{Memory, MemoryLevel, MemoryQuery, MemoryStore};
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use lango_domain::session::SessionKey;
use lango_domain::session::{SessionKeyRef, SessionStore};
use lango_memory::forget::{ForgetSelection, Forgetter, LearnedItem};
use lango_memory::observational_memory::{
    MemoryParts, MemorySettings, ObservationalMemory, Observer,
};
use lango_store::{SqliteStore, StoreLocation};
use lango_text::secret_scan::SecretScanner;
use serde_json::json;
use tempfile::TempDir;

pub struct MemoryHarness {
    folder: TempDir,
    pub store: SqliteStore,
    pub settings: MemorySettings,
    pub observer: Observer,
    pub now: Arc<Mutex<Timestamp>>,
}

impl MemoryHarness {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = open(folder.path());
        let now = Arc::new(Mutex::new("2026-05-01T10:00:00Z".parse().unwrap()));
        Self {
            folder,
            store,
            settings: MemorySettings::default(),
            observer: Observer::Rules,
            now,
        }
    }

    /// Creates a harness with a model and small thresholds.
    pub fn observed_by(model: impl Model + 'static) -> Self {
        let mut harness = Self::new();
        harness.observer = Observer::Model {
            model: Arc::new(model),
            name: "x/m".to_owned(),
        };
        let number = |n: usize| std::num::NonZeroUsize::new(n).unwrap();
        harness.settings = MemorySettings {
            message_token_threshold: number(1_000),
            buffer_tokens: number(200),
            recent_tokens: 200,
            observation_token_threshold: number(100_000),
            ..MemorySettings::default()
        };
        harness
    }

    /// Opens the store a second time, as another process would.
    pub fn reopened(&self) -> SqliteStore {
        open(self.folder.path())
    }

    pub fn memory(&self) -> ObservationalMemory {
        self.memory_over(Arc::new(self.store.clone()))
    }

    pub fn memory_over(&self, memories: Arc<dyn MemoryStore>) -> ObservationalMemory {
        let now = Arc::clone(&self.now);
        ObservationalMemory::new(MemoryParts {
            memories,
            observer: self.observer.clone(),
            settings: self.settings.clone(),
            secret_scanner: SecretScanner::default(),
            forgetter: self.forgetting(),
            now: Arc::new(move || *now.lock().unwrap()),
        })
    }

    pub fn forgetting(&self) -> Forgetter {
        Forgetter::new(
            Arc::new(self.store.clone()),
            Arc::new(lango_graph::GraphBatchFormat),
        )
    }

    /// Returns the items to forget, in the order of their ids.
    pub async fn find_to_forget(&self, query: &str) -> Vec<LearnedItem> {
        match self
            .forgetting()
            .find_to_forget(&me(), query)
            .await
            .unwrap()
        {
            ForgetSelection::Matched { mut to_forget, .. } => {
                to_forget.sort_by(|a, b| a.id.cmp(&b.id));
                to_forget
            }
            ForgetSelection::NoMatch | ForgetSelection::Ambiguous(_) => Vec::new(),
        }
    }

    /// Forgets what the query selects, and returns the texts of the removed items.
    pub async fn forget(&self, query: &str) -> Vec<String> {
        let selected = self.find_to_forget(query).await;
        let mut removed = self.forgetting().forget(&me(), &selected).await.unwrap();
        removed.sort_by(|a, b| a.id.cmp(&b.id));
        removed.into_iter().map(|item| item.text).collect()
    }

    /// Appends a complete turn with a message of the user and an answer.
    pub async fn say(&self, session: &str, turn: &str, text: &str) {
        self.turn(
            session,
            turn,
            vec![user_message(text), answer("As you like.")],
        )
        .await;
    }

    pub async fn turn(&self, session: &str, turn: &str, bodies: Vec<EventBody>) {
        self.turn_for(&Principal::local(), session, turn, bodies)
            .await;
    }

    pub async fn turn_for(
        &self,
        principal: &Principal,
        session: &str,
        turn: &str,
        bodies: Vec<EventBody>,
    ) {
        let at = *self.now.lock().unwrap();
        let root = AgentName::new("lango-orchestrator".to_owned()).unwrap();
        let draft = |body: EventBody| {
            let author = if matches!(body, EventBody::User(_)) {
                Author::User
            } else {
                Author::Agent(root.clone())
            };
            NewEvent {
                turn: TurnId::new(turn),
                author,
                branch: Branch::root(&root),
                at,
                label: Default::default(),
                body,
            }
        };
        let drafts = bodies
            .into_iter()
            .chain([EventBody::turn_done()])
            .map(draft)
            .collect();
        let session = SessionId::new(session);
        self.store
            .append(
                SessionKeyRef {
                    session: &session,
                    principal,
                },
                drafts,
            )
            .await
            .unwrap();
    }

    pub async fn observations(&self) -> Vec<Memory> {
        self.list(MemoryLevel::Observations).await
    }

    pub async fn reflections(&self) -> Vec<Memory> {
        self.list(MemoryLevel::Reflections).await
    }

    /// Lists memories, oldest first.
    async fn list(&self, level: MemoryLevel) -> Vec<Memory> {
        let memory_query = MemoryQuery {
            level,
            session: None,
            limit: 10_000,
        };
        let mut memories = self
            .store
            .list(&Principal::local(), memory_query)
            .await
            .unwrap();
        memories.reverse();
        memories
    }

    pub fn advance_hours(&self, hours: i64) {
        let mut now = self.now.lock().unwrap();
        *now += jiff::SignedDuration::from_hours(hours);
    }
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(StoreLocation::File(folder.join("store.sqlite"))).unwrap()
}

pub fn conversation(session: &str) -> SessionKey {
    SessionKey {
        session: SessionId::new(session),
        principal: Principal::local(),
    }
}

pub fn me() -> Principal {
    Principal::local()
}

pub fn user_message(text: &str) -> EventBody {
    EventBody::User(text.into())
}

pub fn answer(text: &str) -> EventBody {
    EventBody::Answer(text.into())
}

/// Returns the events of a tool call and its result.
pub fn call_and_result(tool: &str, result: &str) -> Vec<EventBody> {
    let id = CallId::new("c");
    vec![
        EventBody::ToolCall {
            id: id.clone(),
            tool: tool.to_owned(),
            args: json!({}),
        },
        EventBody::ToolResult {
            id,
            ok: true,
            content: result.to_owned(),
            attachments: Vec::new(),
            error: None,
            code: None,
            untrusted: true,
            advice: None,
        },
    ]
}

pub fn texts(memories: &[Memory]) -> Vec<&str> {
    memories
        .iter()
        .map(|memory| memory.note.text.as_str())
        .collect()
}

type Replies = Arc<dyn Fn(usize, &[(String, String)]) -> Result<String, ModelError> + Send + Sync>;

/// A model that computes its replies from the requests and records them.
#[derive(Clone)]
pub struct WriterModel {
    reply: Replies,
    pub requests: Arc<Mutex<Vec<String>>>,
    pub window: usize,
}

impl WriterModel {
    /// `reply` gets the number of earlier requests, and the lines of the request with their ids.
    pub fn new(
        reply: impl Fn(usize, &[(String, String)]) -> Result<String, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            reply: Arc::new(reply),
            requests: Arc::default(),
            window: 100_000,
        }
    }

    pub fn replying(text: &'static str) -> Self {
        Self::new(move |_, _| Ok(text.to_owned()))
    }

    /// Writes one observation for each message of the user.
    pub fn thorough() -> Self {
        Self::new(|_, lines| {
            let user_lines = lines
                .iter()
                .filter(|(id, text)| id.starts_with('o') || text.contains("user: "));
            let line = |(id, text): &(String, String)| {
                let text: String = text
                    .rsplit(": ")
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(60)
                    .collect();
                format!("medium | fact | {id} | {id} says {text}")
            };
            let lines: Vec<String> = user_lines.map(line).collect();
            Ok(if lines.is_empty() {
                "NOTHING".to_owned()
            } else {
                lines.join("\n")
            })
        })
    }

    pub fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Model for WriterModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let [Message::User(text)] = request.messages.as_slice() else {
            panic!("one message")
        };
        let mut requests = self.requests.lock().unwrap();
        let parse_line = |line: &str| {
            let (id, text) = line.strip_prefix('[')?.split_once("] ")?;
            Some((id.to_owned(), text.to_owned()))
        };
        let lines: Vec<(String, String)> = text.text.lines().filter_map(parse_line).collect();
        let reply = (self.reply)(requests.len(), &lines);
        requests.push(text.text.clone());
        let usage = Usage {
            model: "m".to_owned(),
            input: 7,
            output: 3,
            ..Usage::default()
        };
        match reply {
            Ok(reply) => iter([
                Ok(Fragment::Text(reply)),
                Ok(Fragment::Usage(usage)),
                Ok(Fragment::Done),
            ])
            .boxed(),
            Err(error) => iter([Err(error)]).boxed(),
        }
    }

    fn window(&self) -> usize {
        self.window
    }
}
