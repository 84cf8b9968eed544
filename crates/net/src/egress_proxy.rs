//! A proxy on loopback through which a browser reaches the network.
//!
//! Invariant: every connection that leaves goes to an address that the policy allows, checked after
//! the name was resolved and right before the connection is made (B141). Redirects, popups and changed
//! DNS records need no rules of their own, because each of them is a new connection.

mod outbound;
mod relay;
mod request_head;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::address::AddressPolicy;
use crate::guarded_client::FetchError;
use outbound::OutboundHosts;

/// Returns true for hosts that may be reached. It gets the host in lower case, without a port.
pub type HostRule = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The destinations that the proxy connects to.
#[derive(Clone)]
pub struct EgressRules {
    pub policy: AddressPolicy,
    pub allows_host: HostRule,
}

impl EgressRules {
    /// Returns rules with the policy alone.
    pub fn from_policy(policy: AddressPolicy) -> Self {
        Self {
            policy,
            allows_host: Arc::new(|_| true),
        }
    }
}

/// Limits of the connections of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressLimits {
    /// Time to resolve and connect to a host that the user or an agent named.
    pub named_host: Duration,
    /// The same for all other hosts. A dead advertisement server costs a page this much.
    pub other_host: Duration,
    /// Time during which a host that did not answer is not tried again.
    pub remembered: Duration,
    /// Time without a byte in either direction.
    pub idle: Duration,
    /// Bytes of one connection in each direction.
    pub bytes: u64,
    pub connections: usize,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            named_host: Duration::from_secs(10),
            other_host: Duration::from_millis(900),
            remembered: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            bytes: 128 * 1024 * 1024,
            connections: 256,
        }
    }
}

/// A running proxy. It ends, with all its connections, when it is dropped.
pub struct EgressProxy {
    address: SocketAddr,
    outbound: Arc<OutboundHosts>,
    task: JoinHandle<()>,
}

impl EgressProxy {
    /// Starts a proxy on a free port of the loopback interface. Must be called within a tokio runtime.
    pub async fn start(rules: EgressRules, limits: EgressLimits) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let outbound = Arc::new(OutboundHosts::new(rules, limits));
        let task = tokio::spawn(accept(listener, Arc::clone(&outbound)));
        Ok(Self {
            address,
            outbound,
            task,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives a host the longer time limit, because the user or an agent named it.
    pub fn expect_host(&self, host: &str) {
        self.outbound.expect_host(host);
    }

    /// Lets connections reach a private host and port until the grant is dropped.
    pub fn grant_endpoint(&self, host: &str, port: u16) -> EndpointGrant {
        self.outbound.grant(host, port);
        EndpointGrant {
            outbound: Arc::clone(&self.outbound),
            host: host.to_owned(),
            port,
        }
    }

    /// Returns the reason why the last connection to a host and port failed, if it failed since then.
    pub fn failure_since(&self, host: &str, port: u16, since: Instant) -> Option<FetchError> {
        self.outbound.failure_since(host, port, since)
    }
}

/// A permission to reach a private host and port. It ends when it is dropped.
pub struct EndpointGrant {
    outbound: Arc<OutboundHosts>,
    host: String,
    port: u16,
}

impl Drop for EndpointGrant {
    fn drop(&mut self) {
        self.outbound.revoke(&self.host, self.port);
    }
}

impl Drop for EgressProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, outbound: Arc<OutboundHosts>) {
    let slots = Arc::new(Semaphore::new(outbound.limits().connections));
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let outbound = Arc::clone(&outbound);
                connections.spawn(async move {
                    let _slot = slot;
                    serve(stream, &outbound).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection of the browser: one request, or one tunnel. Errors end the connection; the
/// browser reports them.
async fn serve(mut client: TcpStream, outbound: &OutboundHosts) {
    let _ = client.set_nodelay(true);
    let idle = outbound.limits().idle;
    let head = tokio::time::timeout(idle, request_head::read(&mut client, Vec::new())).await;
    let Ok(Ok(head)) = head else { return };
    let request = match request_head::ProxyRequest::parse(&head) {
        Ok(request) => request,
        Err(reason) => return relay::refuse(&mut client, "400 Bad Request", &reason).await,
    };
    match outbound.connect(&request.host, request.port).await {
        Ok(server) => {
            let _ = relay::run(client, server, request, outbound.limits()).await;
        }
        Err(error) => {
            let status = match error {
                FetchError::PrivateAddress(_) | FetchError::HostNotAllowed(_) => "403 Forbidden",
                FetchError::TimedOut(_) => "504 Gateway Timeout",
                _ => "502 Bad Gateway",
            };
            relay::refuse(&mut client, status, &error.to_string()).await;
        }
    }
}

#[cfg(test)]
#[path = "egress_proxy_tests.rs"]
mod tests;
