//! Streams of a task's events.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use lango_remote::a2a::{StreamEvent, Task};
use tokio::sync::broadcast::error::RecvError;

use super::live_tasks::{LiveTask, TaskSubscription};
use super::operations::TaskEventStream;
use crate::gateway::Gateway;
use crate::stream_limit::StreamPermit;

/// Time for subscribers to receive the last events on shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The end of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamUntil {
    /// The task has ended or waits for input.
    Idle,
    /// Like [`Self::Idle`], but ignores that the task may wait for input at the start.
    NextIdle,
    /// The task has ended.
    Terminal,
}

impl StreamUntil {
    fn is_reached_by(self, event: &StreamEvent) -> bool {
        match self {
            Self::Idle | Self::NextIdle => event.is_last(),
            Self::Terminal => is_terminal_event(event),
        }
    }

    /// Returns true if the current state of the task already ends the subscription.
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

/// Waits for the end of a subscription and returns the task.
pub(crate) async fn wait_until(subscription: TaskSubscription, until: StreamUntil) -> Task {
    let mut follower = TaskFollower::new(subscription, until);
    while let Some(_event) = follower.next().await {}
    follower.live.stored().task
}

/// Streams the current task, then its events.
pub(crate) fn task_stream(
    gateway: &Gateway,
    subscription: TaskSubscription,
    until: StreamUntil,
    permit: StreamPermit,
) -> TaskEventStream {
    let guard = SubscriptionGuard {
        gateway: gateway.clone(),
        live: Arc::clone(&subscription.live),
    };
    // Streams of running tasks stay open until connections close; others end when shutdown starts.
    let shutdown = match subscription.live.is_running() {
        true => gateway.close_connections().clone(),
        false => gateway.shutdown_started().clone(),
    };
    let state = (TaskFollower::new(subscription, until), permit, guard);
    stream::unfold(state, |(mut follower, permit, guard)| async move {
        follower
            .next()
            .await
            .map(|event| (event, (follower, permit, guard)))
    })
    .take_until(async move {
        shutdown.cancelled().await;
        tokio::time::sleep(SHUTDOWN_GRACE).await;
    })
    .boxed()
}

struct TaskFollower {
    live: Arc<LiveTask>,
    /// Taken when the current task is sent.
    initial: Option<TaskSubscription>,
    events: Option<tokio::sync::broadcast::Receiver<StreamEvent>>,
    until: StreamUntil,
}

impl TaskFollower {
    fn new(subscription: TaskSubscription, until: StreamUntil) -> Self {
        Self {
            live: Arc::clone(&subscription.live),
            initial: Some(subscription),
            events: None,
            until,
        }
    }

    async fn next(&mut self) -> Option<StreamEvent> {
        if let Some(TaskSubscription { task, events, .. }) = self.initial.take() {
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

/// Removes the live task after its last subscription.
struct SubscriptionGuard {
    gateway: Gateway,
    live: Arc<LiveTask>,
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        self.gateway.a2a().live_tasks.remove_if_idle(&self.live);
    }
}
