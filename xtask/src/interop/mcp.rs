//! Tool servers of others: added, listed, called, and gone afterwards.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::lango::Lango;
use super::peers::Peers;
use super::process::PeerServer;

/// One server: its command, and the calls that it must answer.
struct ServerCase<'a> {
    key: &'a str,
    revision: &'a str,
    options: Vec<String>,
    command: Vec<String>,
    calls: Vec<(&'a str, Value, &'a str)>,
}

impl ServerCase<'_> {
    fn run(&self, lango: &Lango) -> Result<()> {
        let mut words = vec!["mcp", "add", self.key, "--yes"];
        words.extend(self.options.iter().map(String::as_str));
        if !self.command.is_empty() {
            words.push("--");
            words.extend(self.command.iter().map(String::as_str));
        }
        lango.run(&words)?;
        let listed: Value = serde_json::from_str(&lango.run(&["mcp", "list", "--json"])?)?;
        let item = &listed["items"][0];
        ensure!(item["state"] == "ready", "{item}");
        ensure!(item["revision"] == self.revision, "{item}");
        let team = lango.run(&["agent", "list", "--json"])?;
        ensure!(team.contains(&format!("\"{}\"", self.key)), "{team}");
        for (tool, arguments, expected) in &self.calls {
            let arguments = arguments.to_string();
            let called = lango.run(&["mcp", "call", self.key, tool, &arguments, "--yes"])?;
            ensure!(called.contains(expected), "{tool}: {called}");
        }
        Ok(())
    }
}

/// The revision of servers on the Node SDK.
const NODE_REVISION: &str = "2025-11-25";
/// The revision of servers on the Python SDK.
const PYTHON_REVISION: &str = "2026-07-28";

pub fn everything(peers: &Peers) -> Result<()> {
    let case = ServerCase {
        key: "everything",
        revision: NODE_REVISION,
        options: Vec::new(),
        command: peers.mcp_node("server-everything"),
        calls: everything_calls(),
    };
    case.run(&Lango::new(peers)?)
}

/// The same server over streamable HTTP.
pub fn everything_over_http(peers: &Peers) -> Result<()> {
    let server = PeerServer::start(|port| {
        let words = peers.mcp_node("server-everything");
        let mut command = std::process::Command::new(&words[0]);
        command.args(&words[1..]).arg("streamableHttp");
        command.env("PORT", port.to_string());
        command
    })?;
    let case = ServerCase {
        key: "everything",
        revision: NODE_REVISION,
        options: vec!["--url".to_owned(), format!("{}/mcp", server.url())],
        command: Vec::new(),
        calls: everything_calls(),
    };
    case.run(&Lango::new(peers)?)
}

fn everything_calls() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("echo", json!({ "message": "hello" }), "hello"),
        ("get-sum", json!({ "a": 2, "b": 3 }), "5"),
        ("get-tiny-image", json!({}), "image/png"),
    ]
}

/// Reads and writes in the named folder, and nowhere else.
pub fn filesystem(peers: &Peers) -> Result<()> {
    let lango = Lango::new(peers)?;
    let folder = lango.home().join("files");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("a.txt"), "inside")?;
    let (path, file) = (text(&folder)?, text(&folder.join("a.txt"))?);
    let mut command = peers.mcp_node("server-filesystem");
    command.push(path.clone());
    let new = text(&folder.join("b.txt"))?;
    let case = ServerCase {
        key: "files",
        revision: NODE_REVISION,
        options: vec!["--write".to_owned(), path],
        command,
        calls: vec![
            ("read_text_file", json!({ "path": file }), "inside"),
            (
                "write_file",
                json!({ "path": new, "content": "new" }),
                "b.txt",
            ),
        ],
    };
    case.run(&lango)?;
    ensure!(std::fs::read_to_string(folder.join("b.txt"))? == "new");
    let outside = json!({ "path": "/etc/passwd" }).to_string();
    let denied = lango.run(&["mcp", "call", "files", "read_text_file", &outside, "--yes"]);
    ensure!(denied.is_err(), "a file outside was read");
    Ok(())
}

pub fn memory(peers: &Peers) -> Result<()> {
    let lango = Lango::new(peers)?;
    let folder = lango.home().join("graph");
    std::fs::create_dir(&folder)?;
    let entity = json!({ "name": "Ada", "entityType": "person", "observations": ["counts"] });
    let file = folder.join("memory.json");
    let case = ServerCase {
        key: "notes",
        revision: NODE_REVISION,
        options: vec![
            "--write".to_owned(),
            text(&folder)?,
            "--env".to_owned(),
            format!("MEMORY_FILE_PATH={}", file.display()),
        ],
        command: peers.mcp_node("server-memory"),
        calls: vec![
            ("create_entities", json!({ "entities": [entity] }), "Ada"),
            ("read_graph", json!({}), "counts"),
        ],
    };
    case.run(&lango)
}

pub fn time(peers: &Peers) -> Result<()> {
    let program = peers.python_program("python-mcp", "mcp-server-time");
    let case = ServerCase {
        key: "time",
        revision: PYTHON_REVISION,
        options: Vec::new(),
        command: vec![program.get_program().display().to_string()],
        calls: vec![("get_current_time", json!({ "timezone": "UTC" }), "UTC")],
    };
    case.run(&Lango::new(peers)?)
}

pub fn fastmcp(peers: &Peers) -> Result<()> {
    let script = peers.python("python-mcp", "mcp_server.py");
    let words = std::iter::once(script.get_program()).chain(script.get_args());
    let case = ServerCase {
        key: "peer",
        revision: PYTHON_REVISION,
        options: Vec::new(),
        command: words.map(|word| word.display().to_string()).collect(),
        calls: vec![
            ("add", json!({ "a": 2, "b": 3 }), "5"),
            ("count", json!({}), "counted"),
        ],
    };
    case.run(&Lango::new(peers)?)
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().context("a path of plain characters")?;
    Ok(text.to_owned())
}
