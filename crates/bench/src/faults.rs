//! `lango-bench faults`: turns against providers that send endless replies, each in its own
//! process, and their peak memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use lango_app::{
    Assistant, AssistantOptions, Environment, LazyStores, LoadedConfig, Overrides, Recording,
};
use lango_domain::event::{EventBody, Principal, SessionId, Update};
use lango_engine::TurnRequest;
use lango_runtime::TurnSpec;
use lango_testkit::endless;
use lango_testkit::model_server::{ModelServer, ServerReply};
use serde::{Deserialize, Serialize};

use crate::measure::rss_peak_mb;

/// Arguments of the child process, which runs one turn against one provider.
#[derive(clap::Args)]
pub struct FaultsChild {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    dialect: String,
    #[arg(long)]
    base_url: String,
}

/// The result that the child prints.
#[derive(Serialize, Deserialize)]
struct ChildResult {
    /// The failure code, or `answered` if the turn did not fail.
    code: String,
    rss_peak_mb: f64,
}

/// The measurement of one provider, printed as one JSON line.
#[derive(Serialize)]
struct FaultMeasurement<'a> {
    dialect: &'a str,
    endless: &'a str,
    code: String,
    rss_peak_mb: f64,
    /// Amount that the provider could send, including data in socket buffers.
    sent_mb: f64,
    seconds: f64,
}

/// Memory that a turn may take in addition to an answered one: twice every cap of a reply, because
/// vectors double their capacity when they grow.
const MAX_ABOVE_MB: f64 = 64.0;

pub fn run() -> Result<()> {
    let answering = ModelServer::start(vec![ServerReply::text("Hello.")])?;
    let baseline_mb = measure_provider("openai", "nothing", &answering)?;
    let mut exceeded = Vec::new();
    for dialect in endless::DIALECTS {
        for reply in endless::replies(dialect) {
            let server = ModelServer::start(vec![ServerReply::Endless(reply)])?;
            if measure_provider(dialect, reply.name, &server)? > baseline_mb + MAX_ABOVE_MB {
                exceeded.push(format!("{dialect}: {}", reply.name));
            }
        }
    }
    ensure!(
        exceeded.is_empty(),
        "turns took more memory than a reply may take: {}",
        exceeded.join(", ")
    );
    Ok(())
}

/// Measures a turn against a provider, prints the measurement, and returns the peak memory.
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
    let stdout = command.output()?.stdout;
    let seconds = began.elapsed().as_secs_f64();
    let ChildResult { code, rss_peak_mb } =
        serde_json::from_slice(&stdout).context("the child process printed no valid result")?;
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

/// Runs one turn, as `lango ask` does, and prints the result.
pub fn child(child: &FaultsChild) -> Result<()> {
    let (loaded, environment) = load_settings(child)?;
    let code = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let store = LazyStores::new(&loaded, &environment);
            let (tools, recording) = (Vec::new(), &Recording::Off);
            let options = AssistantOptions {
                stores: &store,
                tools,
                catalog: Default::default(),
                approver: None,
                recording,
                secrets: None,
                remote_agents: None,
            };
            let assistant = Assistant::open(&loaded, &environment, options)?;
            let (session, principal) = (SessionId::new("s"), Principal::local());
            let request = TurnRequest::from_user(session, principal, "hello");
            let mut updates = assistant.runtime.start_turn(TurnSpec::request(request))?;
            let mut code = "answered".to_owned();
            while let Some(update) = updates.next().await {
                if let Update::Event(event) = update
                    && let EventBody::TurnFailed { code: failure, .. } = &event.body
                {
                    code = failure.to_string();
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
