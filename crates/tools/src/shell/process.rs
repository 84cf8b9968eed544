//! One command from its start to its end.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use lango_domain::{ToolError, ToolOutputSink};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::capture::Capture;
use super::command::CommandRequest;
use super::outputs::StoredOutput;
use super::{ShellParts, environment};
use crate::files::private_directory::remove_folder;
use crate::sandbox::{
    ExceededLimit, OUTER_ARG, SandboxError, SandboxMessage, SandboxMode, SandboxSpec,
    new_temp_path, readable_etc,
};

/// How long the helper gets to end everything.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// A command that was started. Dropping it ends the command and everything that it started.
pub struct RunningCommand {
    child: Child,
    output: ChildStdout,
    /// The helper ends everything when nobody reads this any more.
    messages: Option<Lines<BufReader<ChildStderr>>>,
    /// The whole text.
    stored_output: StoredOutput,
    capture: Capture,
    confined_by: Vec<String>,
    started: Instant,
    starts_programs: bool,
    temp: Option<TempDirGuard>,
}

/// What became of it.
pub struct CommandResult {
    pub end: CommandEnd,
    pub duration: Duration,
    pub capture: Capture,
    /// Where the whole text can be read.
    pub id: Option<String>,
    /// Whether it could start other programs.
    pub starts_programs: bool,
}

pub enum CommandEnd {
    Exited(i32),
    /// A limit was reached.
    Stopped(ExceededLimit),
    TimedOut,
    Failed(SandboxError),
    /// The helper itself was ended.
    Lost,
}

impl RunningCommand {
    pub async fn start(
        parts: &ShellParts,
        public: &[PathBuf],
        errand: CommandRequest,
        kept: StoredOutput,
    ) -> Result<Self, ToolError> {
        let cannot = |error: &dyn std::fmt::Display| {
            ToolError(format!("the command cannot be started: {error}"))
        };
        let is_confined = parts.settings.mode() != SandboxMode::Off;
        let temp = is_confined
            .then(|| new_temp_path(&parts.temp_root()))
            .transpose();
        let temp = temp.map_err(|error| cannot(&error))?.map(TempDirGuard);
        let mut spec = build_spec(parts, &errand, temp.as_ref().map(|temp| temp.0.as_path()));
        spec.public = public.to_vec();
        let starts_programs = spec.starts_programs;
        let mut input = spec.to_frame().map_err(|error| cannot(&error))?;
        input.extend(errand.stdin.as_bytes());
        let mut command = Command::new(&parts.helper);
        command.arg(OUTER_ARG).env_clear().current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| cannot(&error))?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(output), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(cannot(&"no pipes"));
        };
        // A command may never read what it is given; nobody waits for that.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input).await;
        });
        let words = Some(BufReader::new(stderr).lines());
        let (capture, confined, began) = (Capture::default(), Vec::new(), Instant::now());
        Ok(Self {
            child,
            output,
            messages: words,
            stored_output: kept,
            capture,
            confined_by: confined,
            started: began,
            starts_programs,
            temp,
        })
    }

    /// Where its whole text can be read.
    pub fn id(&self) -> &str {
        &self.stored_output.id
    }

    /// Shows what it prints until it ends, or until its time is over.
    pub async fn finish(&mut self, time: Duration, live: &ToolOutputSink) -> CommandResult {
        let end = match tokio::time::timeout(time, self.read_output(live)).await {
            Ok(end) => end,
            Err(_elapsed) => CommandEnd::TimedOut,
        };
        self.shut_down().await;
        let id = self
            .stored_output
            .is_stored()
            .then(|| self.stored_output.id.clone());
        let (took, capture) = (self.started.elapsed(), std::mem::take(&mut self.capture));
        CommandResult {
            end,
            duration: took,
            capture,
            id,
            starts_programs: self.starts_programs,
        }
    }

    async fn read_output(&mut self, live: &ToolOutputSink) -> CommandEnd {
        let mut piece = vec![0; READ_BUFFER_BYTES];
        let (mut end, mut prints) = (None, true);
        while prints {
            let word = async {
                match &mut self.messages {
                    Some(words) if end.is_none() => words.next_line().await.ok().flatten(),
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                read = self.output.read(&mut piece) => match read {
                    Ok(length) if length > 0 => {
                        self.stored_output.write(&piece[..length]);
                        live.send(&self.capture.push(&piece[..length]));
                    }
                    _ => prints = false,
                },
                word = word => end = self.apply_message(word),
            }
        }
        match (end, &mut self.messages) {
            (Some(end), _) => end,
            (None, Some(_)) => self.wait_for_end().await,
            (None, None) => CommandEnd::Lost,
        }
    }

    /// Nothing is printed any more, but how it ended has not been said.
    async fn wait_for_end(&mut self) -> CommandEnd {
        loop {
            let Some(words) = &mut self.messages else {
                return CommandEnd::Lost;
            };
            let word = words.next_line().await.ok().flatten();
            if let Some(end) = self.apply_message(word) {
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
            Some(SandboxMessage::Failed(failed)) => Some(CommandEnd::Failed(failed)),
            Some(SandboxMessage::Ended { code }) => Some(CommandEnd::Exited(code)),
            Some(SandboxMessage::Stopped(reason)) => Some(CommandEnd::Stopped(reason)),
            None => Some(CommandEnd::Lost),
        }
    }

    /// The helper ends what still runs once nobody listens, and then itself.
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

/// What a command is confined by on this system: what the helper says when it runs one that does nothing.
pub async fn probe_confinement(parts: &ShellParts) -> Result<Vec<String>, String> {
    let program = super::Program::Line("true".to_owned());
    let folder = parts.workspace.root().to_path_buf();
    let errand = CommandRequest {
        program,
        folder,
        stdin: String::new(),
        timeout: None,
        extra_read_paths: Vec::new(),
    };
    let started =
        RunningCommand::start(parts, &readable_etc(), errand, StoredOutput::discarded()).await;
    let mut running = started.map_err(|ToolError(why)| why)?;
    match running
        .finish(SHUTDOWN_TIMEOUT, &ToolOutputSink::disconnected())
        .await
        .end
    {
        CommandEnd::Exited(0) => Ok(std::mem::take(&mut running.confined_by)),
        CommandEnd::Failed(SandboxError::Unconfined(why) | SandboxError::Other(why)) => Err(why),
        CommandEnd::Exited(code) => Err(format!("a command that does nothing ended with {code}")),
        CommandEnd::Stopped(_) | CommandEnd::TimedOut | CommandEnd::Lost => {
            Err("a command that does nothing did not end well".to_owned())
        }
    }
}

fn build_spec(parts: &ShellParts, errand: &CommandRequest, temp: Option<&Path>) -> SandboxSpec {
    let settings = &parts.settings;
    let mut write = vec![parts.workspace.root().to_path_buf()];
    write.extend(temp.map(Path::to_path_buf));
    let starts_programs = errand.starts_programs();
    let mut env = environment::allowed_variables(&parts.variables, &settings.env, temp);
    if !starts_programs {
        env = environment::isolate_git(env);
    }
    SandboxSpec {
        argv: errand.argv(),
        folder: errand.folder.clone(),
        env,
        read: parts
            .read
            .iter()
            .chain(&errand.extra_read_paths)
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
    }
}

/// The command's temporary folder. Its helper removes it; this does, where the helper was killed.
struct TempDirGuard(PathBuf);

impl Drop for TempDirGuard {
    fn drop(&mut self) {
        let _ = remove_folder(&self.0);
    }
}
