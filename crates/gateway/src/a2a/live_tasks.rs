//! Tasks that are worked on or watched, and how they change.

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

/// Whoever falls behind by more is told how the task stands, instead of how it came there.
const CHANNEL_CAPACITY: usize = 256;

#[derive(Default)]
pub(crate) struct LiveTasks {
    tasks: Mutex<HashMap<String, Arc<LiveTask>>>,
}

/// A task that can change at any moment.
pub(crate) struct LiveTask {
    state: Mutex<LiveTaskState>,
    /// One change at a time: kept, then shown.
    change_lock: tokio::sync::Mutex<()>,
    events: Sender<StreamEvent>,
}

struct LiveTaskState {
    stored: StoredTask,
    /// While somebody works on it.
    work: Option<CancellationToken>,
    outbox: Arc<Outbox>,
}

/// A task as it stands, and what happens to it from then on.
pub(crate) struct TaskSubscription {
    pub live: Arc<LiveTask>,
    pub task: Task,
    pub events: Receiver<StreamEvent>,
}

impl LiveTasks {
    /// A live task of the principal's.
    pub fn get(&self, principal: &Principal, id: &str) -> Option<Arc<LiveTask>> {
        let live = self.tasks().get(id).cloned()?;
        let is_own = live.state().stored.principal == *principal;
        is_own.then_some(live)
    }

    /// Makes a task live; one that is already stays as it is.
    pub fn get_or_insert(&self, kept: StoredTask) -> Arc<LiveTask> {
        let id = kept.task.id.to_string();
        let new = || {
            let state = Mutex::new(LiveTaskState {
                stored: kept,
                work: None,
                outbox: Arc::default(),
            });
            let (changing, events) = (
                tokio::sync::Mutex::default(),
                broadcast::channel(CHANNEL_CAPACITY).0,
            );
            Arc::new(LiveTask {
                state,
                change_lock: changing,
                events,
            })
        };
        Arc::clone(self.tasks().entry(id).or_insert_with(new))
    }

    /// Lets go of a task, if nobody works on it or watches it.
    pub fn remove_if_idle(&self, live: &LiveTask) {
        let mut tasks = self.tasks();
        let state = live.state();
        if state.work.is_none() && (state.stored.is_terminal() || live.events.receiver_count() == 0)
        {
            tasks.remove(state.stored.task.id.as_str());
        }
    }

    /// Takes away a task that never began.
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

    /// Takes the task to work on it; nothing where somebody does already.
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

    /// Whoever works on it ends; false where nobody does.
    pub fn cancel_work(&self) -> bool {
        let state = self.state();
        state.work.iter().for_each(CancellationToken::cancel);
        state.work.is_some()
    }

    pub fn is_running(&self) -> bool {
        self.state().work.is_some()
    }

    /// Keeps a step, shows it, and tells those who left an address. A task that is over stays as it is.
    pub async fn apply_step(&self, gateway: &Gateway, step: TaskStep) {
        let _one = self.change_lock.lock().await;
        self.apply_change(gateway, self.stored(), step).await;
    }

    /// Adds what the caller said, with the step that follows from it; nothing else happens to the task in between. What
    /// was heard before has no step of its own.
    pub async fn add_message(
        &self,
        gateway: &Gateway,
        message: Message,
        find_out: impl FnOnce() -> Result<TaskStep, ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let _one = self.change_lock.lock().await;
        if self.state().stored.has_message(&message) {
            return Ok(());
        }
        let step = find_out()?;
        let mut kept = self.stored();
        append_question(&mut kept.task);
        append_message(&mut kept.task, message);
        self.apply_change(gateway, kept, step).await;
        Ok(())
    }

    /// Invariant: only whoever holds `changing` calls this, so that what is kept is what was shown last.
    async fn apply_change(&self, gateway: &Gateway, mut kept: StoredTask, step: TaskStep) {
        if kept.is_terminal() || is_no_op(&kept.task.status, &step) {
            return;
        }
        let is_chunk = matches!(step, TaskStep::Artifact { .. });
        let event = apply(&mut kept, step, gateway.now());
        if !is_chunk && let Err(trouble) = gateway.store().update_task(kept.to_row()).await {
            tracing::error!(%trouble, "a task could not be kept");
        }
        let mut state = self.state();
        state.stored = kept;
        let Some(event) = event else { return };
        if let StreamEvent::Status(_) = event {
            gateway
                .a2a()
                .push_sender
                .notify(gateway, &state.outbox, state.stored.task.clone());
        }
        let _ = self.events.send(event);
    }

    /// Carries the work to its end; it always leaves the task over or waiting.
    pub async fn run_steps(self: Arc<Self>, gateway: Gateway, mut steps: TaskSteps) {
        while let Some(step) = steps.next().await {
            self.apply_step(&gateway, step).await;
        }
        let state = self.stored().task.status.state;
        if !state.is_terminal() && !state.is_interrupted() {
            self.apply_step(
                &gateway,
                TaskStep::with_message(TaskState::Failed, "The work ended without a result."),
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

/// What a step makes of a task, and what watchers are told.
pub(crate) fn apply(kept: &mut StoredTask, step: TaskStep, now: Timestamp) -> Option<StreamEvent> {
    match step {
        TaskStep::Turn(turn) => {
            kept.turn = Some(turn);
            None
        }
        TaskStep::Status { state, text: words } => {
            kept.pending_call = None;
            Some(set_status(&mut kept.task, state, words, now))
        }
        TaskStep::Question { call, text: words } => {
            kept.pending_call = Some(call);
            Some(set_status(
                &mut kept.task,
                TaskState::InputRequired,
                Some(words),
                now,
            ))
        }
        TaskStep::Artifact {
            artifact,
            append,
            last,
        } => {
            let (id, context) = (kept.task.id.clone(), kept.task.context.clone());
            merge_artifact(&mut kept.task.artifacts, &artifact, append);
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
    words: Option<String>,
    now: Timestamp,
) -> StreamEvent {
    let (id, context) = (task.id.clone(), task.context.clone());
    let message = words.map(|words| {
        let own = MessageId::new(format!("{id}-{}", now.as_nanosecond()));
        let message = Message::text(own, Role::Agent, words);
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

/// Pieces of one text become one text.
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

fn is_no_op(status: &TaskStatus, step: &TaskStep) -> bool {
    *step == TaskStep::from_state(status.state) && status.message.is_none()
}
