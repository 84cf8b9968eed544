//! `lango serve`: the HTTP server.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use lango_app::{Environment, GatewayServer, LoadedConfig, apply_retention};
use lango_domain::Stores;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CommandContext;
use crate::args::{GlobalArgs, ServeArgs};
use crate::output::{CliError, DIM, NAME, OutputFormat, print_stderr, styled, warn};

/// The interval at which old sessions are deleted.
const RETENTION_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

pub fn run(
    global: &GlobalArgs,
    args: &ServeArgs,
    format: OutputFormat,
) -> Result<ExitCode, CliError> {
    let context = CommandContext::load_with(global, setting_overrides(args))?;
    let server = lango_app::build_server(&context.loaded, &context.environment, &context.stores)?;
    warn(&server.warnings, format);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| CliError::usage(format!("cannot start the async runtime: {error}")))?;
    runtime.block_on(serve(&context, &server, format))?;
    // Do not wait for tasks that hang in disk access or in a tool.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

fn setting_overrides(args: &ServeArgs) -> Vec<String> {
    let host = args.host.iter().map(|host| format!("server.host={host}"));
    host.chain(args.port.iter().map(|port| format!("server.port={port}")))
        .collect()
}

async fn serve(
    context: &CommandContext,
    server: &GatewayServer,
    format: OutputFormat,
) -> Result<(), CliError> {
    let settings = server.gateway.settings();
    let has_token = !server
        .gateway
        .stores()
        .access_tokens
        .tokens()
        .await?
        .is_empty();
    if !has_token && !settings.host.is_loopback() {
        return Err(CliError::usage(format!(
            "refusing to listen on {} without an access token",
            settings.host
        ))
        .with_hint("create one with `lango token create NAME`"));
    }
    let address = SocketAddr::new(settings.host, settings.port);
    let listener = TcpListener::bind(address).await.map_err(|error| {
        CliError::usage(format!("cannot listen on {address}: {error}"))
            .with_hint("choose another address with --host and --port")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    let shutdown = shutdown_signal()?;
    announce(address, &server.model_name, format);
    if !has_token {
        let warning = "there is no access token yet, so every request is rejected; create one with \
                       `lango token create NAME` (no restart is needed)";
        warn(&[warning.to_owned()], format);
    }
    tokio::spawn(apply_retention_daily(
        context.environment.clone(),
        context.loaded.clone(),
        server.gateway.stores().clone(),
    ));
    let scheduler = server.start_scheduler(&context.loaded, &context.environment)?;
    tokio::select! {
        () = server.gateway.serve(listener, shutdown) => {}
        () = server.watch_changes() => {}
    }
    scheduler.stop().await;
    Ok(())
}

/// Prints the address as the first line of output, once clients can connect.
fn announce(address: SocketAddr, model: &str, format: OutputFormat) {
    let line = match format {
        OutputFormat::Plain => format!(
            "Listening on {} {}",
            styled(NAME, format!("http://{address}")),
            styled(DIM, format!("({model}; press Ctrl-C to stop)"))
        ),
        OutputFormat::Json => {
            json!({ "url": format!("http://{address}"), "port": address.port(), "model": model })
                .to_string()
        }
    };
    let mut stdout = anstream::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Returns a future that waits for SIGTERM or Ctrl-C. A second signal exits immediately.
fn shutdown_signal() -> Result<impl Future<Output = ()>, CliError> {
    let mut signals = StopSignals::listen()?;
    Ok(async move {
        signals.next().await;
        print_stderr("Shutting down: new turns are rejected, running turns may finish.");
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(130);
        });
    })
}

/// SIGTERM and Ctrl-C.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub fn listen() -> Result<Self, CliError> {
        let signal_error =
            |error: std::io::Error| CliError::usage(format!("cannot listen for signals: {error}"));
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(signal_error)?,
            interrupt: signal(SignalKind::interrupt()).map_err(signal_error)?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! { _ = self.terminate.recv() => {} _ = self.interrupt.recv() => {} }
    }
}

/// Applies `store.retentionDays` now and every day.
async fn apply_retention_daily(environment: Environment, loaded: LoadedConfig, stores: Stores) {
    loop {
        if let Err(error) =
            apply_retention(&loaded, &environment, &stores, jiff::Timestamp::now()).await
        {
            warn(
                &[format!("old sessions could not be deleted: {error}")],
                OutputFormat::Plain,
            );
        }
        tokio::time::sleep(RETENTION_INTERVAL).await;
    }
}
