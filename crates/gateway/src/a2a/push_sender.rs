//! Tells a task's news to addresses that strangers named. They are checked when connecting, and nothing they answer is read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::header;
use futures::future::join_all;
use lango_net::{AddressPolicy, FetchError, check_url, guarded_client_builder, parse_url};
use lango_remote::a2a::{ProtocolVersion, StreamEvent, Task, WireFormat};
use reqwest::{Client, Url};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::push_config::PushTarget;
use crate::gateway::Gateway;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it waits before each further try.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];
/// So much of one task's news waits to be sent.
const MAX_WAITING: usize = 8;
const TOKEN_HEADER: &str = "X-A2A-Notification-Token";

pub(crate) struct PushSender {
    client: OnceLock<Client>,
    reach: AddressPolicy,
    /// What is on its way. Turns do not wait for it.
    deliveries: TaskTracker,
}

/// A task's news that wait for those before them, the oldest first.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: Mutex<OutboxQueue>,
}

#[derive(Default)]
struct OutboxQueue {
    tasks: VecDeque<Task>,
    is_sending: bool,
}

impl Outbox {
    /// Whether nobody carries them yet. Where too many wait, the oldest go: how the task stands now matters most.
    fn push(&self, task: Task) -> bool {
        let mut waiting = self.queue();
        if waiting.tasks.len() >= MAX_WAITING {
            waiting.tasks.pop_front();
        }
        waiting.tasks.push_back(task);
        !std::mem::replace(&mut waiting.is_sending, true)
    }

    /// With nothing left, whoever carried them is done.
    fn pop(&self) -> Option<Task> {
        let mut waiting = self.queue();
        let next = waiting.tasks.pop_front();
        waiting.is_sending = next.is_some();
        next
    }

    /// Only the newest stays.
    fn retain_newest(&self) {
        let mut waiting = self.queue();
        let surplus = waiting.tasks.len().saturating_sub(1);
        waiting.tasks.drain(..surplus);
    }

    fn queue(&self) -> MutexGuard<'_, OutboxQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PushSender {
    pub fn new(reach: AddressPolicy) -> Self {
        Self {
            client: OnceLock::new(),
            reach,
            deliveries: TaskTracker::new(),
        }
    }

    /// Returns when everything is sent or given up. For when no task changes any more.
    pub async fn flush(&self) {
        self.deliveries.close();
        self.deliveries.wait().await;
    }

    /// Whether an address may be sent to, as far as it can be told without looking up its name.
    pub fn check_url(&self, url: &str) -> Result<Url, FetchError> {
        let url = parse_url(url)?;
        check_url(&url, self.reach)?;
        Ok(url)
    }

    /// Tells how a task stands, after what was told before.
    pub fn notify(&self, gateway: &Gateway, outbox: &Arc<Outbox>, mut task: Task) {
        task.history.clear();
        if !outbox.push(task) {
            return;
        }
        let (gateway, outbox) = (gateway.clone(), Arc::clone(outbox));
        self.deliveries.spawn(async move {
            while let Some(task) = outbox.pop() {
                gateway.a2a().push_sender.deliver_all(&gateway, &task).await;
                if gateway.suspend_turns().is_cancelled() {
                    outbox.retain_newest();
                }
            }
        });
    }

    async fn deliver_all(&self, gateway: &Gateway, task: &Task) {
        let kept = gateway
            .store()
            .push_configs(task.id.as_str())
            .await
            .unwrap_or_default();
        let listeners: Vec<PushTarget> = kept
            .iter()
            .filter_map(|kept| PushTarget::from_row(kept).ok())
            .collect();
        // What is begun when the server stops has until its very end; what was begun before makes room for it.
        let end = if gateway.suspend_turns().is_cancelled() {
            gateway.close_connections()
        } else {
            gateway.suspend_turns()
        };
        let deliveries = listeners
            .iter()
            .map(|listener| self.deliver(gateway, task, listener));
        if end
            .run_until_cancelled(join_all(deliveries))
            .await
            .is_none()
        {
            tracing::warn!(task = %task.id, "news of a task were not taken before the server ended");
        }
    }

    async fn deliver(&self, gateway: &Gateway, task: &Task, listener: &PushTarget) {
        let news = match listener.version {
            ProtocolVersion::V1_0 => StreamEvent::Task(task.clone()).to_json(WireFormat::V1),
            ProtocolVersion::V0_3 => task.to_json(WireFormat::V03Rpc),
        };
        let mut pauses = RETRY_DELAYS.into_iter();
        loop {
            let tried = self.send(listener, &news).await;
            let (Err(why), Some(pause)) = (&tried, pauses.next()) else {
                return tried.unwrap_or_else(
                    |why| tracing::warn!(task = %task.id, %why, "news of a task were not taken"),
                );
            };
            if !is_retryable(why) || gateway.suspend_turns().is_cancelled() {
                return tracing::warn!(task = %task.id, %why, "news of a task were refused");
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn send(&self, listener: &PushTarget, news: &Value) -> Result<(), FetchError> {
        let url = self.check_url(&listener.config.url)?;
        let media_type = match listener.version {
            ProtocolVersion::V1_0 => lango_remote::a2a::rest::CONTENT_TYPE,
            ProtocolVersion::V0_3 => "application/json",
        };
        let request = self
            .client()?
            .post(url)
            .timeout(REQUEST_TIMEOUT)
            .header(header::CONTENT_TYPE, media_type);
        let mut request = request.body(news.to_string());
        if let Some(token) = &listener.config.token {
            request = request.header(TOKEN_HEADER, token.expose());
        }
        if let Some(how) = &listener.config.authentication {
            let credentials = how
                .credentials
                .as_ref()
                .map_or("", |credentials| credentials.expose());
            request = request.header(
                header::AUTHORIZATION,
                format!("{} {credentials}", how.scheme),
            );
        }
        let response = request
            .send()
            .await
            .map_err(|error| FetchError::from_reqwest(&error))?;
        let status = response.status();
        if status.is_success() {
            Ok(())
        } else {
            Err(FetchError::Status(status.as_u16()))
        }
    }

    fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let built = guarded_client_builder(CONNECT_TIMEOUT, self.reach)
            .pool_max_idle_per_host(0)
            .build();
        let client = built.map_err(|error| FetchError::Setup(error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }
}

fn is_retryable(why: &FetchError) -> bool {
    match why {
        FetchError::Status(status) => *status >= 500 || matches!(status, 408 | 429),
        FetchError::Connection(_) | FetchError::UnknownHost(_) | FetchError::TimedOut(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_remote::a2a::{Metadata, TaskId, TaskState, TaskStatus};

    fn task(number: usize) -> Task {
        Task {
            id: TaskId::new(number.to_string()),
            context: None,
            status: TaskStatus {
                state: TaskState::Working,
                message: None,
                timestamp: None,
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Metadata::new(),
        }
    }

    #[test]
    fn the_oldest_news_make_room_and_one_carries_them() {
        let outbox = Outbox::default();
        assert!(outbox.push(task(0)));
        for number in 1..50 {
            assert!(!outbox.push(task(number)));
        }
        let taken: Vec<String> = std::iter::from_fn(|| outbox.pop())
            .map(|task| task.id.to_string())
            .collect();
        assert_eq!(taken, ["42", "43", "44", "45", "46", "47", "48", "49"]);
        assert!(outbox.push(task(50)) && !outbox.push(task(51)));
        outbox.retain_newest();
        assert_eq!(outbox.pop().unwrap().id.as_str(), "51");
    }
}
