//! `lango-bench kill`: runs turns in a child process with the assistant of the product, and kills
//! it after every event and at random times.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use lango_app::{
    Assistant, AssistantOptions, Environment, LazyStores, LoadedConfig, Overrides, Recording,
    Toolset,
};
use lango_domain::event::{CallId, Event, EventBody, Principal, SessionId, Update};
use lango_domain::session::{HistoryWindow, SessionKey, SessionKeyRef};
use lango_engine::TurnRequest;
use lango_runtime::TurnSpec;
use lango_testkit::model_server::{ModelServer, ReceivedRequest, ServerReply};
use serde::Serialize;
use serde_json::{Value, json};

use crate::rng::Rng;

/// Number of sessions that the turns are distributed over.
const SESSIONS: usize = 7;
/// Number of events in a turn that is not killed.
const EVENTS_PER_TURN: usize = 15;
/// Name of the workspace folder of the tools.
const WORKSPACE: &str = "work";

/// Arguments of the child process.
#[derive(clap::Args)]
pub struct KillChild {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    base_url: String,
    #[arg(long)]
    session: String,
    /// The request; resumes the interrupted turn when not given.
    #[arg(long)]
    text: Option<String>,
}

/// Runs one turn with the built-in tools, which append to two files, and prints every event that
/// was stored.
pub fn child(child: &KillChild) -> Result<()> {
    let (loaded, environment) = load_settings(&child.folder, &child.base_url)?;
    let toolset =
        Toolset::new(&loaded, &environment).map_err(|error| anyhow::anyhow!(error.message))?;
    let tools = toolset.tools();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let store = LazyStores::new(&loaded, &environment);
            let options = AssistantOptions {
                stores: &store,
                tools,
                catalog: Default::default(),
                approver: None,
                recording: &Recording::Off,
                secrets: None,
                remote_agents: None,
            };
            let assistant = Assistant::open(&loaded, &environment, options)?;
            let (session, principal) = (SessionId::new(child.session.as_str()), Principal::local());
            let spec = match &child.text {
                Some(text) => {
                    TurnSpec::request(TurnRequest::from_user(session, principal, text.clone()))
                }
                None => TurnSpec::resume(SessionKey { session, principal }),
            };
            let mut updates = assistant.runtime.start_turn(spec)?;
            let mut stdout = std::io::stdout();
            while let Some(update) = updates.next().await {
                match update {
                    Update::Event(event) => {
                        writeln!(stdout, "{}", serde_json::to_string(&*event)?)?;
                        stdout.flush()?;
                    }
                    Update::StoreFailed(error) => bail!(error.to_string()),
                    Update::Delta { .. } | Update::ToolOutputDelta { .. } => {}
                }
            }
            Ok(())
        })
}

fn load_settings(folder: &Path, base_url: &str) -> Result<(LoadedConfig, Environment)> {
    let variables = [(
        "LANGO_HOME".to_owned(),
        folder.join("home").display().to_string(),
    )]
    .into();
    let environment = Environment {
        variables,
        working_folder: folder.to_path_buf(),
    };
    let set = [
        "providers.x.type=openai",
        &format!("providers.x.baseUrl={base_url}"),
        "agent.provider=x",
        "agent.model=m",
        "security.approval.dangerous=auto",
        &format!("tools.workspace={}", folder.join(WORKSPACE).display()),
    ];
    let overrides = Overrides {
        config: None,
        set: set.map(str::to_owned).to_vec(),
    };
    let loaded = LoadedConfig::load(&environment, &overrides)
        .map_err(|error| anyhow::anyhow!(error.message))?;
    Ok((loaded, environment))
}

/// Replies as the model: the root transfers, then the operator appends a line with a command or
/// with the file tool and answers. It never repeats a call, so every duplicate line is caused by
/// the runtime.
fn decide(request: &ReceivedRequest) -> ServerReply {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let request_index = messages
        .iter()
        .rposition(|message| message["role"] == "user" && text(message).contains("append L"));
    let Some(request_index) = request_index else {
        return ServerReply::text("no request");
    };
    let request_text = text(&messages[request_index]);
    let line = request_text
        .rsplit("append ")
        .next()
        .and_then(|rest| rest.split('.').next())
        .unwrap_or_default();
    let is_root = body["tools"].to_string().contains("transfer_to_agent");
    let after = &messages[request_index..];
    let count_calls = |word: &str| {
        after
            .iter()
            .filter(|message| message["tool_calls"].to_string().contains(word))
            .count()
    };
    match (
        is_root,
        is_root && count_calls("transfer_to_agent") < 2,
        count_calls(&format!("{line} ")) > 0,
    ) {
        (true, true, _) => {
            ServerReply::tool_call("transfer_to_agent", &json!({ "agent_name": "operator" }))
        }
        (true, false, _) => ServerReply::text("it was interrupted twice"),
        (false, _, false)
            if line
                .bytes()
                .last()
                .is_some_and(|digit| digit.is_multiple_of(2)) =>
        {
            ServerReply::tool_call(
                "exec_shell",
                &json!({ "command": format!("echo {line} >> by-command") }),
            )
        }
        (false, _, false) => {
            let content = format!("{line} \n");
            ServerReply::tool_call(
                "fs_write",
                &json!({ "path": "by-tool", "content": content, "append": true }),
            )
        }
        (false, _, true) => ServerReply::text("done"),
    }
}

/// The result of all kills.
#[derive(Debug, Default, Serialize)]
struct KillCounts {
    kills: usize,
    resumed: usize,
    acknowledged: usize,
    lost: usize,
    effects: usize,
    doubled: usize,
    open_calls: usize,
    unopened: usize,
}

pub fn run(kills: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join(WORKSPACE))?;
    let server = ModelServer::with_responder(|request, _| decide(request))?;
    let mut harness = Harness {
        folder: folder.path().to_path_buf(),
        base_url: server.base_url(),
        acknowledged: Vec::new(),
        interrupted: HashMap::new(),
        rng: Rng(0x5eed),
        counts: KillCounts::default(),
    };
    for number in 0.. {
        if harness.counts.kills == kills {
            break;
        }
        harness.run_turn(number)?;
    }
    harness.finish()?;
    println!("{}", serde_json::to_string(&harness.counts)?);
    let KillCounts {
        lost,
        doubled,
        unopened,
        open_calls,
        ..
    } = harness.counts;
    if lost + doubled + unopened + open_calls > 0 {
        bail!(
            "events were lost, effects doubled, calls left open, or sessions could not be opened"
        );
    }
    Ok(())
}

struct Harness {
    folder: PathBuf,
    base_url: String,
    /// Every event that a child reported as stored.
    acknowledged: Vec<Event>,
    /// Sessions whose last turn was killed.
    interrupted: HashMap<String, bool>,
    rng: Rng,
    counts: KillCounts,
}

impl Harness {
    /// Runs one turn and kills it after some event or at some time.
    fn run_turn(&mut self, number: usize) -> Result<()> {
        let session = format!("s{}", number % SESSIONS);
        let resume = self.interrupted.remove(&session).unwrap_or(false) && number.is_multiple_of(2);
        self.counts.resumed += usize::from(resume);
        let mut command = self.command(&session, (!resume).then(|| format!("append L{number}.")));
        let mut child = command
            .spawn()
            .context("could not start the child process")?;
        let stdout = child
            .stdout
            .take()
            .context("the child process has no stdout")?;
        let kill_after = if number.is_multiple_of(3) {
            let delay = Duration::from_micros(self.random_below(60_000));
            let pid = child.id();
            thread::spawn(move || {
                thread::sleep(delay);
                // The parent waits for this child below, so the process id is not reused yet.
                let _ = Command::new("kill")
                    .args(["-9", &pid.to_string()])
                    .stderr(Stdio::null())
                    .status();
            });
            usize::MAX
        } else {
            number % EVENTS_PER_TURN
        };
        for (index, line) in BufReader::new(stdout).lines().enumerate() {
            self.acknowledged.extend(
                line.ok()
                    .and_then(|line| serde_json::from_str::<Event>(&line).ok()),
            );
            if index >= kill_after {
                child.kill()?;
            }
        }
        if !child.wait()?.success() {
            self.counts.kills += 1;
            self.interrupted.insert(session.clone(), true);
        }
        self.counts.unopened += usize::from(self.events(&session).is_err());
        Ok(())
    }

    fn command(&self, session: &str, text: Option<String>) -> Command {
        let exe = std::env::current_exe().unwrap_or_default();
        let mut command = Command::new(exe);
        command.arg("kill-child").arg("--folder").arg(&self.folder);
        command.args(["--base-url", &self.base_url, "--session", session]);
        command.args(
            text.into_iter()
                .flat_map(|text| ["--text".to_owned(), text]),
        );
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn random_below(&mut self, below: u64) -> u64 {
        self.rng.next() % below
    }

    /// Loads a session from a newly opened store.
    fn events(&self, session: &str) -> Result<Vec<Arc<Event>>> {
        let (loaded, environment) = load_settings(&self.folder, &self.base_url)?;
        let store = LazyStores::new(&loaded, &environment).open()?;
        let key = SessionKeyRef {
            session: &SessionId::new(session),
            principal: &Principal::local(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(runtime.block_on(store.sessions.load(key, HistoryWindow::Everything))?)
    }

    /// Runs a last complete turn in every session, then compares the stored events and effects with
    /// what was acknowledged.
    fn finish(&mut self) -> Result<()> {
        for session in 0..SESSIONS {
            let session = format!("s{session}");
            let last = self
                .command(&session, Some(format!("append Lend-{session}.")))
                .output()?;
            let events = self.events(&session)?;
            let is_finished = events
                .last()
                .is_some_and(|event| event.body == EventBody::turn_done());
            self.counts.unopened += usize::from(!last.status.success() || !is_finished);
            self.counts.open_calls += open_calls(&events);
            let stored: HashMap<u64, &Event> =
                events.iter().map(|event| (event.seq, &**event)).collect();
            let own = self
                .acknowledged
                .iter()
                .filter(|event| event.session.as_str() == session);
            for event in own {
                self.counts.acknowledged += 1;
                self.counts.lost += usize::from(stored.get(&event.seq) != Some(&event));
            }
        }
        let mut lines: BTreeMap<String, usize> = BTreeMap::new();
        for file in ["by-command", "by-tool"] {
            let effects =
                fs::read_to_string(self.folder.join(WORKSPACE).join(file)).context(file)?;
            for line in effects.lines() {
                *lines.entry(line.trim().to_owned()).or_default() += 1;
            }
        }
        self.counts.effects = lines.len();
        self.counts.doubled = lines.values().filter(|times| **times > 1).count();
        Ok(())
    }
}

/// Counts the calls and transfers that do not have exactly one result.
fn open_calls(events: &[Arc<Event>]) -> usize {
    let mut results: HashMap<(&str, &CallId), i32> = HashMap::new();
    for event in events {
        match &event.body {
            EventBody::ToolCall { id, .. } | EventBody::Transfer { id, .. } => {
                *results.entry((event.turn.as_str(), id)).or_default() += 1
            }
            EventBody::ToolResult { id, .. } | EventBody::TransferResult { id, .. } => {
                *results.entry((event.turn.as_str(), id)).or_default() -= 1;
            }
            _ => {}
        }
    }
    results.values().filter(|count| **count != 0).count()
}
