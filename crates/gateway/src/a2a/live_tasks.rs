//! The tasks that are running or subscribed to, and their changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_remote::a2a::{
    Artifact, ArtifactUpdate, Message, MessageId, Metadata, Part, PartContent, ProtocolError, Role,
    StatusUpdate, StreamEvent, Task, TaskState, TaskStatus,
};
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;

use super::history::{append_message, append_question};
use super::push_sender::Outbox;
use super::stored_task::StoredTask;
use super::worker::{TaskStep, TaskSteps};
use crate::gateway::Gateway;

/// Capacity of a subscriber's channel. A subscriber that lags further behind gets the current task
/// instead of the missed events.
const CHANNEL_CAPACITY: usize = 256;

#[derive(Default)]
pub(crate) struct LiveTasks {
    tasks: Mutex<HashMap<String, Arc<LiveTask>>>,
}

/// A task that is running or subscribed to.
pub(crate) struct LiveTask {
    state: Mutex<LiveTaskState>,
    /// Serializes changes: each is stored, then published.
    change_lock: tokio::sync::Mutex<()>,
    events: Sender<StreamEvent>,
}

struct LiveTaskState {
    stored: StoredTask,
    /// Cancels the work; set while the task is running.
    work: Option<CancellationToken>,
    outbox: Arc<Outbox>,
}

/// The current state of a task and its future events.
pub(crate) struct TaskSubscription {
    pub live: Arc<LiveTask>,
    pub task: Task,
    pub events: Receiver<StreamEvent>,
}

impl LiveTasks {
    /// Returns a live task of the principal.
    pub fn get(&self, principal: &Principal, id: &str) -> Option<Arc<LiveTask>> {
        let live = self.tasks().get(id).cloned()?;
        let is_own = live.state().stored.principal == *principal;
        is_own.then_some(live)
    }

    /// Returns the live task with this id, or makes the given task live.
    pub fn get_or_insert(&self, stored: StoredTask) -> Arc<LiveTask> {
        let id = stored.task.id.to_string();
        let new = || {
            let state = Mutex::new(LiveTaskState {
                stored,
                work: None,
                outbox: Arc::default(),
            });
            Arc::new(LiveTask {
                state,
                change_lock: tokio::sync::Mutex::default(),
                events: broadcast::channel(CHANNEL_CAPACITY).0,
            })
        };
        Arc::clone(self.tasks().entry(id).or_insert_with(new))
    }

    /// Removes a task that is not running and is finished or has no subscribers.
    pub fn remove_if_idle(&self, live: &LiveTask) {
        let mut tasks = self.tasks();
        let state = live.state();
        if state.work.is_none() && (state.stored.is_terminal() || live.events.receiver_count() == 0)
        {
            tasks.remove(state.stored.task.id.as_str());
        }
    }

    /// Removes a task that was never started.
    pub fn remove(&self, live: &LiveTask) {
        let id = live.state().stored.task.id.to_string();
        self.tasks().remove(&id);
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveTask>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveTask {
    pub fn stored(&self) -> StoredTask {
        self.state().stored.clone()
    }

    pub fn subscribe(self: &Arc<Self>) -> TaskSubscription {
        let state = self.state();
        TaskSubscription {
            live: Arc::clone(self),
            task: state.stored.task.clone(),
            events: self.events.subscribe(),
        }
    }

    /// Marks the task as running and returns the token that cancels it, or `None` if it is running
    /// already.
    pub fn start_work(&self) -> Option<CancellationToken> {
        let mut state = self.state();
        if state.work.is_some() {
            return None;
        }
        let cancel = CancellationToken::new();
        state.work = Some(cancel.clone());
        Some(cancel)
    }

    pub fn finish_work(&self) {
        self.state().work = None;
    }

    /// Cancels the work. Returns false if the task is not running.
    pub fn cancel_work(&self) -> bool {
        let state = self.state();
        state.work.iter().for_each(CancellationToken::cancel);
        state.work.is_some()
    }

    pub fn is_running(&self) -> bool {
        self.state().work.is_some()
    }

    /// Stores and publishes a step and sends push notifications. Has no effect on a finished task.
    pub async fn apply_step(&self, gateway: &Gateway, step: TaskStep) {
        let _guard = self.change_lock.lock().await;
        self.apply_change(gateway, self.stored(), step).await;
    }

    /// Adds a message and applies the step that `next_step` returns for it, without other changes in
    /// between. Ignores a message that the task already has.
    pub async fn add_message(
        &self,
        gateway: &Gateway,
        message: Message,
        next_step: impl FnOnce() -> Result<TaskStep, ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let _guard = self.change_lock.lock().await;
        if self.state().stored.has_message(&message) {
            return Ok(());
        }
        let step = next_step()?;
        let mut stored = self.stored();
        append_question(&mut stored.task);
        append_message(&mut stored.task, message);
        self.apply_change(gateway, stored, step).await;
        Ok(())
    }

    /// Applies a change. The caller must hold `change_lock`, so that changes are stored in the order
    /// in which they are published.
    async fn apply_change(&self, gateway: &Gateway, mut stored: StoredTask, step: TaskStep) {
        if stored.is_terminal() || is_no_op(&stored.task.status, &step) {
            return;
        }
        let is_chunk = matches!(step, TaskStep::Artifact { .. });
        let event = apply(&mut stored, step, gateway.now());
        if !is_chunk && let Err(error) = gateway.stores().tasks.update_task(stored.to_row()).await {
            tracing::error!(%error, "cannot store a task");
        }
        let mut state = self.state();
        state.stored = stored;
        let Some(event) = event else { return };
        if let StreamEvent::Status(_) = event {
            gateway
                .a2a()
                .push_sender
                .notify(gateway, &state.outbox, state.stored.task.clone());
        }
        let _ = self.events.send(event);
    }

    /// Applies all steps. Afterwards the task is finished or waits for input.
    pub async fn run_steps(self: Arc<Self>, gateway: Gateway, mut steps: TaskSteps) {
        while let Some(step) = steps.next().await {
            self.apply_step(&gateway, step).await;
        }
        let state = self.stored().task.status.state;
        if !state.is_terminal() && !state.is_interrupted() {
            self.apply_step(
                &gateway,
                TaskStep::with_message(TaskState::Failed, "The task ended without a result."),
            )
            .await;
        }
        self.finish_work();
        gateway.a2a().live_tasks.remove_if_idle(&self);
    }

    fn state(&self) -> MutexGuard<'_, LiveTaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies a step to a task and returns the event for subscribers.
pub(crate) fn apply(
    stored: &mut StoredTask,
    step: TaskStep,
    now: Timestamp,
) -> Option<StreamEvent> {
    match step {
        TaskStep::Turn(turn) => {
            stored.turn = Some(turn);
            None
        }
        TaskStep::Status { state, text } => {
            stored.pending_call = None;
            Some(set_status(&mut stored.task, state, text, now))
        }
        TaskStep::Question { call, text } => {
            stored.pending_call = Some(call);
            Some(set_status(
                &mut stored.task,
                TaskState::InputRequired,
                Some(text),
                now,
            ))
        }
        TaskStep::Artifact {
            artifact,
            append,
            last,
        } => {
            let (id, context) = (stored.task.id.clone(), stored.task.context.clone());
            merge_artifact(&mut stored.task.artifacts, &artifact, append);
            let (last_chunk, metadata) = (last, Metadata::new());
            let update = ArtifactUpdate {
                task: id,
                context,
                artifact,
                append,
                last_chunk,
                metadata,
            };
            Some(StreamEvent::Artifact(update))
        }
    }
}

fn set_status(
    task: &mut Task,
    state: TaskState,
    text: Option<String>,
    now: Timestamp,
) -> StreamEvent {
    let (id, context) = (task.id.clone(), task.context.clone());
    let message = text.map(|text| {
        let message_id = MessageId::new(format!("{id}-{}", now.as_nanosecond()));
        let message = Message::text(message_id, Role::Agent, text);
        Message {
            context: context.clone(),
            task: Some(id.clone()),
            ..message
        }
    });
    let status = TaskStatus {
        state,
        message,
        timestamp: Some(now),
    };
    task.status = status.clone();
    StreamEvent::Status(StatusUpdate {
        task: id,
        context,
        status,
        metadata: Metadata::new(),
    })
}

fn merge_artifact(artifacts: &mut Vec<Artifact>, new: &Artifact, append: bool) {
    match artifacts.iter_mut().find(|artifact| artifact.id == new.id) {
        Some(found) if append => new
            .parts
            .iter()
            .for_each(|part| append_part(&mut found.parts, part)),
        Some(found) => *found = new.clone(),
        None => artifacts.push(new.clone()),
    }
}

/// Appends a part, merging consecutive plain texts.
fn append_part(parts: &mut Vec<Part>, new: &Part) {
    let is_plain = |part: &Part| {
        part.filename.is_none() && part.media_type.is_none() && part.metadata.is_empty()
    };
    match (parts.last_mut(), &new.content) {
        (Some(last), PartContent::Text(more)) if is_plain(last) && is_plain(new) => {
            match &mut last.content {
                PartContent::Text(text) => text.push_str(more),
                _ => parts.push(new.clone()),
            }
        }
        _ => parts.push(new.clone()),
    }
}

/// Returns true if the step would not change the status.
fn is_no_op(status: &TaskStatus, step: &TaskStep) -> bool {
    *step == TaskStep::from_state(status.state) && status.message.is_none()
}
