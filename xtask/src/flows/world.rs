//! One run of one case: the real binary with a home and a workspace of its own, and what came of it.

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

use super::case::{Approve, Case, Sign, Turn};
use super::servers::Servers;
use super::terminal;
use crate::interop::process::PeerServer;

/// No turn of a case takes longer.
const PATIENCE: Duration = Duration::from_secs(30);
const WORKSPACE: &str = "work";

/// Who answers questions in a turn that does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    Nobody,
    /// `--yes`.
    Everything,
    /// Somebody at the terminal.
    Same,
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    pub events: Vec<Value>,
    /// Whether each sign of the case was seen, in their order.
    pub signs: Vec<bool>,
}

impl Ran {
    /// Questions, whether or not anybody was there to answer.
    pub fn asked(&self) -> usize {
        self.events.iter().filter(|event| event["type"] == "approval" && event["state"] == "asked").count()
    }
}

pub struct World<'a> {
    case: &'a Case,
    folder: tempfile::TempDir,
    servers: Servers,
    program: PathBuf,
}

/// Runs the case from its first turn to its last.
pub fn run(case: &Case, answers: Answers) -> Result<Ran> {
    let world = World::new(case)?;
    for words in &case.setup {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = finished(&mut world.command(&words), None)?;
        ensure!(done.is_well, "lango {} failed: {}{}", words.join(" "), done.printed, done.complained);
    }
    let mut events = Vec::new();
    for turn in &case.turn {
        events.extend(world.turn(turn, answers)?);
    }
    let signs = case.effect.iter().chain(&case.done).map(|sign| world.shows(sign, &events)).collect();
    Ok(Ran { events, signs })
}

impl<'a> World<'a> {
    fn new(case: &'a Case) -> Result<Self> {
        let (folder, servers) = (tempfile::tempdir()?, Servers::start(case)?);
        let program = std::env::current_exe()?.with_file_name("lango");
        let world = Self { case, folder, servers, program };
        let settings = format!(
            "[providers.x]\ntype = \"openai\"\nbaseUrl = \"{}\"\nretries = 0\n[agent]\nprovider = \"x\"\nmodel = \"m\"\n\
             [net]\nallowPrivate = true\n[[search.engines]]\ntype = \"searxng\"\nbaseUrl = \"{}\"\n",
            world.servers.model_url(),
            world.servers.search_url(),
        );
        world.write("own/lango.toml", &settings)?;
        fs::create_dir_all(world.folder.path().join(WORKSPACE))?;
        for (name, text) in &case.files {
            world.write(&format!("{WORKSPACE}/{name}"), &world.servers.names.fill(text))?;
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
            command.args(["--set", &self.servers.names.fill(setting)]);
        }
        if self.case.remote.is_some() {
            let card = format!("{}/.well-known/agent-card.json", self.servers.remote_url());
            let remotes = json!([{ "name": "weather", "agentCardUrl": card }]);
            command.args(["--set", "a2a.enabled=true", "--set", &format!("a2a.remoteAgents={remotes}")]);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.args(words).env_clear().env("PATH", path).env("HOME", self.folder.path());
        command.env("LANGO_HOME", self.folder.path().join("own"));
        command.current_dir(self.folder.path().join(WORKSPACE)).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// What a command of the user's prints, as JSON.
    fn told(&self, words: &[&str]) -> Result<Value> {
        let Finished { printed, complained, .. } = finished(&mut self.command(words), None)?;
        serde_json::from_str(&printed)
            .with_context(|| format!("lango {}: {printed}{complained}", words.join(" ")))
    }

    /// The events of one turn.
    fn turn(&self, turn: &Turn, answers: Answers) -> Result<Vec<Value>> {
        if !turn.history.is_empty() {
            return self.turn_over_http(turn, answers);
        }
        let request = self.servers.names.fill(&turn.request);
        let mut words = vec!["ask", "--json", "--session", &turn.session];
        let piped = turn.piped.as_deref().map(|text| self.servers.names.fill(text));
        let approve = turn.approve.or((answers == Answers::Same).then_some(Approve::Same));
        // Whoever pipes something in has no hand free for the terminal.
        let says_yes = answers == Answers::Everything || (approve.is_some() && piped.is_some());
        words.extend(says_yes.then_some("--yes"));
        words.extend(["--", &request]);
        words.extend(piped.is_some().then_some("-"));
        let mut command = self.command(&words);
        if let Some(approve) = approve.filter(|_| !says_yes) {
            terminal::attend(&mut command, approve)?;
        }
        if piped.is_some() {
            command.stdin(Stdio::piped());
        }
        let Finished { printed, complained, .. } = finished(&mut command, piped)?;
        let events: Result<Vec<Value>, _> = printed.lines().map(serde_json::from_str).collect();
        let events = events.with_context(|| format!("not JSON: {printed}"))?;
        ensure!(!events.is_empty(), "nothing was printed: {complained}");
        Ok(events)
    }

    /// A turn that a client of OpenAI's API asks for, with its own history.
    fn turn_over_http(&self, turn: &Turn, answers: Answers) -> Result<Vec<Value>> {
        let scopes = if answers == Answers::Nobody { "chat,read" } else { "chat,read,approve" };
        let words = ["token", "create", "client", "--principal", "local", "--json", "--scope", scopes];
        let token = self.told(&words)?;
        let serving = PeerServer::start(|port| self.command(&["serve", "--port", &port.to_string()]))?;
        let message = |(role, text): &(String, String)| json!({ "role": role, "content": self.servers.names.fill(text) });
        let mut messages: Vec<Value> = turn.history.iter().map(message).collect();
        messages.push(json!({ "role": "user", "content": self.servers.names.fill(&turn.request) }));
        let body = json!({ "model": "lango", "messages": messages });
        let token = token["token"].as_str().context("a token")?;
        let is_over = AtomicBool::new(false);
        let answer = thread::scope(|scope| {
            if answers != Answers::Nobody {
                scope.spawn(|| allow_everything(serving.port, token, &is_over));
            }
            let answer = http("POST", serving.port, "/v1/chat/completions", token, &body);
            is_over.store(true, Ordering::Relaxed);
            answer
        })?;
        let session = answer["lango"]["session"].as_str().with_context(|| format!("no session: {answer}"))?;
        drop(serving);
        let shown = self.told(&["session", "show", session, "--json"])?;
        Ok(shown["events"].as_array().cloned().unwrap_or_default())
    }

    fn shows(&self, sign: &Sign, events: &[Value]) -> bool {
        let names = &self.servers.names;
        let now = |name: &String| fs::read_to_string(self.folder.path().join(WORKSPACE).join(name)).ok();
        match sign {
            Sign::File { file, holds } => {
                let before = self.case.files.get(file).map(|text| names.fill(text));
                now(file).is_some_and(|now| Some(&now) != before.as_ref() && now.contains(holds))
            }
            Sign::Gone { gone } => self.case.files.contains_key(gone) && now(gone).is_none(),
            Sign::Seen { seen_by, holds } => self.servers.saw(*seen_by, &names.fill(holds)),
            Sign::Tool { tool, holds } => has_worked(events, tool, &names.fill(holds)),
        }
    }
}

/// Whether a call of the tool gave these words. Ids of calls are told apart by their turns.
fn has_worked(events: &[Value], tool: &str, holds: &str) -> bool {
    let results = events.iter().filter(|event| event["type"] == "tool_result" && event["ok"] == true);
    let is_of_tool = |result: &Value| {
        events.iter().any(|call| {
            call["type"] == "tool_call"
                && call["tool"] == tool
                && call["id"] == result["id"]
                && call["turn"] == result["turn"]
        })
    };
    results
        .filter(|result| result["content"].as_str().is_some_and(|text| text.contains(holds)))
        .any(is_of_tool)
}

/// What a program left behind.
struct Finished {
    is_well: bool,
    printed: String,
    complained: String,
}

/// Runs a program to its end, or ends it when it takes too long.
fn finished(command: &mut Command, input: Option<String>) -> Result<Finished> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start lango")?;
    // The terminal is to close with the program.
    command.stdin(Stdio::null()).stderr(Stdio::null());
    if let Some((mut stdin, input)) = child.stdin.take().zip(input) {
        thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    let (printed, complained) = (reading(child.stdout.take()), reading(child.stderr.take()));
    let is_well = ended(&mut child)?;
    let text = |reading: JoinHandle<String>| reading.join().unwrap_or_default();
    Ok(Finished { is_well, printed: text(printed), complained: text(complained) })
}

fn ended(child: &mut Child) -> Result<bool> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if started.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("not over within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(3));
    }
}

fn reading(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a failure is what there is.
        let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Answers every question of a server until the turn is over.
fn allow_everything(port: u16, token: &str, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let waiting = http("GET", port, "/api/approvals", token, &Value::Null).unwrap_or_default();
        for question in waiting["items"].as_array().into_iter().flatten() {
            let (session, call) = (&question["session"], &question["call"]);
            let answer = json!({ "session": session, "call": call, "decision": "approve", "reach": "once" });
            // One that is gone needs no answer.
            let _ = http("POST", port, "/api/approvals", token, &answer);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn http(method: &str, port: u16, path: &str, token: &str, body: &Value) -> Result<Value> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
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
