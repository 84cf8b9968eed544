//! Runs tasks of MiniWoB++ with scripted policies against the browser's tools: `cargo xtask eval browser`.
//!
//! The policies know the wording of each task, but act only through outlines and references, so the score is
//! that of the tools. The first argument is the folder `html` of the package; the second selects tasks.

#![expect(clippy::print_stdout, reason = "the report is printed")]

mod policies;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lango_browser::{BrowserOptions, BrowserSettings, Navigator, NavigatorParts, tools};
use lango_domain::{Tool, ToolContext};
use lango_net::AddressPolicy;
use lango_testkit::tool_context_for;
use policies::{TASKS, run_policy};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SEEDS: u32 = 10;

type Outcome = Result<(), String>;

/// A control in an outline.
struct Control {
    id: String,
    role: String,
    name: String,
    /// The whole description.
    text: String,
}

/// One episode of a task.
struct Episode<'a> {
    tools: &'a [Tool],
    context: ToolContext,
    /// The task in words.
    task: String,
}

impl Episode<'_> {
    async fn call(&self, tool: &str, args: Value) -> Result<String, String> {
        let tool = self.tools.iter().find(|one| one.name == tool);
        let tool = tool.ok_or_else(|| "no such tool".to_owned())?;
        let output = tool.call(self.context.clone(), args).await;
        output
            .map(|output| output.content.text)
            .map_err(|error| error.0)
    }

    async fn act(&self, args: Value) -> Outcome {
        self.call("browser_action", args).await.map(drop)
    }

    async fn outline(&self) -> Result<String, String> {
        self.call("browser_observe", json!({ "limit": 200 })).await
    }

    async fn controls(&self) -> Result<Vec<Control>, String> {
        Ok(parse_controls(&self.outline().await?))
    }

    async fn find(&self, roles: &[&str], name: &str) -> Result<String, String> {
        let controls = self.controls().await?;
        let is_role = |control: &&Control| {
            roles.is_empty() || roles.iter().any(|role| control.role.starts_with(role))
        };
        let mut matching = controls.iter().filter(is_role);
        let exact = matching.clone().find(|control| control.name == name);
        let found = exact.or_else(|| {
            let name = name.to_lowercase();
            matching.find(|control| control.name.to_lowercase() == name)
        });
        let all = || {
            controls
                .iter()
                .map(|one| one.text.as_str())
                .collect::<Vec<_>>()
        };
        found
            .map(|control| control.id.clone())
            .ok_or_else(|| format!("no {roles:?} \"{name}\" in {:?}", all()))
    }

    async fn click(&self, roles: &[&str], name: &str) -> Outcome {
        let id = self.find(roles, name).await?;
        self.act(json!({ "action": "click", "ref": id })).await
    }

    /// Clicks or fills the control of a role at a position.
    async fn nth(&self, role: &str, at: usize) -> Result<String, String> {
        let controls = self.controls().await?;
        let mut matching = controls.iter().filter(|one| one.role.starts_with(role));
        let found = matching.nth(at);
        found
            .map(|one| one.id.clone())
            .ok_or_else(|| format!("no {role} number {at}"))
    }

    async fn type_into(&self, role: &str, at: usize, text: &str) -> Outcome {
        let id = self.nth(role, at).await?;
        self.act(json!({ "action": "type", "ref": id, "text": text }))
            .await
    }

    /// Returns the texts in quotation marks of the task.
    fn quoted(&self) -> Vec<String> {
        let parts = self.task.split('"').skip(1).step_by(2);
        parts.map(|part| part.trim().to_owned()).collect()
    }

    fn first_quoted(&self) -> Result<String, String> {
        let first = self.quoted().into_iter().next();
        first.ok_or_else(|| format!("no quotation in `{}`", self.task))
    }

    /// Returns the task's text between two others.
    fn between(&self, before: &str, after: &str) -> Result<String, String> {
        let rest = self.task.split_once(before).map(|(_, rest)| rest);
        let part = rest.and_then(|rest| rest.split_once(after));
        part.map(|(part, _)| part.trim().to_owned())
            .ok_or_else(|| format!("unexpected task `{}`", self.task))
    }

    async fn select_boxes(&self, role: &str) -> Outcome {
        let wanted = self.between("Select ", " and click")?;
        if wanted != "nothing" {
            for name in wanted.split(", ") {
                self.click(&[role], name).await?;
            }
        }
        self.click(&["button"], "Submit").await
    }

    /// Opens tabs or sections until a link or word is there.
    async fn search_tabs(&self, wanted: &str) -> Outcome {
        for at in 0..8 {
            if self.click(&["clickable", "link"], wanted).await.is_ok() {
                return Ok(());
            }
            let controls = self.controls().await?;
            let tabs = controls.iter().filter(|one| {
                one.role == "tab"
                    || one.name.starts_with("Tab #")
                    || one.name.starts_with("Section #")
            });
            let Some(tab) = tabs.map(|one| one.id.clone()).nth(at) else {
                break;
            };
            self.act(json!({ "action": "click", "ref": tab })).await?;
        }
        Err(format!("\"{wanted}\" is in no tab"))
    }
}

fn parse_controls(outline: &str) -> Vec<Control> {
    let mut controls = Vec::new();
    for part in outline.split("[e").skip(1) {
        let text = part.split(']').next().unwrap_or_default();
        let (head, rest) = text.split_once('"').unwrap_or((text, ""));
        let mut words = head.split_whitespace();
        let (Some(number), Some(role)) = (words.next(), words.next()) else {
            continue;
        };
        controls.push(Control {
            id: format!("e{number}"),
            role: role.to_owned(),
            name: rest.split('"').next().unwrap_or_default().to_owned(),
            text: text.to_owned(),
        });
    }
    controls
}

async fn run_episode(
    tools: &[Tool],
    address: &str,
    task: &str,
    seed: u32,
) -> Result<Duration, String> {
    let mut episode = Episode {
        tools,
        context: tool_context_for("navigator"),
        task: String::new(),
    };
    let url = format!("{address}/miniwob/{task}.html");
    episode
        .call("browser_navigate", json!({ "url": url }))
        .await?;
    let script = format!(
        "Math.seedrandom({seed}); core.EPISODE_MAX_TIME = 60000; core.startEpisodeReal(); core.getUtterance()"
    );
    let started = episode
        .call(
            "browser_action",
            json!({ "action": "eval", "text": script }),
        )
        .await?;
    let said = started.strip_prefix("result: ").unwrap_or_default();
    episode.task = said.lines().next().unwrap_or_default().to_owned();
    let start = Instant::now();
    run_policy(task, &episode).await?;
    let took = start.elapsed();
    let script = json!({ "action": "eval", "text": "`reward ${WOB_RAW_REWARD_GLOBAL}`" });
    let result = episode.call("browser_action", script).await?;
    match result.starts_with("result: reward 1") {
        true => Ok(took),
        false => Err(format!(
            "{} for `{}`",
            result.lines().next().unwrap_or_default(),
            episode.task
        )),
    }
}

async fn serve(mut stream: TcpStream, folder: PathBuf) {
    let mut bytes = vec![0; 8192];
    let count = stream.read(&mut bytes).await.unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let path = text.split(' ').nth(1).unwrap_or_default();
    let path = path
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_start_matches('/');
    let is_safe = !path.contains("..");
    let body = std::fs::read(folder.join(path)).ok().filter(|_| is_safe);
    let kind = match Path::new(path).extension().and_then(|end| end.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        _ => "application/octet-stream",
    };
    let status = if body.is_some() {
        "200 OK"
    } else {
        "404 Not Found"
    };
    let body = body.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
    let _ = stream.shutdown().await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(
        arguments
            .next()
            .ok_or("expected the folder html of MiniWoB++")?,
    );
    let selected = arguments.next().unwrap_or_default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, folder.clone()));
        }
    });
    let settings = BrowserSettings {
        allow_eval: true,
        ..BrowserSettings::default()
    };
    let navigator = Navigator::new(NavigatorParts {
        options: BrowserOptions {
            settings,
            policy: AddressPolicy::Anywhere,
            variables: std::env::vars_os().collect(),
            temp_folder: std::env::temp_dir(),
        },
        read_file: Arc::new(|_| Err("no files".to_owned())),
        read_pdf: Arc::new(|_| Err("no PDF files".to_owned())),
    });
    let tools = tools(&navigator);
    let (mut passed_tasks, mut passed, mut all) = (0, 0, 0);
    let mut times = Vec::new();
    for task in TASKS.iter().filter(|task| task.contains(&selected)) {
        let (mut good, mut last_error) = (0, None);
        for seed in 0..SEEDS {
            all += 1;
            match run_episode(&tools, &address, task, seed).await {
                Ok(took) => {
                    good += 1;
                    times.push(took);
                }
                Err(error) => last_error = Some(error),
            }
        }
        passed += good;
        passed_tasks += u32::from(good == SEEDS);
        println!("{task}: {good}/{SEEDS} {}", last_error.unwrap_or_default());
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    println!(
        "{passed_tasks} of {} tasks, {passed} of {all} episodes, median {} ms",
        TASKS.len(),
        median.as_millis()
    );
    navigator.close().await;
    Ok(())
}
