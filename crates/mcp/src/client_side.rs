//! Lango's side of a connection: hears the notifications of a server. Roots and sampling are not offered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lango_domain::ToolOutputSink;
use lango_text::sanitize::truncated_line;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

const MAX_PROGRESS_CHARS: usize = 200;

/// State that the server's notifications change. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ClientSide {
    is_list_stale: Arc<AtomicBool>,
    /// The sinks of running calls, by a number of their own.
    running: Arc<Mutex<BTreeMap<u64, ToolOutputSink>>>,
    next_call: Arc<AtomicU64>,
}

impl ClientSide {
    /// Returns true once after the server has announced other tools.
    pub fn take_stale(&self) -> bool {
        self.is_list_stale.swap(false, Ordering::AcqRel)
    }

    /// Shows the progress of a call until the guard is dropped.
    pub fn show_progress(&self, sink: ToolOutputSink) -> ProgressGuard {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        self.running().insert(call, sink);
        ProgressGuard {
            side: self.clone(),
            call,
        }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, ToolOutputSink>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call whose progress is shown.
pub(crate) struct ProgressGuard {
    side: ClientSide,
    call: u64,
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        self.side.running().remove(&self.call);
    }
}

impl ClientHandler for ClientSide {
    fn get_info(&self) -> ClientConfig {
        let lango = Implementation::new("lango", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(ClientCapabilities::default(), lango);
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.is_list_stale.store(true, Ordering::Release);
    }

    /// Shows the progress of the only running call. With several it is not known which one is meant.
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let running = self.running();
        let mut sinks = running.values();
        if let (Some(sink), None) = (sinks.next(), sinks.next()) {
            sink.send(&progress_line(&progress));
        }
    }
}

fn progress_line(progress: &ProgressNotificationParam) -> String {
    let message = progress.message.as_deref().unwrap_or_default();
    let message = truncated_line(message, MAX_PROGRESS_CHARS);
    let count = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    format!("{}\n", format!("{count} {message}").trim_end())
}
