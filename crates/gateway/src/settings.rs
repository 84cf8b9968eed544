//! The settings under `server.*`.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use lango_runtime::TurnLimiter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::a2a::A2aSettings;

/// The settings under `server`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSettings {
    /// IP address that `lango serve` listens on. Addresses other than loopback require an access
    /// token. Use a reverse proxy for TLS.
    pub host: IpAddr,
    /// Port to listen on; 0 selects a free port.
    pub port: u16,
    /// Additional host names that requests may use in their `Host` header, such as
    /// `lango.example.org`. Names of the local machine are always allowed.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call the server, such as `https://chat.example.org`.
    pub origins: Vec<String>,
    /// Maximum size of a request body in bytes. Attachments grow by a third in it.
    pub body_bytes: NonZeroUsize,
    /// Maximum size of the request line and headers in bytes.
    pub header_bytes: NonZeroUsize,
    /// Time limit in seconds for receiving the request headers. Idle connections are closed after
    /// this time.
    pub header_seconds: NonZeroU64,
    /// Time limit in seconds for receiving a request body.
    pub body_seconds: NonZeroU64,
    /// Time in seconds after which a client that does not read its response is disconnected.
    pub write_seconds: NonZeroU64,
    /// Maximum number of open connections.
    pub connections: NonZeroUsize,
    /// Maximum number of requests per minute for one token.
    pub requests_per_minute: NonZeroU32,
    /// Maximum number of concurrent turns.
    pub turns: NonZeroUsize,
    /// Maximum number of concurrent turns for one principal.
    pub turns_per_principal: NonZeroUsize,
    /// Maximum number of open event streams (sessions and A2A tasks) for one principal.
    pub streams_per_principal: NonZeroUsize,
    /// Interval in seconds between keep-alive comments on a stream.
    pub keep_alive_seconds: NonZeroU64,
    /// Time in seconds that running turns have to finish when the server shuts down. After that
    /// they are suspended and can be resumed.
    pub grace_seconds: u64,
    /// A2A: tasks from other agents.
    pub a2a: A2aSettings,
}

impl Default for ServerSettings {
    fn default() -> Self {
        const fn size(n: usize) -> NonZeroUsize {
            NonZeroUsize::MIN.saturating_add(n - 1)
        }
        const fn seconds(n: u64) -> NonZeroU64 {
            NonZeroU64::MIN.saturating_add(n - 1)
        }
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 7420,
            hosts: Vec::new(),
            origins: Vec::new(),
            body_bytes: size(16 * 1024 * 1024),
            header_bytes: size(16 * 1024),
            header_seconds: seconds(15),
            body_seconds: seconds(30),
            write_seconds: seconds(30),
            connections: size(4_096),
            requests_per_minute: NonZeroU32::MIN.saturating_add(600 - 1),
            turns: size(64),
            turns_per_principal: size(16),
            streams_per_principal: size(32),
            keep_alive_seconds: seconds(15),
            grace_seconds: 10,
            a2a: A2aSettings::default(),
        }
    }
}

impl ServerSettings {
    /// Returns the limiter of concurrent turns.
    pub fn turn_limiter(&self) -> TurnLimiter {
        TurnLimiter::new(self.turns.get(), self.turns_per_principal.get())
    }

    pub(crate) fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.header_seconds.get())
    }

    pub(crate) fn body_timeout(&self) -> Duration {
        Duration::from_secs(self.body_seconds.get())
    }

    pub(crate) fn write_timeout(&self) -> Duration {
        Duration::from_secs(self.write_seconds.get())
    }

    pub(crate) fn keep_alive_interval(&self) -> Duration {
        Duration::from_secs(self.keep_alive_seconds.get())
    }

    pub(crate) fn grace_period(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }
}
