//! `lango serve`: the team over HTTP.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use lango_app::{
    Environment, GatewayServer, LoadedConfig, ToolFactory, apply_retention, knowledge_tools,
};
use lango_store::SqliteStore;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::CommandContext;
use crate::args::{GlobalArgs, ServeArgs};
use crate::output::{CliError, DIM, NAME, OutputFormat, print_stderr, styled, warn};

/// How often old sessions are looked for.
const RETENTION_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

pub fn run(
    global: &GlobalArgs,
    wish: &ServeArgs,
    form: OutputFormat,
) -> Result<ExitCode, CliError> {
    let setting = CommandContext::load_with(global, setting_overrides(wish))?;
    let served = lango_app::build_server(
        &setting.loaded,
        &setting.environment,
        &setting.store,
        make_tools(&setting)?,
    )?;
    warn(&served.warnings, form);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| CliError::usage(format!("cannot start: {error}")))?;
    runtime.block_on(serve(&setting, &served, form))?;
    // What still waits for a slow disk or a stubborn tool does not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

/// What was started through the hands runs on when the team is built anew.
fn make_tools(setting: &CommandContext) -> Result<ToolFactory, CliError> {
    let hands = setting.toolset()?;
    let (loaded, environment) = (setting.loaded.clone(), setting.environment.clone());
    let stores = setting.store.clone();
    Ok(Box::new(move || {
        let mut tools = hands.tools();
        tools.extend(knowledge_tools(&loaded, &environment, &hands, &stores)?);
        Ok(tools)
    }))
}

fn setting_overrides(wish: &ServeArgs) -> Vec<String> {
    let host = wish.host.iter().map(|host| format!("server.host={host}"));
    host.chain(wish.port.iter().map(|port| format!("server.port={port}")))
        .collect()
}

async fn serve(
    setting: &CommandContext,
    served: &GatewayServer,
    form: OutputFormat,
) -> Result<(), CliError> {
    let settings = served.gateway.settings();
    let has_token = !served.gateway.store().tokens().await?.is_empty();
    if !has_token && !settings.host.is_loopback() {
        return Err(CliError::usage(format!(
            "{} can be reached from elsewhere, and there is no access token yet",
            settings.host
        ))
        .with_hint("make one first: `lango token create NAME`"));
    }
    let wanted = SocketAddr::new(settings.host, settings.port);
    let listener = TcpListener::bind(wanted).await.map_err(|error| {
        CliError::usage(format!("cannot listen on {wanted}: {error}"))
            .with_hint("choose another with --host and --port")
    })?;
    let address = listener.local_addr().unwrap_or(wanted);
    let ended = shutdown_signal()?;
    announce(address, &served.model_name, form);
    if !has_token {
        let how = "there is no access token yet, so nobody can ask anything: make one with `lango token create NAME` (no restart is needed)";
        warn(&[how.to_owned()], form);
    }
    tokio::spawn(apply_retention_daily(
        setting.environment.clone(),
        setting.loaded.clone(),
        served.gateway.store().clone(),
    ));
    tokio::select! {
        () = served.gateway.serve(listener, ended) => {}
        () = served.watch_remote_agents() => {}
    }
    Ok(())
}

/// The first line of output: whoever waits for it can connect now.
fn announce(address: SocketAddr, model: &str, form: OutputFormat) {
    let line = match form {
        OutputFormat::Plain => format!(
            "Listening on {} {}",
            styled(NAME, format!("http://{address}")),
            styled(DIM, format!("({model}; Ctrl-C ends it)"))
        ),
        OutputFormat::Json => {
            json!({ "url": format!("http://{address}"), "port": address.port(), "model": model })
                .to_string()
        }
    };
    let mut stdout = anstream::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Waits for SIGTERM or Ctrl-C; a second one ends the process at once.
fn shutdown_signal() -> Result<impl Future<Output = ()>, CliError> {
    let cannot =
        |error: std::io::Error| CliError::usage(format!("cannot listen to signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut next = async move || {
        tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} }
    };
    Ok(async move {
        next().await;
        print_stderr("Ending: nothing new begins, running turns may finish.");
        tokio::spawn(async move {
            next().await;
            std::process::exit(130);
        });
    })
}

/// What `store.retentionDays` asks for, now and every day.
async fn apply_retention_daily(environment: Environment, loaded: LoadedConfig, store: SqliteStore) {
    loop {
        if let Err(trouble) =
            apply_retention(&loaded, &environment, &store, jiff::Timestamp::now()).await
        {
            warn(
                &[format!("old sessions could not be deleted: {trouble}")],
                OutputFormat::Plain,
            );
        }
        tokio::time::sleep(RETENTION_INTERVAL).await;
    }
}
