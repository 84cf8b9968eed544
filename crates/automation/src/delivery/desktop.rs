//! Deliveries as desktop notifications, with `notify-send`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use lango_text::sanitize::truncated_line;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::channels::{DeliverySender, SendError, SentMessage};
use super::message::OutgoingMessage;

const PROGRAM: &str = "notify-send";
const MAX_TITLE_CHARS: usize = 120;
const MAX_TEXT_BYTES: usize = 1_000;
const MAX_ERROR_BYTES: u64 = 1_000;
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);

/// The variables that lead to the desktop of the user.
const DESKTOP_VARIABLES: [&str; 6] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// The program that shows notifications.
pub struct DesktopChannel {
    program: Option<PathBuf>,
    variables: Vec<(String, String)>,
}

impl DesktopChannel {
    /// Looks for the program in the `PATH` of these variables.
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Self {
        let path = variables.get("PATH").map_or("", String::as_str);
        let program = std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(PROGRAM))
            .find(|file| is_executable(file));
        let visible = variables
            .iter()
            .filter(|(name, _)| DESKTOP_VARIABLES.contains(&name.as_str()));
        Self {
            program,
            variables: visible
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// Returns the program, or the reason why there are no notifications.
    pub(super) fn program(&self) -> Result<&Path, String> {
        self.program.as_deref().ok_or_else(|| {
            format!("`{PROGRAM}` is not installed, so there are no desktop notifications")
        })
    }
}

pub(super) struct DesktopSender<'a> {
    pub channel: &'a DesktopChannel,
    pub program: &'a Path,
}

impl DeliverySender for DesktopSender<'_> {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>> {
        async move {
            self.notify(message).await.map_err(SendError::Temporary)?;
            Ok(SentMessage::default())
        }
        .boxed()
    }
}

impl DesktopSender<'_> {
    async fn notify(&self, message: OutgoingMessage<'_>) -> Result<(), String> {
        let mut command = Command::new(self.program);
        command
            .args(["--app-name=Lango", "--"])
            .arg(message.title(MAX_TITLE_CHARS))
            .arg(escape_markup(&message.text(MAX_TEXT_BYTES)))
            .env_clear()
            .envs(self.channel.variables.iter().cloned())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start `{PROGRAM}`: {error}"))?;
        tokio::time::timeout(NOTIFY_TIMEOUT, wait(&mut child))
            .await
            .map_err(|_late| format!("`{PROGRAM}` took longer than {NOTIFY_TIMEOUT:?}"))?
    }
}

/// Waits for the end of the program, and returns the start of its error output if it failed.
async fn wait(child: &mut Child) -> Result<(), String> {
    let mut told = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(MAX_ERROR_BYTES).read_to_end(&mut told).await;
    }
    let status = child
        .wait()
        .await
        .map_err(|error| format!("`{PROGRAM}`: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let told = truncated_line(&String::from_utf8_lossy(&told), 200);
    Err(format!("`{PROGRAM}` failed ({status}): {told}"))
}

/// Desktops read the text as markup with links and pictures.
fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
