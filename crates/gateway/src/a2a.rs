//! Being a colleague: Lango as an agent that others give tasks to, over A2A 1.0 and 0.3.
//!
//! [`doors`] reads what comes in on either binding in either version; [`desk`] carries out what is asked; [`board`] holds the
//! tasks that run and tells whoever watches; a [`Worker`] does the work; [`courier`] tells addresses that were left.

mod card;
mod history;
mod http;
mod live_tasks;
mod modes;
mod operations;
mod push_config;
mod push_sender;
mod settings;
mod stored_task;
mod subscription;
mod task_lookup;
mod team_worker;
mod worker;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get, post};
use lango_net::AddressPolicy;
use lango_store::TokenScope::Chat;

use crate::gateway::Gateway;
use crate::router::with_scope;

pub use settings::{A2aSettings, CardAudience};
pub use team_worker::TeamWorker;
pub use worker::{AnswerRight, TaskAssignment, TaskRecovery, TaskStep, TaskSteps, Worker};

pub(crate) use card::CardTimestamps;
pub(crate) use live_tasks::LiveTasks;
pub(crate) use push_sender::PushSender;
pub(crate) use task_lookup::recover_orphaned_tasks;

/// Who works on tasks, and how far their news may be sent.
pub struct TaskBackend {
    pub worker: Arc<dyn Worker>,
    /// Where addresses that callers left may lead to.
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

/// What tasks share.
pub(crate) struct A2aState {
    pub worker: Arc<dyn Worker>,
    pub live_tasks: LiveTasks,
    pub push_sender: PushSender,
    pub card_timestamps: CardTimestamps,
    /// Held by whoever finds out what became of a task.
    pub recovery_lock: tokio::sync::Mutex<()>,
}

impl A2aState {
    pub fn new(tasks: TaskBackend) -> Self {
        Self {
            worker: tasks.worker,
            live_tasks: LiveTasks::default(),
            push_sender: PushSender::new(tasks.reach),
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

/// What anybody may read.
pub(crate) fn public_routes(settings: &A2aSettings) -> Router<Gateway> {
    match settings.is_enabled && settings.card == CardAudience::Everyone {
        true => card_routes(),
        false => Router::new(),
    }
}

/// What needs a token.
pub(crate) fn authenticated_routes(settings: &A2aSettings) -> Router<Gateway> {
    if !settings.is_enabled {
        return Router::new();
    }
    let tasks = Router::new()
        .route("/a2a", post(http::rpc))
        .route("/a2a/", post(http::rpc))
        .route("/a2a/{*path}", any(http::rest));
    let tasks = with_scope(&[Chat], tasks);
    match settings.card {
        CardAudience::Everyone => tasks,
        CardAudience::Callers => tasks.merge(card_routes()),
    }
}

fn card_routes() -> Router<Gateway> {
    CARD_PATHS.into_iter().fold(Router::new(), |routes, path| {
        routes.route(path, get(card::public_card))
    })
}
