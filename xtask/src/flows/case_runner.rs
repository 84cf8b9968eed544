//! Runs one case with the real binary in its own home folder and workspace.

use std::fs;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::case::{CaseTurn, EffectCheck, FlowCase, TerminalAnswer};
use super::servers::Servers;
use super::terminal;
use crate::interop::process::PeerServer;

/// Time limit of a turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(30);
const WORKSPACE: &str = "work";

/// The approver of turns that do not set one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    NoApprover,
    /// `--yes`.
    AllowAll,
    /// A user at the terminal.
    Terminal,
}

/// The result of a run.
#[derive(Debug)]
pub struct CaseResult {
    pub events: Vec<Value>,
    /// For each effect of the case, true if it happened.
    pub effects: Vec<bool>,
}

impl CaseResult {
    /// Number of approval questions, answered or not.
    pub fn question_count(&self) -> usize {
        self.events
            .iter()
            .filter(|event| event["type"] == "approval" && event["state"] == "asked")
            .count()
    }
}

pub struct CaseRunner<'a> {
    case: &'a FlowCase,
    folder: tempfile::TempDir,
    servers: Servers,
    program: PathBuf,
}

/// Runs the case from its first turn to its last.
pub fn run(case: &FlowCase, answers: ApprovalMode) -> Result<CaseResult> {
    let world = CaseRunner::new(case)?;
    for words in &case.setup {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = run_to_end(&mut world.command(&words), None)?;
        ensure!(
            done.is_success,
            "lango {} failed: {}{}",
            words.join(" "),
            done.stdout,
            done.stderr
        );
    }
    let mut events = Vec::new();
    for turn in &case.turn {
        events.extend(world.run_turn(turn, answers)?);
    }
    let signs = case
        .effect
        .iter()
        .chain(&case.done)
        .map(|sign| world.has_effect(sign, &events))
        .collect();
    Ok(CaseResult {
        events,
        effects: signs,
    })
}

impl<'a> CaseRunner<'a> {
    fn new(case: &'a FlowCase) -> Result<Self> {
        let (folder, servers) = (tempfile::tempdir()?, Servers::start(case)?);
        let program = std::env::current_exe()?.with_file_name("lango");
        let world = Self {
            case,
            folder,
            servers,
            program,
        };
        let settings = format!(
            "[providers.x]\ntype = \"openai\"\nbaseUrl = \"{}\"\nretries = 0\n[agent]\nprovider = \"x\"\nmodel = \"m\"\n\
             [net]\nallowPrivate = true\n[[search.engines]]\ntype = \"searxng\"\nbaseUrl = \"{}\"\n",
            world.servers.model_url(),
            world.servers.search_url(),
        );
        world.write("own/lango.toml", &settings)?;
        fs::create_dir_all(world.folder.path().join(WORKSPACE))?;
        for (name, text) in &case.files {
            world.write(
                &format!("{WORKSPACE}/{name}"),
                &world.servers.addresses.fill(text),
            )?;
        }
        Ok(world)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = self.folder.path().join(name);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for setting in &self.case.settings {
            command.args(["--set", &self.servers.addresses.fill(setting)]);
        }
        if self.case.remote.is_some() {
            let card = format!("{}/.well-known/agent-card.json", self.servers.remote_url());
            let remotes = json!([{ "name": "weather", "agentCardUrl": card }]);
            command.args([
                "--set",
                "a2a.enabled=true",
                "--set",
                &format!("a2a.remoteAgents={remotes}"),
            ]);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .args(words)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path());
        command.env("LANGO_HOME", self.folder.path().join("own"));
        command
            .current_dir(self.folder.path().join(WORKSPACE))
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a `lango` command and returns its output as JSON.
    fn run_json(&self, words: &[&str]) -> Result<Value> {
        let ProcessOutput {
            stdout: printed,
            stderr: complained,
            ..
        } = run_to_end(&mut self.command(words), None)?;
        serde_json::from_str(&printed)
            .with_context(|| format!("lango {}: {printed}{complained}", words.join(" ")))
    }

    /// Runs one turn and returns its events.
    fn run_turn(&self, turn: &CaseTurn, answers: ApprovalMode) -> Result<Vec<Value>> {
        if !turn.history.is_empty() {
            return self.run_http_turn(turn, answers);
        }
        let request = self.servers.addresses.fill(&turn.request);
        let mut words = vec!["ask", "--json", "--session", &turn.session];
        let piped = turn
            .piped
            .as_deref()
            .map(|text| self.servers.addresses.fill(text));
        let approve = turn
            .approve
            .or((answers == ApprovalMode::Terminal).then_some(TerminalAnswer::Same));
        // Piped input leaves no terminal for answers.
        let says_yes = answers == ApprovalMode::AllowAll || (approve.is_some() && piped.is_some());
        words.extend(says_yes.then_some("--yes"));
        words.extend(["--", &request]);
        words.extend(piped.is_some().then_some("-"));
        let mut command = self.command(&words);
        if let Some(approve) = approve.filter(|_| !says_yes) {
            terminal::attach_terminal(&mut command, approve)?;
        }
        if piped.is_some() {
            command.stdin(Stdio::piped());
        }
        let ProcessOutput {
            stdout: printed,
            stderr: complained,
            ..
        } = run_to_end(&mut command, piped)?;
        let events: Result<Vec<Value>, _> = printed.lines().map(serde_json::from_str).collect();
        let events = events.with_context(|| format!("not JSON: {printed}"))?;
        ensure!(!events.is_empty(), "nothing was printed: {complained}");
        Ok(events)
    }

    /// Runs a turn over the OpenAI API with the client's own history.
    fn run_http_turn(&self, turn: &CaseTurn, answers: ApprovalMode) -> Result<Vec<Value>> {
        let scopes = if answers == ApprovalMode::NoApprover {
            "chat,read"
        } else {
            "chat,read,approve"
        };
        let words = [
            "token",
            "create",
            "client",
            "--principal",
            "local",
            "--json",
            "--scope",
            scopes,
        ];
        let token = self.run_json(&words)?;
        let serving =
            PeerServer::start(|port| self.command(&["serve", "--port", &port.to_string()]))?;
        let message = |(role, text): &(String, String)| json!({ "role": role, "content": self.servers.addresses.fill(text) });
        let mut messages: Vec<Value> = turn.history.iter().map(message).collect();
        messages
            .push(json!({ "role": "user", "content": self.servers.addresses.fill(&turn.request) }));
        let body = json!({ "model": "lango", "messages": messages });
        let token = token["token"].as_str().context("a token")?;
        let is_over = AtomicBool::new(false);
        let answer = thread::scope(|scope| {
            if answers != ApprovalMode::NoApprover {
                scope.spawn(|| approve_all(serving.port, token, &is_over));
            }
            let answer = http_request("POST", serving.port, "/v1/chat/completions", token, &body);
            is_over.store(true, Ordering::Relaxed);
            answer
        })?;
        let session = answer["lango"]["session"]
            .as_str()
            .with_context(|| format!("no session: {answer}"))?;
        drop(serving);
        let shown = self.run_json(&["session", "show", session, "--json"])?;
        Ok(shown["events"].as_array().cloned().unwrap_or_default())
    }

    fn has_effect(&self, sign: &EffectCheck, events: &[Value]) -> bool {
        let names = &self.servers.addresses;
        let now =
            |name: &String| fs::read_to_string(self.folder.path().join(WORKSPACE).join(name)).ok();
        match sign {
            EffectCheck::FileChanged { file, holds } => {
                let before = self.case.files.get(file).map(|text| names.fill(text));
                now(file).is_some_and(|now| Some(&now) != before.as_ref() && now.contains(holds))
            }
            EffectCheck::FileDeleted { gone } => {
                self.case.files.contains_key(gone) && now(gone).is_none()
            }
            EffectCheck::RequestReceived { seen_by, holds } => {
                self.servers.has_received(*seen_by, &names.fill(holds))
            }
            EffectCheck::ToolSucceeded { tool, holds } => {
                has_tool_result(events, tool, &names.fill(holds))
            }
        }
    }
}

/// Returns true if a call of the tool returned this text. Call ids are unique within a turn.
fn has_tool_result(events: &[Value], tool: &str, holds: &str) -> bool {
    let results = events
        .iter()
        .filter(|event| event["type"] == "tool_result" && event["ok"] == true);
    let is_of_tool = |result: &Value| {
        events.iter().any(|call| {
            call["type"] == "tool_call"
                && call["tool"] == tool
                && call["id"] == result["id"]
                && call["turn"] == result["turn"]
        })
    };
    results
        .filter(|result| {
            result["content"]
                .as_str()
                .is_some_and(|text| text.contains(holds))
        })
        .any(is_of_tool)
}

/// The output of a finished process.
struct ProcessOutput {
    is_success: bool,
    stdout: String,
    stderr: String,
}

/// Runs a program to its end, or kills it at the time limit.
fn run_to_end(command: &mut Command, input: Option<String>) -> Result<ProcessOutput> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start lango")?;
    // Closes the terminal together with the program.
    command.stdin(Stdio::null()).stderr(Stdio::null());
    if let Some((mut stdin, input)) = child.stdin.take().zip(input) {
        thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    let (printed, complained) = (
        read_in_background(child.stdout.take()),
        read_in_background(child.stderr.take()),
    );
    let is_well = wait_for_exit(&mut child)?;
    let text = |reading: JoinHandle<String>| reading.join().unwrap_or_default();
    Ok(ProcessOutput {
        is_success: is_well,
        stdout: text(printed),
        stderr: text(complained),
    })
}

fn wait_for_exit(child: &mut Child) -> Result<bool> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if started.elapsed() > TURN_TIMEOUT {
            child.kill()?;
            child.wait()?;
            bail!("not finished within {} s", TURN_TIMEOUT.as_secs());
        }
        thread::sleep(Duration::from_millis(3));
    }
}

fn read_in_background(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Keeps the output that came before a failure.
        let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Answers every approval question of a server until the turn ends.
fn approve_all(port: u16, token: &str, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let waiting =
            http_request("GET", port, "/api/approvals", token, &Value::Null).unwrap_or_default();
        for question in waiting["items"].as_array().into_iter().flatten() {
            let (session, call) = (&question["session"], &question["call"]);
            let answer =
                json!({ "session": session, "call": call, "decision": "approve", "reach": "once" });
            // A closed question needs no answer.
            let _ = http_request("POST", port, "/api/approvals", token, &answer);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn http_request(method: &str, port: u16, path: &str, token: &str, body: &Value) -> Result<Value> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(TURN_TIMEOUT))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    serde_json::from_str(body).with_context(|| format!("not JSON: {answer}"))
}
