//! Playwright MCP and chrome-devtools-mcp: MCP servers that take one JSON message per line.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::pages::PageServer;

/// Longest time of one call.
const CALL_LIMIT: Duration = Duration::from_secs(60);
const PROTOCOL: &str = "2025-06-18";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PeerKind {
    Playwright,
    DevTools,
}

impl PeerKind {
    pub const ALL: [Self; 2] = [Self::Playwright, Self::DevTools];

    pub fn name(self) -> &'static str {
        match self {
            Self::Playwright => "Playwright MCP",
            Self::DevTools => "chrome-devtools-mcp",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Playwright => "@playwright/mcp",
            Self::DevTools => "chrome-devtools-mcp",
        }
    }

    /// Returns the script of the peer in a folder with installed packages.
    pub fn find(self, folder: &Path) -> Option<PathBuf> {
        let name = match self {
            Self::Playwright => "playwright-mcp",
            Self::DevTools => "chrome-devtools-mcp",
        };
        let script = folder.join("node_modules/.bin").join(name);
        script.canonicalize().ok()
    }

    /// Arguments that use the given browser, with an empty profile and without a window. The proxy answers
    /// for all hosts but loopback, at once, that they are dead.
    fn arguments(self, browser: &Path, proxy: &str) -> Vec<String> {
        let browser = browser.display().to_string();
        let arguments = match self {
            Self::Playwright => vec![
                "--headless",
                "--isolated",
                "--executable-path",
                &browser,
                "--proxy-server",
                proxy,
            ],
            Self::DevTools => vec![
                "--headless",
                "--isolated",
                "--no-usage-statistics",
                "--executablePath",
                &browser,
                "--proxyServer",
                proxy,
            ],
        };
        // Chromium refuses to start for root with its sandbox; the peers cannot map root to another user.
        let without_sandbox = match self {
            Self::Playwright => "--no-sandbox",
            Self::DevTools => "--chromeArg=--no-sandbox",
        };
        let root_only = is_root().then_some(without_sandbox);
        let arguments = arguments.into_iter().chain(root_only);
        arguments.map(str::to_owned).collect()
    }
}

/// Returns true if this process runs as root.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

pub struct McpPeer {
    kind: PeerKind,
    version: String,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    calls: u64,
    has_page: bool,
    _folder: tempfile::TempDir,
}

impl McpPeer {
    pub async fn start(
        kind: PeerKind,
        script: &Path,
        browser: &Path,
        server: &PageServer,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut child = Command::new("node")
            .arg(script)
            .args(kind.arguments(browser, &server.address()))
            // Playwright MCP writes its snapshots into the current folder.
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start node")?;
        let input = child.stdin.take().context("no input of the peer")?;
        let output = child.stdout.take().context("no output of the peer")?;
        let mut peer = Self {
            kind,
            version: installed_version(kind, script),
            child,
            input,
            output: BufReader::new(output).lines(),
            calls: 0,
            has_page: false,
            _folder: folder,
        };
        let client = json!({ "name": "lango-bench", "version": env!("CARGO_PKG_VERSION") });
        let hello =
            json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        peer.request("initialize", hello).await?;
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await?;
        Ok(peer)
    }

    pub fn name(&self) -> String {
        format!("{} {}", self.kind.name(), self.version)
    }

    pub fn process(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Returns what stands before and after a reference.
    pub fn reference_marks(&self) -> (&'static str, char) {
        match self.kind {
            PeerKind::Playwright => ("[ref=", ']'),
            PeerKind::DevTools => ("uid=", ' '),
        }
    }

    pub async fn open(&mut self, url: &str) -> Result<String> {
        match self.kind {
            PeerKind::Playwright => {
                let args = json!({ "url": url });
                self.tool("browser_navigate", args).await?;
            }
            PeerKind::DevTools if self.has_page => {
                let args = json!({ "pageId": 2, "type": "url", "url": url });
                self.tool("navigate_page", args).await?;
            }
            // The page of its start is the first one, so the new one is the second.
            PeerKind::DevTools => {
                self.tool("new_page", json!({ "url": url })).await?;
                self.has_page = true;
            }
        }
        self.look().await
    }

    pub async fn look(&mut self) -> Result<String> {
        match self.kind {
            PeerKind::Playwright => self.tool("browser_snapshot", json!({})).await,
            PeerKind::DevTools => self.tool("take_snapshot", json!({ "pageId": 2 })).await,
        }
    }

    /// Clicks an element. Playwright MCP answers with the name of a file with the new page, chrome-devtools-mcp
    /// with the whole page.
    pub async fn click(&mut self, element: &str) -> Result<String> {
        match self.kind {
            PeerKind::Playwright => {
                let args = json!({ "element": "Add", "target": element, "ref": element });
                self.tool("browser_click", args).await
            }
            PeerKind::DevTools => {
                let args = json!({ "pageId": 2, "uid": element, "includeSnapshot": true });
                self.tool("click", args).await
            }
        }
    }

    /// Ends the server by closing its input, so that it can end its browser.
    pub async fn close(mut self) {
        drop(self.input);
        if tokio::time::timeout(Duration::from_secs(10), self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.kill().await;
        }
    }

    async fn tool(&mut self, name: &str, args: Value) -> Result<String> {
        let params = json!({ "name": name, "arguments": args });
        let result = self.request("tools/call", params).await?;
        let parts = result["content"].as_array().into_iter().flatten();
        let texts: Vec<_> = parts.filter_map(|part| part["text"].as_str()).collect();
        let text = texts.join("\n");
        match result["isError"] == true {
            true => Err(anyhow!("{name}: {text}")),
            false => Ok(text),
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.calls += 1;
        let id = self.calls;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        let answer = async {
            while let Some(line) = self.output.next_line().await? {
                let message: Value = serde_json::from_str(&line)?;
                if message["id"] == id {
                    return anyhow::Ok(message);
                }
            }
            bail!("the peer ended")
        };
        let mut message = tokio::time::timeout(CALL_LIMIT, answer)
            .await
            .with_context(|| format!("{method}: no answer within {CALL_LIMIT:?}"))??;
        match message.get("error") {
            Some(error) => bail!("{method}: {error}"),
            None => Ok(message["result"].take()),
        }
    }

    async fn send(&mut self, message: Value) -> Result<()> {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await?;
        Ok(self.input.flush().await?)
    }
}

fn installed_version(kind: PeerKind, script: &Path) -> String {
    let mut folders = script.ancestors();
    let packages = folders.find(|folder| folder.ends_with("node_modules"));
    let manifest = packages.map(|folder| folder.join(kind.package()).join("package.json"));
    let text = manifest.and_then(|file| std::fs::read_to_string(file).ok());
    let manifest: Value = text
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    manifest["version"].as_str().unwrap_or("?").to_owned()
}
