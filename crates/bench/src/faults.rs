//! `lango-bench faults`: turns against providers that never stop, each in a process of its own, and the memory they took.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use lango_app::{
    Assistant, AssistantOptions, Environment, LazyStore, LoadedConfig, Overrides, Recording,
};
use lango_domain::event::{EventBody, Principal, SessionId, Update};
use lango_engine::TurnRequest;
use lango_testkit::endless;
use lango_testkit::model_server::{ModelServer, ServerReply};
use serde::{Deserialize, Serialize};

use crate::measure::rss_peak_mb;

/// One turn against one provider.
#[derive(clap::Args)]
pub struct FaultsChild {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    dialect: String,
    #[arg(long)]
    base_url: String,
}

/// What the child tells.
#[derive(Serialize, Deserialize)]
struct ChildResult {
    /// The code of the failure; `answered` where there was none.
    code: String,
    rss_peak_mb: f64,
}

/// One line of the table.
#[derive(Serialize)]
struct FaultMeasurement<'a> {
    dialect: &'a str,
    endless: &'a str,
    code: String,
    rss_peak_mb: f64,
    /// How much the provider could send, what lay in sockets included.
    sent_mb: f64,
    seconds: f64,
}

/// What a turn may take beside one that is answered: every cap of a reply twice, because lists double when they grow.
const MAX_ABOVE_MB: f64 = 64.0;

pub fn run() -> Result<()> {
    let hello = ModelServer::start(vec![ServerReply::text("Hello.")])?;
    let usual = measure_provider("openai", "nothing", &hello)?;
    let mut too_much = Vec::new();
    for dialect in endless::DIALECTS {
        for reply in endless::replies(dialect) {
            let server = ModelServer::start(vec![ServerReply::Endless(reply)])?;
            if measure_provider(dialect, reply.name, &server)? > usual + MAX_ABOVE_MB {
                too_much.push(format!("{dialect}: {}", reply.name));
            }
        }
    }
    ensure!(
        too_much.is_empty(),
        "more memory than a reply may take: {}",
        too_much.join(", ")
    );
    Ok(())
}

/// Prints a line; the most memory that the turn took.
fn measure_provider(dialect: &str, endless: &str, server: &ModelServer) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let base_url = if dialect == "openai" {
        server.base_url()
    } else {
        server.origin()
    };
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("faults-child")
        .arg("--folder")
        .arg(folder.path());
    command
        .args(["--dialect", dialect, "--base-url", &base_url])
        .stderr(Stdio::inherit());
    let began = Instant::now();
    let told = command.output()?.stdout;
    let seconds = began.elapsed().as_secs_f64();
    let ChildResult { code, rss_peak_mb } =
        serde_json::from_slice(&told).context("what the child told")?;
    let sent_mb = server.endless_bytes() as f64 / 1024.0 / 1024.0;
    let line = FaultMeasurement {
        dialect,
        endless,
        code,
        rss_peak_mb,
        sent_mb,
        seconds,
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(rss_peak_mb)
}

/// Asks once, as `lango ask` does, and tells how it ended.
pub fn child(child: &FaultsChild) -> Result<()> {
    let (loaded, environment) = load_settings(child)?;
    let code = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let stores = LazyStore::new(&loaded, &environment);
            let (tools, tape) = (Vec::new(), &Recording::Off);
            let means = AssistantOptions {
                store: &stores,
                tools,
                approver: None,
                recording: tape,
                remote_agents: None,
            };
            let conversation = Assistant::open(&loaded, &environment, means)?;
            let (session, principal) = (SessionId::new("s"), Principal::local());
            let mut updates = conversation
                .runner
                .run(TurnRequest::from_user(session, principal, "hello"));
            let mut code = "answered".to_owned();
            while let Some(update) = updates.next().await {
                if let Update::Event(event) = update
                    && let EventBody::TurnFailed { code: failed, .. } = &event.body
                {
                    code = failed.to_string();
                }
            }
            anyhow::Ok(code)
        })?;
    println!(
        "{}",
        serde_json::to_string(&ChildResult {
            code,
            rss_peak_mb: rss_peak_mb()?
        })?
    );
    Ok(())
}

fn load_settings(child: &FaultsChild) -> Result<(LoadedConfig, Environment)> {
    let home = |folder: &Path| folder.join("home").display().to_string();
    let variables = [("LANGO_HOME".to_owned(), home(&child.folder))].into();
    let environment = Environment {
        variables,
        working_folder: child.folder.clone(),
    };
    let set = [
        &format!("providers.x.type={}", child.dialect),
        &format!("providers.x.baseUrl={}", child.base_url),
        "providers.x.retries=0",
        "agent.provider=x",
        "agent.model=m",
    ];
    let overrides = Overrides {
        config: None,
        set: set.map(str::to_owned).to_vec(),
    };
    let loaded = LoadedConfig::load(&environment, &overrides)
        .map_err(|error| anyhow::anyhow!(error.message))?;
    Ok((loaded, environment))
}
