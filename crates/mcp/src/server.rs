//! A configured server: started on first use, paused after repeated failures, never called twice for one
//! effect.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lango_domain::circuit_breaker::CircuitBreaker;
use lango_domain::{Content, Generation, ToolOutputSink};
use lango_text::sanitize::truncated_line;
use rmcp::ServiceError;
use rmcp::model::{CallToolResult, JsonObject};
use tokio::time::{Instant, timeout};

use crate::connection::Connection;
use crate::error::McpError;
use crate::launch::{LaunchEnvironment, ServerAddress};
use crate::manifest::Manifest;
use crate::result::to_content;
use crate::settings::{McpServerSettings, ServerKey};
use crate::trust::TrustFile;

const MAX_ERROR_CHARS: usize = 4_000;

/// The files of a server in Lango's data folder.
#[derive(Clone, Debug)]
pub struct ServerFiles {
    folder: PathBuf,
}

impl ServerFiles {
    /// `data` is Lango's data folder.
    pub fn new(data: &std::path::Path) -> Self {
        Self {
            folder: data.join("mcp"),
        }
    }

    pub fn manifest(&self, key: &ServerKey) -> PathBuf {
        self.folder.join(format!("{key}.manifest.json"))
    }

    /// The file with the standard error of a server's program.
    pub fn log(&self, key: &ServerKey) -> PathBuf {
        self.folder.join(format!("{key}.log"))
    }

    pub fn trust(&self) -> TrustFile {
        TrustFile::new(self.folder.join("trusted.json"))
    }

    /// Removes everything that is known about a server.
    pub fn remove(&self, key: &ServerKey) -> std::io::Result<()> {
        self.trust().remove(key)?;
        for file in [self.manifest(key), self.log(key)] {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

pub struct McpServer {
    pub key: ServerKey,
    pub settings: McpServerSettings,
    address: ServerAddress,
    environment: LaunchEnvironment,
    files: ServerFiles,
    /// Advanced when the server has other tools than before.
    generation: Generation,
    live: tokio::sync::Mutex<Option<Arc<LiveServer>>>,
    circuit: Mutex<CircuitBreaker>,
}

/// A connected server, with the tools that it has now.
struct LiveServer {
    connection: Connection,
    fingerprints: Mutex<BTreeMap<String, String>>,
}

impl McpServer {
    pub fn new(
        (key, settings): (ServerKey, McpServerSettings),
        address: ServerAddress,
        environment: LaunchEnvironment,
        files: ServerFiles,
        generation: Generation,
    ) -> Self {
        Self {
            key,
            settings,
            address,
            environment,
            files,
            generation,
            live: tokio::sync::Mutex::default(),
            circuit: Mutex::default(),
        }
    }

    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    pub fn files(&self) -> &ServerFiles {
        &self.files
    }

    /// Identifies the command line or the URL.
    pub fn launch(&self) -> String {
        self.address.fingerprint()
    }

    /// Returns what is known about the server without starting it.
    pub fn manifest(&self) -> Option<Manifest> {
        Manifest::load(&self.files.manifest(&self.key), &self.launch())
    }

    /// Starts the server, if it does not run, and returns what it offers now.
    pub async fn refresh(&self) -> Result<Manifest, McpError> {
        let live = self.live().await?;
        self.update(&live).await
    }

    /// Calls a tool whose definition must be the confirmed one.
    pub async fn call(
        &self,
        (tool, fingerprint): (&str, &str),
        arguments: JsonObject,
        sink: ToolOutputSink,
    ) -> Result<Content, McpError> {
        if let Some(reason) = self.circuit().open_reason(Instant::now()) {
            return Err(self.unavailable(reason));
        }
        let result = self.call_live((tool, fingerprint), arguments, sink).await;
        match &result {
            Err(error) if error.is_server_failure() => {
                let mut circuit = self.circuit();
                circuit.record_failure(&truncated_line(&error.to_string(), 200), Instant::now());
            }
            _ => self.circuit().record_success(),
        }
        result
    }

    async fn call_live(
        &self,
        (tool, fingerprint): (&str, &str),
        arguments: JsonObject,
        sink: ToolOutputSink,
    ) -> Result<Content, McpError> {
        let live = self.live().await?;
        if live.connection.has_other_tools() {
            self.update(&live).await?;
        }
        let current = live.fingerprints().get(tool).cloned();
        if current.as_deref() != Some(fingerprint) {
            return Err(McpError::Changed {
                key: self.key.to_string(),
                tool: tool.to_owned(),
            });
        }
        let seconds = self.settings.seconds.get();
        let call = live.connection.call(tool, arguments, sink);
        match timeout(Duration::from_secs(seconds), call).await {
            Ok(Ok(result)) => read_result(result),
            Ok(Err(error)) => Err(self.call_error(&live, error).await),
            // Dropping the call has cancelled it.
            Err(_elapsed) => Err(McpError::TimedOut {
                key: self.key.to_string(),
                seconds,
            }),
        }
    }

    /// Returns the running server, or starts it. A server that has ended since is started again.
    async fn live(&self) -> Result<Arc<LiveServer>, McpError> {
        let mut slot = self.live.lock().await;
        if let Some(live) = slot.as_ref().filter(|live| live.connection.end().is_none()) {
            return Ok(Arc::clone(live));
        }
        *slot = None;
        let limit = Duration::from_secs(self.settings.start_seconds.get());
        let started = match timeout(limit, self.start()).await {
            Ok(started) => started?,
            Err(_elapsed) => {
                let seconds = limit.as_secs();
                return Err(self.unavailable(format!("it did not start within {seconds} s")));
            }
        };
        let live = Arc::new(started);
        *slot = Some(Arc::clone(&live));
        Ok(live)
    }

    async fn start(&self) -> Result<LiveServer, McpError> {
        let known = self.manifest().map(|manifest| manifest.revision);
        let log = self.files.log(&self.key);
        let open = |revision| Connection::open(&self.address, (&self.environment, &log), revision);
        let mut connection = open(known.as_deref()).await;
        if connection.is_err() && known.is_some() {
            // It may use another revision than before.
            connection = open(None).await;
        }
        let connection = connection.map_err(|reason| self.unavailable(reason))?;
        let live = LiveServer {
            connection,
            fingerprints: Mutex::default(),
        };
        self.update(&live).await?;
        Ok(live)
    }

    /// Lists the tools of the server, and stores the list if it differs from the known one.
    async fn update(&self, live: &LiveServer) -> Result<Manifest, McpError> {
        let listed = live.connection.manifest(&self.launch()).await;
        let manifest = match listed {
            Ok(manifest) => manifest,
            Err(error) => {
                let reason = match live.connection.end() {
                    Some(reason) => reason,
                    None => truncated_line(&error.to_string(), 300),
                };
                return Err(self.unavailable(reason));
            }
        };
        let fingerprints = manifest
            .tools
            .iter()
            .map(|tool| (tool.name.clone(), tool.fingerprint()));
        *live.fingerprints() = fingerprints.collect();
        if self.manifest().as_ref() != Some(&manifest) {
            if let Err(error) = manifest.save(&self.files.manifest(&self.key)) {
                tracing::warn!("the tools of {} cannot be stored: {error}", self.key);
            }
            self.generation.advance();
        }
        Ok(manifest)
    }

    async fn call_error(&self, live: &LiveServer, error: ServiceError) -> McpError {
        let key = self.key.to_string();
        match error {
            ServiceError::McpError(error) => McpError::Tool {
                message: truncated_line(&error.message, MAX_ERROR_CHARS),
            },
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => McpError::Died {
                key,
                reason: live.connection.broken_reason().await,
            },
            ServiceError::Cancelled { .. } => McpError::Died {
                key,
                reason: "it cancelled the call".to_owned(),
            },
            other => McpError::Protocol {
                key,
                reason: truncated_line(&other.to_string(), 300),
            },
        }
    }

    fn unavailable(&self, reason: impl Into<String>) -> McpError {
        McpError::Unavailable {
            key: self.key.to_string(),
            reason: reason.into(),
        }
    }

    fn circuit(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveServer {
    fn fingerprints(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_result(result: CallToolResult) -> Result<Content, McpError> {
    let is_error = result.is_error == Some(true);
    let content = to_content(result);
    if is_error {
        let message: String = content.text.chars().take(MAX_ERROR_CHARS).collect();
        return Err(McpError::Tool { message });
    }
    Ok(content)
}
