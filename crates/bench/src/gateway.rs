//! `lango-bench serve`: the server under load, with idle streams, and at startup.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream as Blocking;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::stream::{BoxStream, StreamExt};
use jiff::Timestamp;
use lango_domain::Stores;
use lango_domain::access_tokens::{AccessToken, TokenScope, token_value};
use lango_domain::event::{Principal, TurnId, Usage};
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};
use lango_engine::{ApprovalPolicy, Models, Runner, TurnHooks, TurnLimits};
use lango_gateway::{Gateway, GatewayClockAndIds, GatewayParts, ServedTeam, ServerSettings};
use lango_runtime::{ClientBridge, Runtime, RuntimeParts};
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::measure::{ServerProcess, percentile_ms, rss_mb_of};
use crate::team;

/// The load of `serve`.
#[derive(Args)]
pub struct ServeLoad {
    /// Number of requests for each number of connections.
    #[arg(long, default_value_t = 5_000)]
    requests: usize,
    /// Number of idle streams.
    #[arg(long, default_value_t = 1_000)]
    streams: usize,
    /// Folder for the sessions; a temporary one by default.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Path of the `lango` binary to start; the one next to this program by default.
    #[arg(long)]
    lango: Option<PathBuf>,
}

const CONNECTIONS: [usize; 3] = [1, 32, 256];
/// Maximum time of a start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

pub fn run(load: &ServeLoad) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = load
        .folder
        .clone()
        .unwrap_or_else(|| temporary.path().to_path_buf());
    let file = folder.join("bench.sqlite");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let token = runtime.block_on(make_token(&file))?;
    let (server, port) = start_server(&file)?;
    let client = Client { port, token };
    for connections in CONNECTIONS {
        let measured =
            runtime.block_on(measure_completions(&client, connections, load.requests))?;
        println!("{}", add_rss(measured, server.0.id())?);
    }
    println!(
        "{}",
        runtime.block_on(measure_idle_streams(&client, load.streams, server.0.id()))?
    );
    drop(server);
    println!("{}", measure_startup(load)?);
    Ok(())
}

fn add_rss(mut measured: Value, process: u32) -> Result<Value> {
    measured["server_rss_mb"] = rss_mb_of(process)?.into();
    Ok(measured)
}

async fn make_token(file: &Path) -> Result<String> {
    let stores = SqliteStore::open(StoreLocation::from_path(file))?.stores();
    let value = token_value(&[7; 32]);
    let token = AccessToken {
        name: "bench".to_owned(),
        principal: Principal::new("bench"),
        scopes: [TokenScope::Admin].into(),
        created: Timestamp::now(),
        expires: None,
        used: None,
    };
    stores.access_tokens.add_token(token, &value).await?;
    Ok(value.expose().to_owned())
}

fn start_server(file: &Path) -> Result<(ServerProcess, u16)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("serve-child")
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child
        .stdout
        .take()
        .context("the server process has no stdout")?;
    let server = ServerProcess(child);
    let mut port = String::new();
    BufReader::new(stdout).read_line(&mut port)?;
    Ok((server, port.trim().parse()?))
}

/// Runs the server with an instant model and prints its port.
pub fn child(file: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stores = SqliteStore::open(StoreLocation::from_path(file))?.stores();
        let bridge = ClientBridge::new(stores.clone(), Arc::new(Timestamp::now));
        let limit = NonZeroUsize::MIN.saturating_add(8_191);
        let settings = ServerSettings {
            requests_per_minute: NonZeroU32::MAX,
            turns: limit,
            turns_per_principal: limit,
            streams_per_principal: limit,
            connections: limit,
            ..ServerSettings::default()
        };
        let ids = AtomicUsize::new(0);
        let (team, runner) = instant_team(&stores, &bridge)?;
        let runtime = Runtime::new(RuntimeParts {
            runner,
            approver: Some(bridge.approver()),
            limiter: settings.turn_limiter(),
        });
        let gateway = Gateway::new(GatewayParts {
            settings,
            runtime,
            team,
            stores,
            client_bridge: bridge,
            delete_session_hook: Arc::new(|_, _| {}),
            clock_and_ids: GatewayClockAndIds {
                now: Arc::new(Timestamp::now),
                new_id: Arc::new(move || format!("n{}", ids.fetch_add(1, Ordering::Relaxed))),
            },
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?.port());
        gateway.serve(listener, std::future::pending()).await;
        Ok(())
    })
}

fn instant_team(stores: &Stores, bridge: &ClientBridge) -> Result<(ServedTeam, Runner)> {
    let tree = team::build_tree()?;
    let team = ServedTeam::from_tree(&tree);
    let turns = AtomicUsize::new(0);
    let runner = Runner::new(lango_engine::RunnerParts {
        tree,
        models: Models {
            default: Arc::new(InstantModel),
            per_agent: BTreeMap::new(),
        },
        store: Arc::clone(&stores.sessions),
        blobs: Arc::clone(&stores.blobs),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks {
            context_sources: vec![bridge.context_source()],
            ..TurnHooks::default()
        },
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: lango_engine::ClockAndIds {
            now: Arc::new(Timestamp::now),
            new_turn_id: Arc::new(move || {
                TurnId::new(format!("t{}", turns.fetch_add(1, Ordering::Relaxed)))
            }),
        },
    });
    Ok((team, runner))
}

/// A model that answers immediately.
struct InstantModel;

impl Model for InstantModel {
    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let usage = Usage {
            model: "at-once".to_owned(),
            input: 1_000,
            output: 20,
            ..Usage::default()
        };
        let fragments = [
            Fragment::Text("Hello.".to_owned()),
            Fragment::Usage(usage),
            Fragment::Done,
        ];
        futures::stream::iter(fragments.map(Ok)).boxed()
    }

    fn window(&self) -> usize {
        128_000
    }
}

/// A minimal HTTP client.
#[derive(Clone)]
struct Client {
    port: u16,
    token: String,
}

impl Client {
    async fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
        .into_bytes()
    }
}

/// Reads one response by its content length. Fails unless its status is 200.
async fn read_response(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.clear();
    loop {
        if let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).to_lowercase();
            if !text.starts_with("http/1.1 200") {
                bail!("{}", String::from_utf8_lossy(buffer));
            }
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if buffer.len() >= head + 4 + length.unwrap_or(0_usize) {
                return Ok(());
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
    }
}

async fn measure_completions(
    client: &Client,
    connections: usize,
    requests: usize,
) -> Result<Value> {
    let body =
        json!({ "model": "lango", "messages": [{ "role": "user", "content": team::REQUEST }] });
    let request = Arc::new(client.request("POST", "/v1/chat/completions", &body.to_string()));
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let (client, request, next) = (client.clone(), Arc::clone(&request), Arc::clone(&next));
            tokio::spawn(async move {
                let (mut stream, mut buffer, mut times) =
                    (client.connect().await?, Vec::new(), Vec::new());
                while next.fetch_add(1, Ordering::Relaxed) < requests {
                    let sent_at = Instant::now();
                    stream.write_all(&request).await?;
                    read_response(&mut stream, &mut buffer).await?;
                    times.push(sent_at.elapsed());
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await??);
    }
    let wall = began.elapsed().as_secs_f64();
    times.sort_unstable();
    Ok(json!({
        "what": "/v1/chat/completions",
        "connections": connections,
        "requests": requests,
        "per_s": (requests as f64 / wall).round(),
        "p50_ms": percentile_ms(&times, 0.5),
        "p99_ms": percentile_ms(&times, 0.99),
    }))
}

/// Opens streams that wait for events of an idle session, and measures the server's memory.
async fn measure_idle_streams(client: &Client, streams: usize, process: u32) -> Result<Value> {
    let body = json!({ "text": "hello", "session": "idle" }).to_string();
    let mut turn_stream = client.connect().await?;
    turn_stream
        .write_all(&client.request("POST", "/api/turns", &body))
        .await?;
    let mut received = String::new();
    while !received.contains("turn_done") {
        let mut chunk = [0; 4096];
        let length = turn_stream.read(&mut chunk).await?;
        received += &String::from_utf8_lossy(&chunk[..length]);
    }
    let before = rss_mb_of(process)?;
    let follow_request = client.request("GET", "/api/sessions/idle/events?after=1000", "");
    let (mut open, mut buffer) = (Vec::new(), Vec::new());
    for _ in 0..streams {
        let mut stream = client.connect().await?;
        stream.write_all(&follow_request).await?;
        read_response(&mut stream, &mut buffer).await?;
        open.push(stream);
    }
    let after = rss_mb_of(process)?;
    let per_stream_kb = (after - before) * 1024.0 / streams.max(1) as f64;
    Ok(
        json!({ "what": "streams that wait", "streams": open.len(), "rss_before_mb": before, "rss_mb": after, "kb_each": per_stream_kb }),
    )
}

/// Measures the time from starting `lango serve` until it is ready, and its memory at rest.
fn measure_startup(load: &ServeLoad) -> Result<Value> {
    let default_path = std::env::current_exe()?.with_file_name("lango");
    let lango = load.lango.clone().unwrap_or(default_path);
    if !lango.exists() {
        return Ok(
            json!({ "what": "start to ready", "skipped": "no lango binary next to this program; pass its path with --lango" }),
        );
    }
    let mut times = Vec::new();
    let mut at_rest = 0.0;
    for _ in 0..11 {
        let home = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let began = Instant::now();
        let child = Command::new(&lango)
            .args([
                "serve",
                "--provider",
                "offline",
                "--port",
                &port.to_string(),
            ])
            .current_dir(home.path())
            .env("LANGO_HOME", home.path().join("home"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = ServerProcess(child);
        while !is_ready(port) {
            if began.elapsed() > START_TIMEOUT {
                bail!(
                    "the server was not ready within {} seconds",
                    START_TIMEOUT.as_secs()
                );
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        times.push(began.elapsed());
        at_rest = rss_mb_of(server.0.id())?;
    }
    times.sort_unstable();
    Ok(
        json!({ "what": "start to ready", "p50_ms": percentile_ms(&times, 0.5), "worst_ms": percentile_ms(&times, 1.0), "rss_mb": at_rest }),
    )
}

fn is_ready(port: u16) -> bool {
    let request = || -> std::io::Result<bool> {
        let mut stream = Blocking::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response.starts_with("HTTP/1.1 200"))
    };
    request().unwrap_or(false)
}
