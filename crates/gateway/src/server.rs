//! The accept loop and graceful shutdown.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::gateway::Gateway;
use crate::write_timeout::WriteTimeout;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;
/// The smallest buffer size that hyper accepts.
const MIN_BUFFER_SIZE: usize = 8_192;
/// Time for connections to send their last responses after all turns have ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time to send the push notifications of tasks that were stopped.
const PUSH_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a failed accept, for example when the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

impl Gateway {
    /// Serves connections until `shutdown` completes. After that, new turns are rejected, but
    /// running turns may finish, and pending approvals can still be answered. Turns that outlast
    /// the grace period are suspended. Returns when all events are stored and connections closed.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let connections = TaskTracker::new();
        self.recover_tasks();
        let shut_down = async {
            shutdown.await;
            self.shut_down().await;
        };
        tokio::select! {
            () = self.accept_connections(listener, &connections) => {}
            () = shut_down => {}
        }
        self.close_connections().cancel();
        connections.close();
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, connections.wait()).await;
        self.runtime().wait_for_hooks().await;
    }

    /// Recovers the tasks of earlier processes in the background and notifies their subscribers.
    fn recover_tasks(&self) {
        if self.settings().a2a.is_enabled {
            let gateway = self.clone();
            self.turn_tasks()
                .spawn(async move { crate::a2a::recover_orphaned_tasks(&gateway, None).await });
        }
    }

    async fn shut_down(&self) {
        self.shutdown_started().cancel();
        self.turn_tasks().close();
        let push_sender = &self.a2a().push_sender;
        let finish = async {
            self.turn_tasks().wait().await;
            push_sender.flush().await;
        };
        if tokio::time::timeout(self.settings().grace_period(), finish)
            .await
            .is_err()
        {
            self.suspend_turns().cancel();
            self.turn_tasks().wait().await;
            let _ = tokio::time::timeout(PUSH_FLUSH_TIMEOUT, push_sender.flush()).await;
        }
    }

    async fn accept_connections(&self, listener: TcpListener, connections: &TaskTracker) {
        let router = self.router();
        let permits = Arc::new(Semaphore::new(
            self.settings()
                .connections
                .get()
                .min(Semaphore::MAX_PERMITS),
        ));
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = ClientConnection {
                        gateway: self.clone(),
                        router: router.clone(),
                        _permit: permit,
                    };
                    connections.spawn(connection.run(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }
}

struct ClientConnection {
    gateway: Gateway,
    router: Router,
    _permit: OwnedSemaphorePermit,
}

impl ClientConnection {
    async fn run(self, stream: TcpStream) {
        let metrics = self.gateway.metrics();
        metrics.connections.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.serve_http(stream).await {
            tracing::debug!(%error, "connection closed with an error");
        }
        metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }

    async fn serve_http(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let settings = self.gateway.settings();
        let stream = TokioIo::new(WriteTimeout::new(stream, settings.write_timeout()));
        let route = TowerToHyperService::new(self.router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(settings.header_timeout())
            .max_buf_size(settings.header_bytes.get().max(MIN_BUFFER_SIZE))
            .max_headers(MAX_HEADERS)
            .serve_connection(stream, route);
        tokio::pin!(connection);
        tokio::select! {
            result = connection.as_mut() => return result.map_err(io::Error::other),
            () = self.gateway.close_connections().cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.map_err(io::Error::other)
    }
}
