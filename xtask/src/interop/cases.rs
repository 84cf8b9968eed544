//! The interop cases: which client talks to which server, and the expected outcome.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::email;
use super::lango::Lango;
use super::mcp;
use super::peers::Peers;
use super::process::{PeerServer, run_json_lines};

const ORCHESTRATOR: &str = "lango-orchestrator";

type CaseFn = Box<dyn Fn(&Peers) -> Result<()>>;

pub struct InteropCase {
    pub name: String,
    pub run: CaseFn,
}

pub fn all() -> Vec<InteropCase> {
    let mut cases = vec![
        case("openai for Python", |peers| {
            openai(peers, ClientLanguage::Python)
        }),
        case("openai for JavaScript", |peers| {
            openai(peers, ClientLanguage::Node)
        }),
        case("llm", llm),
        case("aiosmtpd", email::plain),
        case("aiosmtpd, encrypted", email::encrypted),
        case("three Langos in a row", three_chained),
        case("three Langos, cancelled", cancel_through_chain),
    ];
    cases.extend([
        case("MCP server-everything", mcp::everything),
        case("MCP server-everything, HTTP", mcp::everything_over_http),
        case("MCP server-filesystem", mcp::filesystem),
        case("MCP server-memory", mcp::memory),
        case("MCP mcp-server-time", mcp::time),
        case("MCP fastmcp", mcp::fastmcp),
    ]);
    for client in CLIENTS {
        cases.push(case(&format!("client {}", client.join(" ")), |peers| {
            external_client(peers, client)
        }));
    }
    for server in SERVERS {
        cases.push(case(&format!("server {}", server.join(" ")), |peers| {
            external_server(peers, server)
        }));
    }
    cases
}

fn case(name: &str, run: impl Fn(&Peers) -> Result<()> + 'static) -> InteropCase {
    InteropCase {
        name: name.to_owned(),
        run: Box::new(run),
    }
}

/// Kit, binding and return mode of each client.
const CLIENTS: [&[&str]; 10] = [
    &["python-1.0", "JSONRPC", "stream"],
    &["python-1.0", "JSONRPC", "poll"],
    &["python-1.0", "HTTP+JSON", "stream"],
    &["python-1.0", "HTTP+JSON", "poll"],
    &["python-0.3", "stream"],
    &["python-0.3", "poll"],
    &["node", "JSONRPC", "stream"],
    &["node", "HTTP+JSON", "poll"],
    &["rust", "JSONRPC"],
    &["rust", "HTTP+JSON"],
];

/// Kit, binding and streaming mode of each server.
const SERVERS: [&[&str]; 9] = [
    &["python-1.0", "JSONRPC", "streaming"],
    &["python-1.0", "HTTP+JSON", "streaming"],
    &["python-1.0", "JSONRPC", "whole"],
    &["python-0.3", "streaming"],
    &["python-0.3", "whole"],
    &["node", "JSONRPC"],
    &["node", "HTTP+JSON"],
    &["rust", "JSONRPC"],
    &["rust", "HTTP+JSON"],
];

enum ClientLanguage {
    Python,
    Node,
}

fn openai(peers: &Peers, speaker: ClientLanguage) -> Result<()> {
    let lango = Lango::new(peers)?.serve()?;
    let mut client = match speaker {
        ClientLanguage::Python => peers.python("python-1.0", "openai_chat.py"),
        ClientLanguage::Node => peers.node("openai_chat.mjs"),
    };
    let seen = run_json_lines(client.arg(format!("{}/v1", lango.url())).arg(&lango.token))?;
    let seen = seen.first().context("something was printed")?;
    ensure!(
        seen["models"]
            .as_array()
            .is_some_and(|models| models.len() > 3),
        "{seen}"
    );
    for words in ["plain", "streamed"] {
        ensure!(
            seen[words]
                .as_str()
                .is_some_and(|text| text.contains("Hello!")),
            "{seen}"
        );
    }
    ensure!(seen["usage"].is_number(), "{seen}");
    ensure!(
        seen.get("refused").is_none_or(|status| *status == 401),
        "{seen}"
    );
    Ok(())
}

fn llm(peers: &Peers) -> Result<()> {
    let lango = Lango::new(peers)?.serve()?;
    let folder = tempfile::tempdir()?;
    let models = format!(
        "- model_id: lango\n  model_name: lango\n  api_key_name: lango\n  api_base: \"{}/v1\"\n",
        lango.url()
    );
    std::fs::write(folder.path().join("extra-openai-models.yaml"), models)?;
    let mut command = peers.python_program("python-1.0", "llm");
    command
        .args(["-m", "lango", "--key", &lango.token, "hello"])
        .env("LLM_USER_PATH", folder.path());
    let output = command.output()?;
    let words = String::from_utf8_lossy(&output.stdout);
    ensure!(
        words.contains("Hello!"),
        "{words}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// B93: a third-party client sends Lango two messages in one context.
fn external_client(peers: &Peers, client: &[&str]) -> Result<()> {
    let lango = Lango::new(peers)?.serve()?;
    let mut command = peers.a2a(client[0], "client");
    let seen = run_json_lines(
        command
            .arg(lango.url())
            .arg(&lango.token)
            .args(&client[1..])
            .args(["hello", "thank you"]),
    )?;
    let turns: Vec<&Value> = seen
        .iter()
        .filter(|line| line.get("states").is_some())
        .collect();
    ensure!(turns.len() == 2, "{seen:?}");
    for turn in turns {
        let last = turn["states"]
            .as_array()
            .and_then(|states| states.last()?.as_str());
        let is_done = last.is_some_and(|state| state.to_lowercase().ends_with("completed"));
        ensure!(is_done, "{turn}");
        let words = turn["words"]
            .as_array()
            .map(|words| words.iter().filter_map(Value::as_str).collect::<String>());
        ensure!(words.is_some_and(|words| !words.is_empty()), "{turn}");
    }
    Ok(())
}

/// S90: a third-party agent gets a task, answers under its name, fails, and asks for input.
fn external_server(peers: &Peers, server: &[&str]) -> Result<()> {
    let running = PeerServer::start(|port| {
        let mut command = peers.a2a(server[0], "server");
        command.arg(port.to_string()).args(&server[1..]);
        command
    })?;
    let lango = Lango::new(peers)?.with_remote("parrot", &running.url(), "");
    let said = find_answer(
        &lango.ask("parrot: repeat the words good morning")?,
        "parrot",
    )?;
    ensure!(
        said.contains("You said:") && said.contains("good morning"),
        "{said}"
    );
    let asked = find_answer(&lango.ask("parrot: ask me something")?, "parrot")?;
    ensure!(asked.contains("Which colour?"), "{asked}");
    let events = lango.ask_for_failure("parrot: fail, please")?;
    let outcome = events
        .iter()
        .find(|event| event["type"] == "transfer_result")
        .context("an outcome")?;
    ensure!(outcome["outcome"] == "failed", "{outcome}");
    ensure!(
        find_answer(&events, ORCHESTRATOR)?.contains("the kettle is broken"),
        "{events:?}"
    );
    Ok(())
}

/// B93: a request passes through an intermediate Lango, and the answer comes back.
fn three_chained(peers: &Peers) -> Result<()> {
    let last = Lango::new(peers)?.serve()?;
    let middle = Lango::new(peers)?
        .with_remote_lango("basement", &last)
        .serve()?;
    let first = Lango::new(peers)?.with_remote_lango("hallway", &middle);
    let said = find_answer(&first.ask("hallway: tell basement: hello")?, "hallway")?;
    ensure!(said.contains("Hello!"), "{said}");
    drop(last);
    let said = find_answer(&first.ask("hallway: tell basement: hello")?, "hallway")?;
    ensure!(said.contains("basement says: connection failed"), "{said}");
    Ok(())
}

/// B93: the client cancels, and the command that runs two hops away is killed.
fn cancel_through_chain(peers: &Peers) -> Result<()> {
    // A duration that no other case uses.
    const COMMAND: &str = "sleep 97.531";
    let last = Lango::new(peers)?
        .with_setting("security.approval.dangerous=auto")
        .serve()?;
    let middle = Lango::new(peers)?
        .with_remote_lango("basement", &last)
        .serve()?;
    let first = Lango::new(peers)?.with_remote_lango("hallway", &middle);
    let request = format!("hallway: tell basement: operator: run {COMMAND}");
    let mut asking = first
        .command(&["ask", &request, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    wait_until("the command runs", || is_running(COMMAND))?;
    Command::new("kill")
        .args(["-INT", &asking.id().to_string()])
        .status()?;
    let mut events = String::new();
    asking
        .stdout
        .take()
        .context("what it prints")?
        .read_to_string(&mut events)?;
    let status = asking.wait()?;
    ensure!(
        !status.success() && events.contains(r#""outcome":"cancelled""#),
        "{status}: {events}"
    );
    wait_until("the command has ended", || !is_running(COMMAND))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let started = Instant::now();
    while !is_so() {
        ensure!(
            started.elapsed() < Duration::from_secs(20),
            "not within 20 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns true if a process runs exactly this command.
fn is_running(command: &str) -> bool {
    let wanted = format!("{}\0", command.replace(' ', "\0"));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines =
        processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| line == wanted.as_bytes())
}

fn find_answer(events: &[Value], author: &str) -> Result<String> {
    let answer = events
        .iter()
        .find(|event| event["type"] == "answer")
        .with_context(|| format!("{events:?}"))?;
    ensure!(answer["author"] == author, "{answer}");
    Ok(answer["text"].as_str().unwrap_or_default().to_owned())
}
