//! Following a task from where it stands.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use lango_remote::a2a::{StreamEvent, Task};
use tokio::sync::broadcast::error::RecvError;

use super::live_tasks::{LiveTask, TaskSubscription};
use super::operations::TaskEventStream;
use crate::gateway::Gateway;
use crate::stream_limit::StreamPermit;

/// What is said last when the server ends is heard within this.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// How long a task is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamUntil {
    /// Until it is over or waits for something.
    Idle,
    /// The same, though it may be waiting at this moment.
    NextIdle,
    Terminal,
}

impl StreamUntil {
    fn is_reached_by(self, event: &StreamEvent) -> bool {
        match self {
            Self::Idle | Self::NextIdle => event.is_last(),
            Self::Terminal => is_terminal_event(event),
        }
    }

    /// Whether it is reached already, by how the task stands.
    fn is_reached_initially(self, task: &Task) -> bool {
        let state = task.status.state;
        state.is_terminal() || (self == Self::Idle && state.is_interrupted())
    }
}

fn is_terminal_event(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::Status(update) => update.status.state.is_terminal(),
        StreamEvent::Task(task) => task.status.state.is_terminal(),
        StreamEvent::Message(_) => true,
        StreamEvent::Artifact(_) => false,
    }
}

/// The task when it has come there.
pub(crate) async fn wait_until(watch: TaskSubscription, until: StreamUntil) -> Task {
    let mut following = TaskFollower::new(watch, until);
    while let Some(_event) = following.next().await {}
    following.live.stored().task
}

/// The task as it stands, then everything that happens to it.
pub(crate) fn task_stream(
    gateway: &Gateway,
    watch: TaskSubscription,
    until: StreamUntil,
    place: StreamPermit,
) -> TaskEventStream {
    let leaving = SubscriptionGuard {
        gateway: gateway.clone(),
        live: Arc::clone(&watch.live),
    };
    // Work that runs is waited for when the server ends; what only waits is not.
    let closing = match watch.live.is_running() {
        true => gateway.close_connections().clone(),
        false => gateway.shutdown_started().clone(),
    };
    let following = (TaskFollower::new(watch, until), place, leaving);
    stream::unfold(following, |(mut following, place, leaving)| async move {
        following
            .next()
            .await
            .map(|event| (event, (following, place, leaving)))
    })
    .take_until(async move {
        closing.cancelled().await;
        tokio::time::sleep(SHUTDOWN_GRACE).await;
    })
    .boxed()
}

struct TaskFollower {
    live: Arc<LiveTask>,
    subscription: Option<TaskSubscription>,
    events: Option<tokio::sync::broadcast::Receiver<StreamEvent>>,
    until: StreamUntil,
}

impl TaskFollower {
    fn new(watch: TaskSubscription, until: StreamUntil) -> Self {
        Self {
            live: Arc::clone(&watch.live),
            subscription: Some(watch),
            events: None,
            until,
        }
    }

    async fn next(&mut self) -> Option<StreamEvent> {
        if let Some(TaskSubscription { task, events, .. }) = self.subscription.take() {
            self.events = (!self.until.is_reached_initially(&task)).then_some(events);
            return Some(StreamEvent::Task(task));
        }
        let event = match self.events.as_mut()?.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => {
                let TaskSubscription { task, events, .. } = self.live.subscribe();
                self.events = Some(events);
                StreamEvent::Task(task)
            }
            Err(RecvError::Closed) => return None,
        };
        if self.until.is_reached_by(&event) {
            self.events = None;
        }
        Some(event)
    }
}

/// Whoever watched last lets the task go.
struct SubscriptionGuard {
    gateway: Gateway,
    live: Arc<LiveTask>,
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        self.gateway.a2a().live_tasks.remove_if_idle(&self.live);
    }
}
