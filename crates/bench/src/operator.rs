//! `lango-bench operator`: the overhead of the sandbox, and file search compared with ripgrep.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::{AgentName, ToolContext, ToolOutputSink};
use lango_tools::files::{self, FileTools, UndoStorage, Workspace};
use lango_tools::shell::{CommandRequest, ExecSettings, Program, SandboxChoice, Shell, ShellParts};
use serde_json::{Value, json};

const FILES_PER_FOLDER: usize = 50;
/// Every n-th file contains the searched word.
const NEEDLE_INTERVAL: usize = 1_000;
const NEEDLE: &str = "needle_in_the_haystack";

pub fn run(files: usize, runs: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?.join("tree");
    fs::create_dir(&root)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        measure_commands(&root, runs).await?;
        create_tree(&root, files)?;
        measure_search(&root, runs).await
    })
}

async fn measure_commands(root: &Path, runs: usize) -> Result<()> {
    let plain = median(runs, async || {
        let status = tokio::process::Command::new("/bin/bash")
            .args(["-c", "true"])
            .stdin(Stdio::null())
            .status()
            .await?;
        if status.success() {
            Ok(())
        } else {
            bail!("the command `true` failed")
        }
    })
    .await?;
    println!("{}", json!({ "bench": "plain spawn", "p50_ms": plain }));
    for (name, sandbox) in [
        ("sandbox", SandboxChoice::On),
        ("sandbox without namespaces", SandboxChoice::NoNamespaces),
        ("helper without sandbox", SandboxChoice::Off),
    ] {
        let shell = shell(root, sandbox)?;
        let sandboxed = median(runs, async || {
            let program = Program::Line("true".to_owned());
            let request = CommandRequest {
                program,
                folder: root.to_path_buf(),
                stdin: String::new(),
                timeout: None,
                env: Vec::new(),
                extra_read_paths: Vec::new(),
            };
            shell
                .run(&context()?, request)
                .await
                .map(drop)
                .map_err(|failure| anyhow::anyhow!(failure.0))
        })
        .await?;
        println!(
            "{}",
            json!({ "bench": name, "p50_ms": sandboxed, "adds_ms": sandboxed - plain })
        );
    }
    Ok(())
}

fn shell(root: &Path, sandbox: SandboxChoice) -> Result<Shell> {
    Ok(Shell::new(ShellParts {
        workspace: Workspace::open(root, Vec::new())?,
        journal: UndoStorage::in_folder(None).journal,
        settings: ExecSettings {
            sandbox,
            ..ExecSettings::default()
        },
        read: Vec::new(),
        hidden: Vec::new(),
        helper: PathBuf::from("/proc/self/exe"),
        variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        data: None,
        max_duration: Duration::from_secs(60),
    }))
}

fn context() -> Result<ToolContext> {
    Ok(ToolContext {
        session: SessionId::new("bench"),
        principal: Principal::local(),
        turn: TurnId::new("t"),
        agent: AgentName::new("operator").context("invalid agent name")?,
        call: CallId::new("c"),
        label: Default::default(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: Default::default(),
    })
}

/// Creates a tree like a source repository: many small files, some of them ignored by git.
fn create_tree(root: &Path, files: usize) -> Result<()> {
    fs::create_dir(root.join(".git"))?;
    fs::write(root.join(".gitignore"), "*.log\n/target\n")?;
    let text: String = (0..40)
        .map(|line| format!("let value_{line} = compute(value_{line}, {line}); // and so on\n"))
        .collect();
    for number in 0..files {
        let folder = root.join(format!(
            "part{:02}/module{:03}",
            number / FILES_PER_FOLDER % 40,
            number / FILES_PER_FOLDER / 40
        ));
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        let extension = if number % 10 == 9 { "log" } else { "rs" };
        let last_line = if number % NEEDLE_INTERVAL == 0 {
            NEEDLE
        } else {
            ""
        };
        fs::write(
            folder.join(format!("file{number}.{extension}")),
            format!("{text}{last_line}\n"),
        )?;
    }
    println!(
        "{}",
        json!({ "bench": "tree", "files": files, "bytes": files * text.len() })
    );
    Ok(())
}

async fn measure_search(root: &Path, runs: usize) -> Result<()> {
    let workspace = Workspace::open(root, Vec::new())?;
    let tools = files::tools(FileTools {
        workspace,
        undo_storage: UndoStorage::in_folder(None),
    });
    let tool = tools
        .into_iter()
        .find(|tool| tool.name == "fs_search")
        .context("there is no tool fs_search")?;
    for (name, args, rg) in [
        (
            "search for a word",
            json!({ "pattern": NEEDLE, "limit": 1000 }),
            vec!["-n", NEEDLE],
        ),
        (
            "search for a pattern",
            json!({ "pattern": r"value_3\d = \w+\(needle", "limit": 1000 }),
            vec!["-n", r"value_3\d = \w+\(needle"],
        ),
        (
            "files by name",
            json!({ "glob": "*7777.rs", "limit": 1000 }),
            vec!["--files", "-g", "*7777.rs"],
        ),
    ] {
        let fs_search_ms = median(runs, async || run_tool(&tool, &args).await.map(drop)).await?;
        let Ok(ripgrep_ms) = median(runs, async || ripgrep(root, &rg)).await else {
            println!(
                "{}",
                json!({ "bench": name, "p50_ms": fs_search_ms, "ripgrep": "is not installed" })
            );
            continue;
        };
        println!(
            "{}",
            json!({ "bench": name, "p50_ms": fs_search_ms, "ripgrep_p50_ms": ripgrep_ms, "times_ripgrep": fs_search_ms / ripgrep_ms })
        );
    }
    Ok(())
}

async fn run_tool(tool: &lango_domain::Tool, args: &Value) -> Result<String> {
    let output = tool.call(context()?, args.clone()).await;
    output
        .map(|output| output.content.text)
        .map_err(|failure| anyhow::anyhow!(failure.0))
}

fn ripgrep(root: &Path, args: &[&str]) -> Result<()> {
    Command::new("rg")
        .args(args)
        .arg(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(())
}

async fn median(runs: usize, run: impl AsyncFn() -> Result<()>) -> Result<f64> {
    run().await?;
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let began = Instant::now();
        run().await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
