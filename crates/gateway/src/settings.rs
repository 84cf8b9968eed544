//! `server.*`.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::a2a::A2aSettings;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSettings {
    /// The address that `lango serve` listens on. Others than this machine's own need an access token; leave TLS to a
    /// proxy in front of it.
    pub host: IpAddr,
    /// The port; 0 takes any that is free.
    pub port: u16,
    /// Names, beside those of this machine, that requests may have in their `Host`, as in `lango.example.org`.
    pub hosts: Vec<String>,
    /// Web pages of other origins that may call, as in `https://chat.example.org`.
    pub origins: Vec<String>,
    /// Bytes of one request's body.
    pub body_bytes: NonZeroUsize,
    /// Bytes of one request's head.
    pub header_bytes: NonZeroUsize,
    /// Seconds in which a head has to arrive; a connection that says nothing for so long is closed.
    pub header_seconds: NonZeroU64,
    /// Seconds in which a body has to arrive.
    pub body_seconds: NonZeroU64,
    /// A client that takes nothing for so many seconds is cut off.
    pub write_seconds: NonZeroU64,
    /// Open connections.
    pub connections: NonZeroUsize,
    /// Requests a minute of one token.
    pub requests_per_minute: NonZeroU32,
    /// Turns at once, all together.
    pub turns: NonZeroUsize,
    /// Turns at once of one principal.
    pub turns_per_principal: NonZeroUsize,
    /// Open streams of one principal that follow a session, or a task over A2A.
    pub streams_per_principal: NonZeroUsize,
    /// A stream says so often that it is still there.
    pub keep_alive_seconds: NonZeroU64,
    /// Seconds that running turns have to end when the server is told to; then they are stopped where they are, and
    /// can be gone on with.
    pub grace_seconds: u64,
    /// Other agents that give tasks over A2A.
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
            body_bytes: size(1024 * 1024),
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
