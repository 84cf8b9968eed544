//! Test harness for commands: a home folder with a key, Lango's data, a workspace, and a folder
//! outside of all.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::{AgentName, ToolContext, ToolError, ToolOutputSink};
use lango_tools::files::{UndoStorage, Workspace};
use lango_tools::shell::{CommandRequest, ExecSettings, Program, SandboxChoice, Shell, ShellParts};
use tempfile::TempDir;

/// The content of every file that a command must not read.
pub const SECRET: &str = "d0-n0t-read-me";

pub struct ShellHarness {
    pub folder: TempDir,
    pub settings: ExecSettings,
}

impl ShellHarness {
    pub fn new(sandbox: SandboxChoice) -> Self {
        let folder = TempDir::new().unwrap();
        for part in ["home/.ssh", "data", "work", "outside"] {
            fs::create_dir_all(folder.path().join(part)).unwrap();
        }
        for file in ["home/.ssh/id_rsa", "data/lango.sqlite", "outside/secret"] {
            fs::write(folder.path().join(file), SECRET).unwrap();
        }
        Self {
            folder,
            settings: ExecSettings {
                sandbox,
                ..ExecSettings::default()
            },
        }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    pub fn parts(&self, workspace: &str) -> ShellParts {
        let hidden = vec![self.at("data")];
        let mut variables: BTreeMap<String, String> = std::env::vars()
            .filter(|(name, _)| name == "PATH")
            .collect();
        variables.insert("HOME".to_owned(), self.at("home").display().to_string());
        variables.insert("OPENAI_API_KEY".to_owned(), SECRET.to_owned());
        ShellParts {
            workspace: Workspace::open(&self.at(workspace), hidden.clone()).unwrap(),
            journal: UndoStorage::in_folder(Some(&self.at("data"))).journal,
            settings: self.settings.clone(),
            read: Vec::new(),
            hidden,
            helper: PathBuf::from(env!("CARGO_BIN_EXE_sandbox-helper")),
            variables,
            data: Some(self.at("data")),
            max_duration: Duration::from_secs(100),
        }
    }

    pub fn shell(&self) -> Shell {
        Shell::new(self.parts("work"))
    }

    /// Runs a line in the workspace and returns its result or error as text.
    pub async fn run(&self, line: &str) -> String {
        self.run_in(&self.shell(), line, "work")
            .await
            .unwrap_or_else(|ToolError(reason)| reason)
    }

    pub async fn run_in(
        &self,
        shell: &Shell,
        line: &str,
        folder: &str,
    ) -> Result<String, ToolError> {
        shell
            .run(&context(), command_request(line, self.at(folder)))
            .await
    }
}

pub fn command_request(line: &str, folder: PathBuf) -> CommandRequest {
    let program = Program::Line(line.to_owned());
    CommandRequest {
        program,
        folder,
        stdin: String::new(),
        timeout: Some(Duration::from_secs(30)),
        env: Vec::new(),
        extra_read_paths: Vec::new(),
    }
}

pub fn context() -> ToolContext {
    ToolContext {
        session: SessionId::new("s"),
        principal: Principal::local(),
        turn: TurnId::new("t1"),
        agent: AgentName::new("operator").unwrap(),
        call: CallId::new("c1"),
        label: Default::default(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: Default::default(),
    }
}

/// Returns true if a process with this text in its command line is running.
pub fn is_running(text: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(text))
}

/// Waits until no such process is running. Returns false on timeout.
pub async fn wait_for_exit(text: &str) -> bool {
    for _ in 0..1_000 {
        if !is_running(text) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}
