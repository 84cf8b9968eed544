//! The `lango` binary with its own home folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::peers::Peers;
use super::process::{PeerServer, json_lines_of_exit, run_json_lines};

const WORKSPACE: &str = "work";

/// A running `lango serve`. Its home folder is deleted on drop.
pub struct RunningLango {
    pub server: PeerServer,
    pub token: String,
    _lango: Lango,
}

impl RunningLango {
    pub fn url(&self) -> String {
        self.server.url()
    }
}

/// A Lango with its own home folder and the offline model, so that every answer is predictable.
pub struct Lango {
    program: PathBuf,
    home: tempfile::TempDir,
    settings: Vec<String>,
    /// Remote agents as JSON. May contain tokens, which must not appear on a command line.
    remotes: Option<String>,
}

impl Lango {
    pub fn new(peers: &Peers) -> Result<Self> {
        let home = tempfile::tempdir()?;
        fs::create_dir(home.path().join(WORKSPACE))?;
        Ok(Self {
            program: peers.lango.clone(),
            home,
            settings: Vec::new(),
            remotes: None,
        })
    }

    pub fn with_setting(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// Adds a remote agent to the team.
    pub fn with_remote_lango(self, name: &str, other: &RunningLango) -> Self {
        self.with_remote(name, &other.url(), &other.token)
    }

    /// Adds a remote agent by its address.
    pub fn with_remote(mut self, name: &str, url: &str, token: &str) -> Self {
        let card = format!("{url}/.well-known/agent-card.json");
        let mut remote = json!({ "name": name, "agentCardUrl": card });
        if !token.is_empty() {
            remote["token"] = Value::from(token);
        }
        self.settings.push("a2a.enabled=true".to_owned());
        self.remotes = Some(json!([remote]).to_string());
        self
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .args(["--provider", "offline"])
            .env("LANGO_HOME", self.home.path().join("own"));
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        if let Some(remotes) = &self.remotes {
            command.env("LANGO_A2A__REMOTE_AGENTS", remotes);
        }
        command.current_dir(self.home.path().join(WORKSPACE));
        command
    }

    /// Returns the folder that is deleted with this value.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs a command and returns what it prints. Fails if the command does.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("LANGO_HOME", self.home.path().join("own"))
            .current_dir(self.home.path().join(WORKSPACE))
            .stdin(Stdio::null());
        let output = command.output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            bail!("{command:?} failed:\n{printed}\n{told}");
        }
        Ok(printed)
    }

    /// Starts the server and creates an access token.
    pub fn serve(self) -> Result<RunningLango> {
        let mut create =
            self.command(&["token", "create", "peer", "--scope", "chat,read", "--json"]);
        let output = create.output()?;
        let made: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("no token: {}", String::from_utf8_lossy(&output.stderr)))?;
        let token = made["token"].as_str().context("a token")?.to_owned();
        let server =
            PeerServer::start(|port| self.command(&["serve", "--port", &port.to_string()]))?;
        Ok(RunningLango {
            server,
            token,
            _lango: self,
        })
    }

    /// Runs one turn and returns its events.
    pub fn ask(&self, request: &str) -> Result<Vec<Value>> {
        run_json_lines(&mut self.command(&["ask", request, "--json"]))
    }

    /// Runs one turn whose request is not done, and returns its events.
    pub fn ask_for_failure(&self, request: &str) -> Result<Vec<Value>> {
        json_lines_of_exit(&mut self.command(&["ask", request, "--json"]), 1)
    }
}
