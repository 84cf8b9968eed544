//! Sends push notifications. The URLs are untrusted: their addresses are checked on connect, and
//! response bodies are not read.

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
/// Delays before each retry.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];
/// Maximum number of queued notifications of one task.
const MAX_QUEUED: usize = 8;
const TOKEN_HEADER: &str = "X-A2A-Notification-Token";

pub(crate) struct PushSender {
    client: OnceLock<Client>,
    reach: AddressPolicy,
    /// Deliveries in progress. Turns do not wait for them.
    deliveries: TaskTracker,
}

/// The queued notifications of one task, oldest first.
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
    /// Queues a notification and returns true if no delivery is running. Drops the oldest one if the
    /// queue is full, because the newest state matters most.
    fn push(&self, task: Task) -> bool {
        let mut queue = self.queue();
        if queue.tasks.len() >= MAX_QUEUED {
            queue.tasks.pop_front();
        }
        queue.tasks.push_back(task);
        !std::mem::replace(&mut queue.is_sending, true)
    }

    /// Returns the next notification. `None` ends the delivery.
    fn pop(&self) -> Option<Task> {
        let mut queue = self.queue();
        let next = queue.tasks.pop_front();
        queue.is_sending = next.is_some();
        next
    }

    /// Drops all notifications except the newest.
    fn retain_newest(&self) {
        let mut queue = self.queue();
        let surplus = queue.tasks.len().saturating_sub(1);
        queue.tasks.drain(..surplus);
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

    /// Returns when all notifications are sent or given up. Call it when no task changes anymore.
    pub async fn flush(&self) {
        self.deliveries.close();
        self.deliveries.wait().await;
    }

    /// Parses a URL and checks that it may be sent to, without resolving its host name.
    pub fn check_url(&self, url: &str) -> Result<Url, FetchError> {
        let url = parse_url(url)?;
        check_url(&url, self.reach)?;
        Ok(url)
    }

    /// Sends the current state of a task after its earlier notifications.
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
        let rows = gateway
            .stores()
            .tasks
            .push_configs(task.id.as_str())
            .await
            .unwrap_or_default();
        let targets: Vec<PushTarget> = rows
            .iter()
            .filter_map(|row| PushTarget::from_row(row).ok())
            .collect();
        // Deliveries that start after turns are suspended may run until connections close. Earlier ones
        // are abandoned when turns are suspended, to make room for them.
        let deadline = if gateway.suspend_turns().is_cancelled() {
            gateway.close_connections()
        } else {
            gateway.suspend_turns()
        };
        let deliveries = targets
            .iter()
            .map(|target| self.deliver(gateway, task, target));
        if deadline
            .run_until_cancelled(join_all(deliveries))
            .await
            .is_none()
        {
            tracing::warn!(task = %task.id, "push notification not delivered before shutdown");
        }
    }

    async fn deliver(&self, gateway: &Gateway, task: &Task, target: &PushTarget) {
        let body = match target.version {
            ProtocolVersion::V1_0 => StreamEvent::Task(task.clone()).to_json(WireFormat::V1),
            ProtocolVersion::V0_3 => task.to_json(WireFormat::V03Rpc),
        };
        let mut delays = RETRY_DELAYS.into_iter();
        while let Err(error) = self.send(target, &body).await {
            let can_retry = error.is_temporary() && !gateway.suspend_turns().is_cancelled();
            let Some(delay) = delays.next().filter(|_| can_retry) else {
                tracing::warn!(task = %task.id, %error, "cannot deliver a push notification");
                return;
            };
            tokio::time::sleep(delay).await;
        }
    }

    async fn send(&self, target: &PushTarget, body: &Value) -> Result<(), FetchError> {
        let url = self.check_url(&target.config.url)?;
        let media_type = match target.version {
            ProtocolVersion::V1_0 => lango_remote::a2a::rest::CONTENT_TYPE,
            ProtocolVersion::V0_3 => "application/json",
        };
        let request = self
            .client()?
            .post(url)
            .timeout(REQUEST_TIMEOUT)
            .header(header::CONTENT_TYPE, media_type);
        let mut request = request.body(body.to_string());
        if let Some(token) = &target.config.token {
            request = request.header(TOKEN_HEADER, token.expose());
        }
        if let Some(authentication) = &target.config.authentication {
            let credentials = authentication
                .credentials
                .as_ref()
                .map_or("", |credentials| credentials.expose());
            request = request.header(
                header::AUTHORIZATION,
                format!("{} {credentials}", authentication.scheme),
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
    fn drops_the_oldest_notifications_and_delivers_one_at_a_time() {
        let outbox = Outbox::default();
        assert!(outbox.push(task(0)));
        for number in 1..50 {
            assert!(!outbox.push(task(number)));
        }
        let ids: Vec<String> = std::iter::from_fn(|| outbox.pop())
            .map(|task| task.id.to_string())
            .collect();
        assert_eq!(ids, ["42", "43", "44", "45", "46", "47", "48", "49"]);
        assert!(outbox.push(task(50)) && !outbox.push(task(51)));
        outbox.retain_newest();
        assert_eq!(outbox.pop().unwrap().id.as_str(), "51");
    }
}
