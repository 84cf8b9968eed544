//! Taking connections, and ending well.

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

/// More headers than this no honest client sends.
const MAX_HEADERS: usize = 64;
/// Hyper takes no smaller buffer.
const MIN_BUFFER_SIZE: usize = 8_192;
/// What is left to say when turns have ended is said within this.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// What tasks that were stopped tell to addresses is told within this.
const PUSH_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Out of files: nothing can be taken until some are closed.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

impl Gateway {
    /// Answers whoever connects until `told_to_end`. Then nothing new begins, but turns that run may finish, with whatever
    /// answers they need; those that take too long are stopped where they are. Returns when everything is said and kept.
    pub async fn serve(&self, listener: TcpListener, told_to_end: impl Future<Output = ()>) {
        let connections = TaskTracker::new();
        self.recover_tasks();
        let wind_down = async {
            told_to_end.await;
            self.shut_down().await;
        };
        tokio::select! {
            () = self.accept_connections(listener, &connections) => {}
            () = wind_down => {}
        }
        self.close_connections().cancel();
        connections.close();
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, connections.wait()).await;
        self.team().runner.wait_for_hooks().await;
    }

    /// Whoever waits for news of tasks that an earlier process left is told; nobody waits for that.
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
        let courier = &self.a2a().push_sender;
        let ending = async {
            self.turn_tasks().wait().await;
            courier.flush().await;
        };
        if tokio::time::timeout(self.settings().grace_period(), ending)
            .await
            .is_err()
        {
            self.suspend_turns().cancel();
            self.turn_tasks().wait().await;
            let _ = tokio::time::timeout(PUSH_FLUSH_TIMEOUT, courier.flush()).await;
        }
    }

    async fn accept_connections(&self, listener: TcpListener, connections: &TaskTracker) {
        let router = self.router();
        let places = Arc::new(Semaphore::new(
            self.settings()
                .connections
                .get()
                .min(Semaphore::MAX_PERMITS),
        ));
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = ClientConnection {
                        gateway: self.clone(),
                        router: router.clone(),
                        _permit: place,
                    };
                    connections.spawn(connection.run(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
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
            tracing::debug!(%error, "a connection broke off");
        }
        metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }

    async fn serve_http(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let settings = self.gateway.settings();
        let stream = TokioIo::new(WriteTimeout::new(stream, settings.write_timeout()));
        let route = TowerToHyperService::new(self.router.clone());
        let conversation = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(settings.header_timeout())
            .max_buf_size(settings.header_bytes.get().max(MIN_BUFFER_SIZE))
            .max_headers(MAX_HEADERS)
            .serve_connection(stream, route);
        tokio::pin!(conversation);
        tokio::select! {
            ended = conversation.as_mut() => return ended.map_err(io::Error::other),
            () = self.gateway.close_connections().cancelled() => conversation.as_mut().graceful_shutdown(),
        }
        conversation.await.map_err(io::Error::other)
    }
}
