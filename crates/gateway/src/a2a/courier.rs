//! Tells a task's news to addresses that strangers named. They are checked when connecting, and nothing they answer is read.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::header;
use futures::future::join_all;
use lango_net::{FetchError, Reach, check, checked_builder, parsed};
use lango_remote::a2a::{StreamEvent, Task, Version, Wire};
use reqwest::{Client, Url};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::listening::Listener;
use crate::gateway::Gateway;

const CONNECT: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(10);
/// How long it waits before each further try.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];
const TOKEN: &str = "X-A2A-Notification-Token";

pub(crate) struct Courier {
    client: OnceLock<Client>,
    reach: Reach,
}

impl Courier {
    pub fn new(reach: Reach) -> Self {
        Self { client: OnceLock::new(), reach }
    }

    /// Whether an address may be sent to, as far as it can be told without looking up its name.
    pub fn check(&self, url: &str) -> Result<Url, FetchError> {
        let url = parsed(url)?;
        check(&url, self.reach)?;
        Ok(url)
    }

    /// Tells how a task stands, after what was told before.
    pub fn tell(&self, gateway: &Gateway, mut task: Task, before: Option<JoinHandle<()>>) -> JoinHandle<()> {
        task.history.clear();
        let gateway = gateway.clone();
        let tracker = gateway.pumps().clone();
        tracker.spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            let kept = gateway.store().task_listeners(task.id.as_str()).await.unwrap_or_default();
            let listeners: Vec<Listener> = kept.iter().filter_map(|kept| Listener::read(kept).ok()).collect();
            let courier = &gateway.a2a().courier;
            join_all(listeners.iter().map(|listener| courier.deliver(&gateway, &task, listener))).await;
        })
    }

    async fn deliver(&self, gateway: &Gateway, task: &Task, listener: &Listener) {
        let news = match listener.version {
            Version::V1_0 => StreamEvent::Task(task.clone()).write(Wire::V1),
            Version::V0_3 => task.write(Wire::V03Rpc),
        };
        let mut pauses = PAUSES.into_iter();
        loop {
            let tried = self.send(listener, &news).await;
            let (Err(why), Some(pause)) = (&tried, pauses.next()) else {
                return tried.unwrap_or_else(
                    |why| tracing::warn!(task = %task.id, %why, "news of a task were not taken"),
                );
            };
            if !is_worth_another_try(why) {
                return tracing::warn!(task = %task.id, %why, "news of a task were refused");
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = gateway.parking().cancelled() => return,
            }
        }
    }

    async fn send(&self, listener: &Listener, news: &Value) -> Result<(), FetchError> {
        let url = self.check(&listener.config.url)?;
        let media_type = match listener.version {
            Version::V1_0 => lango_remote::a2a::rest::CONTENT_TYPE,
            Version::V0_3 => "application/json",
        };
        let request = self.client()?.post(url).timeout(WHOLE).header(header::CONTENT_TYPE, media_type);
        let mut request = request.body(news.to_string());
        if let Some(token) = &listener.config.token {
            request = request.header(TOKEN, token.expose());
        }
        if let Some(how) = &listener.config.authentication {
            let credentials = how.credentials.as_ref().map_or("", |credentials| credentials.expose());
            request = request.header(header::AUTHORIZATION, format!("{} {credentials}", how.scheme));
        }
        let response = request.send().await.map_err(|error| FetchError::of(&error))?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(FetchError::Status(status.as_u16())) }
    }

    fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let built = checked_builder(CONNECT, self.reach).pool_max_idle_per_host(0).build();
        let client = built.map_err(|error| FetchError::Setup(error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }
}

fn is_worth_another_try(why: &FetchError) -> bool {
    match why {
        FetchError::Status(status) => *status >= 500 || matches!(status, 408 | 429),
        FetchError::Connection(_) | FetchError::UnknownHost(_) | FetchError::TimedOut(_) => true,
        _ => false,
    }
}
