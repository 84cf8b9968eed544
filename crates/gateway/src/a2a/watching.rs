//! Following a task from where it stands.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use lango_remote::a2a::{StreamEvent, Task};
use tokio::sync::broadcast::error::RecvError;

use super::board::{Live, Watch};
use super::desk::Events;
use crate::gateway::Gateway;
use crate::streams::Opened;

/// What is said last when the server ends is heard within this.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a task is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until it is over or waits for something.
    Rest,
    /// The same, though it may be waiting at this moment.
    RestAgain,
    End,
}

impl Until {
    fn is_reached_by(self, event: &StreamEvent) -> bool {
        match self {
            Self::Rest | Self::RestAgain => event.is_last(),
            Self::End => is_end(event),
        }
    }

    /// Whether it is reached already, by how the task stands.
    fn is_reached_at_first(self, task: &Task) -> bool {
        let state = task.status.state;
        state.is_terminal() || (self == Self::Rest && state.is_interrupted())
    }
}

fn is_end(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::Status(update) => update.status.state.is_terminal(),
        StreamEvent::Task(task) => task.status.state.is_terminal(),
        StreamEvent::Message(_) => true,
        StreamEvent::Artifact(_) => false,
    }
}

/// The task when it has come there.
pub(crate) async fn done(watch: Watch, until: Until) -> Task {
    let mut following = Following::new(watch, until);
    while let Some(_event) = following.next().await {}
    following.live.kept().task
}

/// The task as it stands, then everything that happens to it.
pub(crate) fn watched(gateway: &Gateway, watch: Watch, until: Until, place: Opened) -> Events {
    let leaving = Leaving { gateway: gateway.clone(), live: Arc::clone(&watch.live) };
    // Work that runs is waited for when the server ends; what only waits is not.
    let closing = match watch.live.is_worked_on() {
        true => gateway.over().clone(),
        false => gateway.closing().clone(),
    };
    let following = (Following::new(watch, until), place, leaving);
    stream::unfold(following, |(mut following, place, leaving)| async move {
        following.next().await.map(|event| (event, (following, place, leaving)))
    })
    .take_until(async move {
        closing.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    })
    .boxed()
}

struct Following {
    live: Arc<Live>,
    watch: Option<Watch>,
    events: Option<tokio::sync::broadcast::Receiver<StreamEvent>>,
    until: Until,
}

impl Following {
    fn new(watch: Watch, until: Until) -> Self {
        Self { live: Arc::clone(&watch.live), watch: Some(watch), events: None, until }
    }

    async fn next(&mut self) -> Option<StreamEvent> {
        if let Some(Watch { task, events, .. }) = self.watch.take() {
            self.events = (!self.until.is_reached_at_first(&task)).then_some(events);
            return Some(StreamEvent::Task(task));
        }
        let event = match self.events.as_mut()?.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => {
                let Watch { task, events, .. } = self.live.watch();
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
struct Leaving {
    gateway: Gateway,
    live: Arc<Live>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.gateway.a2a().board.tidy(&self.live);
    }
}
