//! Connections from the proxy to the network.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use tokio::net::TcpStream;
use tokio::time::Instant;

use super::{EgressLimits, EgressRules};
use crate::address::AddressPolicy;
use crate::guarded_client::{FetchError, LookupFn, filter_allowed, system_lookup};

/// Most hosts that are remembered. A page can name any number of them.
const MAX_REMEMBERED: usize = 4_096;

pub struct OutboundHosts {
    rules: EgressRules,
    limits: EgressLimits,
    lookup: LookupFn,
    hosts: Mutex<KnownHosts>,
}

#[derive(Default)]
struct KnownHosts {
    named: HashSet<String>,
    failures: HashMap<(String, u16), HostFailure>,
    /// Private hosts and ports that may be reached, with the number of their grants.
    granted: HashMap<(String, u16), usize>,
}

#[derive(Clone)]
struct HostFailure {
    at: Instant,
    error: FetchError,
}

impl OutboundHosts {
    pub fn new(rules: EgressRules, limits: EgressLimits) -> Self {
        Self::with_lookup(rules, limits, system_lookup)
    }

    pub fn with_lookup(rules: EgressRules, limits: EgressLimits, lookup: LookupFn) -> Self {
        Self {
            rules,
            limits,
            lookup,
            hosts: Mutex::default(),
        }
    }

    pub fn limits(&self) -> &EgressLimits {
        &self.limits
    }

    pub fn expect_host(&self, host: &str) {
        let host = plain_host(host);
        let mut hosts = self.lock();
        hosts.failures.retain(|(failed, _), _| *failed != host);
        if hosts.named.len() < MAX_REMEMBERED {
            hosts.named.insert(host);
        }
    }

    pub fn grant(&self, host: &str, port: u16) {
        let mut hosts = self.lock();
        *hosts.granted.entry((plain_host(host), port)).or_default() += 1;
    }

    pub fn revoke(&self, host: &str, port: u16) {
        let mut hosts = self.lock();
        let endpoint = (plain_host(host), port);
        if let Some(count) = hosts.granted.get_mut(&endpoint) {
            *count -= 1;
            if *count == 0 {
                hosts.granted.remove(&endpoint);
            }
        }
    }

    pub fn failure_since(&self, host: &str, port: u16, since: Instant) -> Option<FetchError> {
        let hosts = self.lock();
        let failure = hosts.failures.get(&(plain_host(host), port))?;
        (failure.at >= since).then(|| failure.error.clone())
    }

    /// Connects to a host, if the rules allow it and its address.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, FetchError> {
        if let Some(error) = self.dead_host(host, port) {
            return Err(error);
        }
        let limit = if self.lock().named.contains(host) {
            self.limits.named_host
        } else {
            self.limits.other_host
        };
        let connected = tokio::time::timeout(limit, self.connect_checked(host, port)).await;
        let result = connected.unwrap_or(Err(FetchError::TimedOut(limit)));
        let mut hosts = self.lock();
        match &result {
            Ok(_) => _ = hosts.failures.remove(&(host.to_owned(), port)),
            Err(error) => {
                if hosts.failures.len() >= MAX_REMEMBERED {
                    hosts.failures.clear();
                }
                let failure = HostFailure {
                    at: Instant::now(),
                    error: error.clone(),
                };
                hosts.failures.insert((host.to_owned(), port), failure);
            }
        }
        result
    }

    /// Returns the failure of a host that did not answer a short time ago.
    fn dead_host(&self, host: &str, port: u16) -> Option<FetchError> {
        let hosts = self.lock();
        let failure = hosts.failures.get(&(host.to_owned(), port))?;
        let is_dead = matches!(
            failure.error,
            FetchError::TimedOut(_) | FetchError::UnknownHost(_)
        );
        let is_recent = failure.at.elapsed() < self.limits.remembered;
        (is_dead && is_recent).then(|| failure.error.clone())
    }

    async fn connect_checked(&self, host: &str, port: u16) -> Result<TcpStream, FetchError> {
        if !(self.rules.allows_host)(host) {
            return Err(FetchError::HostNotAllowed(host.to_owned()));
        }
        let found = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => (self.lookup)(host.to_owned())
                .await
                .map_err(|_| FetchError::UnknownHost(host.to_owned()))?,
        };
        let is_granted = self.lock().granted.contains_key(&(host.to_owned(), port));
        let policy = match is_granted {
            true => AddressPolicy::Anywhere,
            false => self.rules.policy,
        };
        let allowed = filter_allowed(found, policy, host.to_owned())?;
        let mut last = FetchError::UnknownHost(host.to_owned());
        for mut address in allowed {
            address.set_port(port);
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => last = FetchError::Connection(error.to_string()),
            }
        }
        Err(last)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, KnownHosts> {
        self.hosts
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Returns a host as requests name it: in lower case, an IPv6 address without brackets.
fn plain_host(host: &str) -> String {
    host.trim_matches(['[', ']']).to_ascii_lowercase()
}

impl EgressLimits {
    /// Returns limits that a test does not wait for.
    #[cfg(test)]
    pub(super) fn short() -> Self {
        Self {
            idle: std::time::Duration::from_secs(5),
            bytes: 1_000,
            ..Self::default()
        }
    }
}
