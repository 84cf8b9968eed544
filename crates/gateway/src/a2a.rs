//! The A2A server (versions 1.0 and 0.3): other agents send tasks to the team.
//!
//! [`http`] parses requests of both bindings and versions; [`operations`] executes them;
//! [`live_tasks`] holds the running tasks and publishes their events; a [`Worker`] does the work;
//! [`push_sender`] delivers push notifications.

mod answer_buffer;
mod approval_text;
mod card;
mod history;
mod http;
mod live_tasks;
mod modes;
mod operations;
mod push_config;
mod push_sender;
mod send_message;
mod settings;
mod stored_task;
mod subscription;
mod task_lookup;
mod team_worker;
mod turn_steps;
mod worker;

use std::sync::Arc;

use lango_domain::access_tokens::TokenScope::Chat;
use lango_net::AddressPolicy;

use crate::route::{Route, RouteAccess, RouteDescription, RouteEndpoint, any, get, post};

pub use settings::{A2aSettings, CardAudience};
pub use team_worker::TeamWorker;
pub use worker::{AnswerRight, TaskAssignment, TaskRecovery, TaskStep, TaskSteps, Worker};

pub(crate) use card::CardTimestamps;
pub(crate) use live_tasks::LiveTasks;
pub(crate) use push_sender::PushSender;
pub(crate) use task_lookup::recover_orphaned_tasks;

/// The worker for tasks and the address policy for push notifications.
pub struct TaskBackend {
    pub worker: Arc<dyn Worker>,
    /// The addresses that push notifications may be sent to.
    pub reach: AddressPolicy,
}

impl Default for TaskBackend {
    fn default() -> Self {
        Self {
            worker: Arc::new(TeamWorker),
            reach: AddressPolicy::Public,
        }
    }
}

/// The shared state of the A2A server.
pub(crate) struct A2aState {
    pub worker: Arc<dyn Worker>,
    pub live_tasks: LiveTasks,
    pub push_sender: PushSender,
    pub card_timestamps: CardTimestamps,
    /// Held while an orphaned task is recovered.
    pub recovery_lock: tokio::sync::Mutex<()>,
}

impl A2aState {
    pub fn new(backend: TaskBackend) -> Self {
        Self {
            worker: backend.worker,
            live_tasks: LiveTasks::default(),
            push_sender: PushSender::new(backend.reach),
            card_timestamps: CardTimestamps::default(),
            recovery_lock: tokio::sync::Mutex::default(),
        }
    }
}

const CARD_PATHS: [&str; 4] = [
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/a2a/.well-known/agent-card.json",
    "/a2a/.well-known/agent.json",
];

/// Returns the records of the enabled routes.
pub(crate) fn routes(settings: &A2aSettings) -> Vec<Route> {
    if !settings.is_enabled {
        return Vec::new();
    }
    let card_access = match settings.card {
        CardAudience::Everyone => RouteAccess::Public,
        CardAudience::Callers => RouteAccess::AnyToken,
    };
    let tasks = RouteAccess::Scopes(&[Chat]);
    let mut all: Vec<Route> = CARD_PATHS
        .into_iter()
        .map(|path| route(path, card_access, get(card::public_card)))
        .collect();
    all.push(route("/a2a", tasks, post(http::rpc)));
    all.push(route("/a2a/", tasks, post(http::rpc)));
    all.push(route("/a2a/{*path}", tasks, any(http::rest)));
    all
}

fn route(path: &'static str, access: RouteAccess, endpoint: RouteEndpoint) -> Route {
    Route {
        endpoint,
        path,
        access,
        description: RouteDescription::Omitted("the A2A specification describes its endpoints"),
    }
}
