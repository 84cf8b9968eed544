//! Runs one command, from start to end.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{ToolError, ToolOutputSink};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::capture::{Capture, OutputRedaction};
use super::command::CommandRequest;
use super::outputs::StoredOutput;
use super::{ShellParts, environment};
use crate::files::private_directory::remove_folder;
use crate::sandbox::{
    ExceededLimit, OUTER_ARG, SandboxError, SandboxMessage, SandboxMode, SandboxSpec,
    new_temp_path, readable_etc,
};

/// Time limit for the helper to kill all processes.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// A started command. Dropping it kills the command and all of its descendants.
pub struct RunningCommand {
    child: Child,
    output: ChildStdout,
    /// The helper kills everything when this pipe is closed.
    messages: Option<Lines<BufReader<ChildStderr>>>,
    /// The complete output.
    stored_output: StoredOutput,
    /// Applied before anything is stored, captured or shown.
    redaction: OutputRedaction,
    capture: Capture,
    confined_by: Vec<String>,
    started: Instant,
    starts_programs: bool,
    temp: Option<TempDirGuard>,
}

/// The result of a command.
pub struct CommandResult {
    pub end: CommandEnd,
    pub duration: Duration,
    pub capture: Capture,
    /// The id of the stored output, if it was stored.
    pub id: Option<String>,
    /// True if it was allowed to start other programs.
    pub starts_programs: bool,
}

pub enum CommandEnd {
    Exited(i32),
    /// A limit was reached.
    Stopped(ExceededLimit),
    TimedOut,
    Failed(SandboxError),
    /// The helper itself was killed.
    Lost,
}

impl RunningCommand {
    pub async fn start(
        parts: &ShellParts,
        public: &[PathBuf],
        request: CommandRequest,
        stored_output: StoredOutput,
        redactor: &SecretRedactor,
    ) -> Result<Self, ToolError> {
        let failed =
            |error: &dyn std::fmt::Display| ToolError(format!("cannot start the command: {error}"));
        let is_confined = parts.settings.mode() != SandboxMode::Off;
        let temp = is_confined
            .then(|| new_temp_path(&parts.temp_root()))
            .transpose();
        let temp = temp.map_err(|error| failed(&error))?.map(TempDirGuard);
        let mut spec = build_spec(parts, &request, temp.as_ref().map(|temp| temp.0.as_path()));
        spec.public = public.to_vec();
        let starts_programs = spec.starts_programs;
        let mut input = spec.to_frame().map_err(|error| failed(&error))?;
        input.extend(request.stdin.as_bytes());
        let mut command = Command::new(&parts.helper);
        command.arg(OUTER_ARG).env_clear().current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(output), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(failed(&"no pipes"));
        };
        // Write in the background: a command may never read its input.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input).await;
        });
        Ok(Self {
            child,
            output,
            messages: Some(BufReader::new(stderr).lines()),
            stored_output,
            redaction: OutputRedaction::new(redactor),
            capture: Capture::default(),
            confined_by: Vec::new(),
            started: Instant::now(),
            starts_programs,
            temp,
        })
    }

    /// Returns the id of the stored output.
    pub fn id(&self) -> &str {
        &self.stored_output.id
    }

    /// Streams the output until the command ends or times out.
    pub async fn finish(&mut self, timeout: Duration, sink: &ToolOutputSink) -> CommandResult {
        let end = match tokio::time::timeout(timeout, self.read_output(sink)).await {
            Ok(end) => end,
            Err(_elapsed) => CommandEnd::TimedOut,
        };
        let rest = self.redaction.finish();
        self.keep(&rest, sink);
        self.shut_down().await;
        let id = self
            .stored_output
            .is_stored()
            .then(|| self.stored_output.id.clone());
        CommandResult {
            end,
            duration: self.started.elapsed(),
            capture: std::mem::take(&mut self.capture),
            id,
            starts_programs: self.starts_programs,
        }
    }

    async fn read_output(&mut self, sink: &ToolOutputSink) -> CommandEnd {
        let mut piece = vec![0; READ_BUFFER_BYTES];
        let (mut end, mut is_open) = (None, true);
        while is_open {
            let message = async {
                match &mut self.messages {
                    Some(lines) if end.is_none() => lines.next_line().await.ok().flatten(),
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                read = self.output.read(&mut piece) => match read {
                    Ok(length) if length > 0 => {
                        let kept = self.redaction.push(&piece[..length]);
                        self.keep(&kept, sink);
                    }
                    _ => is_open = false,
                },
                message = message => end = self.apply_message(message),
            }
        }
        match (end, &mut self.messages) {
            (Some(end), _) => end,
            (None, Some(_)) => self.wait_for_end().await,
            (None, None) => CommandEnd::Lost,
        }
    }

    fn keep(&mut self, piece: &[u8], sink: &ToolOutputSink) {
        if !piece.is_empty() {
            self.stored_output.write(piece);
            sink.send(&self.capture.push(piece));
        }
    }

    /// Waits for the final message after the output was closed.
    async fn wait_for_end(&mut self) -> CommandEnd {
        loop {
            let Some(lines) = &mut self.messages else {
                return CommandEnd::Lost;
            };
            let message = lines.next_line().await.ok().flatten();
            if let Some(end) = self.apply_message(message) {
                return end;
            }
        }
    }

    fn apply_message(&mut self, line: Option<String>) -> Option<CommandEnd> {
        match line.and_then(|line| serde_json::from_str(&line).ok()) {
            Some(SandboxMessage::Confined(by)) => {
                self.confined_by = by;
                None
            }
            Some(SandboxMessage::Failed(error)) => Some(CommandEnd::Failed(error)),
            Some(SandboxMessage::Ended { code }) => Some(CommandEnd::Exited(code)),
            Some(SandboxMessage::Stopped(reason)) => Some(CommandEnd::Stopped(reason)),
            None => Some(CommandEnd::Lost),
        }
    }

    /// Closes the message pipe, so that the helper kills all remaining processes and exits.
    async fn shut_down(&mut self) {
        self.messages = None;
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.start_kill();
        }
        self.temp = None;
    }
}

/// Returns the mechanisms that confine commands on this system, as reported by the helper for a
/// command that does nothing.
pub async fn probe_confinement(parts: &ShellParts) -> Result<Vec<String>, String> {
    let program = super::Program::Line("true".to_owned());
    let folder = parts.workspace.root().to_path_buf();
    let request = CommandRequest {
        program,
        folder,
        stdin: String::new(),
        timeout: None,
        env: Vec::new(),
        extra_read_paths: Vec::new(),
    };
    let (public, redactor) = (readable_etc(), SecretRedactor::default());
    let output = StoredOutput::discarded();
    let started = RunningCommand::start(parts, &public, request, output, &redactor);
    let mut running = started.await.map_err(|ToolError(reason)| reason)?;
    match running
        .finish(SHUTDOWN_TIMEOUT, &ToolOutputSink::disconnected())
        .await
        .end
    {
        CommandEnd::Exited(0) => Ok(std::mem::take(&mut running.confined_by)),
        CommandEnd::Failed(SandboxError::Unconfined(reason) | SandboxError::Other(reason)) => {
            Err(reason)
        }
        CommandEnd::Exited(code) => Err(format!("the test command `true` exited with code {code}")),
        CommandEnd::Stopped(_) | CommandEnd::TimedOut | CommandEnd::Lost => {
            Err("the test command `true` was killed or timed out".to_owned())
        }
    }
}

fn build_spec(parts: &ShellParts, request: &CommandRequest, temp: Option<&Path>) -> SandboxSpec {
    let settings = &parts.settings;
    let mut write = vec![parts.workspace.root().to_path_buf()];
    write.extend(temp.map(Path::to_path_buf));
    let starts_programs = request.starts_programs();
    let mut env = environment::allowed_variables(&parts.variables, &settings.env, temp);
    env.extend(request.env.iter().cloned());
    if !starts_programs {
        env = environment::isolate_git(env);
    }
    SandboxSpec {
        argv: request.argv(),
        folder: request.folder.clone(),
        env,
        read: parts
            .read
            .iter()
            .chain(&request.extra_read_paths)
            .cloned()
            .collect(),
        public: Vec::new(),
        write,
        temp: temp.map(Path::to_path_buf),
        hidden: parts.hidden.clone(),
        network: settings.network,
        starts_programs,
        mode: settings.mode(),
        limits: settings.limits(),
        error_log: None,
    }
}

/// The temporary folder of a command. The helper removes it; this guard does so if the helper was
/// killed.
struct TempDirGuard(PathBuf);

impl Drop for TempDirGuard {
    fn drop(&mut self) {
        let _ = remove_folder(&self.0);
    }
}
