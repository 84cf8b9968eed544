//! `lango-bench`: benchmarks that print one JSON line per measurement. Only compare lines from the
//! same machine.

mod automation;
mod baseline;
mod browser;
mod faults;
mod gateway;
mod graph;
mod kill;
mod measure;
mod memory;
mod model_server;
mod operator;
mod retrieval;
mod rng;
mod store;
mod team;
mod turn;
mod vault;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    name = "lango-bench",
    version,
    about = "Runs benchmarks of Lango and prints the results as JSON lines"
)]
struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Run turns of three model calls (transfer, tool call, answer) through the engine, over HTTP.
    Turn(Load),
    /// Run the same three calls written by hand with reqwest and serde_json, as a baseline.
    Floor(Load),
    /// Kill a process that runs turns many times, and check that no acknowledged event is lost.
    Kill {
        /// Number of kills.
        #[arg(long, default_value_t = 1000)]
        kills: usize,
    },
    /// Run or resume one turn; this is the process that `kill` kills.
    #[command(hide = true)]
    KillChild(kill::KillChild),
    /// Kill a process inside payments, lose the answer of a paid request, and offer hostile prices.
    Vault {
        /// Number of kills.
        #[arg(long, default_value_t = 1000)]
        kills: usize,
    },
    /// Start a chain with USDC on loopback, to try payments by hand; needs `cargo xtask peers`.
    Chain(vault::chain::ChainOptions),
    /// Make one payment; this is the process that `vault` kills.
    #[command(hide = true)]
    VaultChild(vault::VaultChild),
    /// Run turns against providers that send endless replies, and measure outcome and peak memory.
    Faults,
    /// Run one of the turns of `faults`.
    #[command(hide = true)]
    FaultsChild(faults::FaultsChild),
    /// Measure durable appends and opening sessions, compared with a plain SQLite loop.
    Store {
        /// Folder for the files; a temporary one by default.
        #[arg(long)]
        folder: Option<std::path::PathBuf>,
        /// Seconds per measurement.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// Measure the overhead of the sandbox, and file search compared with ripgrep.
    Operator {
        /// Number of files in the searched tree.
        #[arg(long, default_value_t = 100_000)]
        files: usize,
        /// Runs per measurement; the median is reported.
        #[arg(long, default_value_t = 15)]
        runs: usize,
    },
    /// Measure indexing and searching documents, compared with SQLite FTS5.
    Retrieval {
        /// Number of chunks.
        #[arg(long, default_value_t = 100_000)]
        pieces: usize,
        /// Number of queries.
        #[arg(long, default_value_t = 500)]
        queries: usize,
    },
    /// Measure importing facts into the knowledge graph and querying it.
    Graph {
        /// Number of generated facts.
        #[arg(long, default_value_t = 1_000_000)]
        triples: usize,
        /// Number of queries of each kind.
        #[arg(long, default_value_t = 2_000)]
        questions: usize,
        /// Import this file of tab-separated facts (subject, predicate, object) instead.
        #[arg(long)]
        file: Option<std::path::PathBuf>,
    },
    /// Measure turns with and without memory, and the shared prefix of consecutive requests.
    Memory {
        /// Number of stored observations.
        #[arg(long, default_value_t = 10_000)]
        observations: usize,
        /// Number of turns per measurement.
        #[arg(long, default_value_t = 200)]
        turns: usize,
    },
    /// Measure the server: `/v1/chat/completions` with an instant model, idle streams, and startup.
    Serve(gateway::ServeLoad),
    /// Run the server that `serve` measures.
    #[command(hide = true)]
    ServeChild {
        /// SQLite file of the store.
        store: std::path::PathBuf,
    },
    /// Kill the scheduler many times; measure steps of workflows compared with DBOS, and jobs at rest.
    Automation(automation::AutomationBench),
    /// Run the scheduler that `automation` kills or measures.
    #[command(hide = true)]
    AutomationChild(automation::AutomationChild),
    /// Measure tokens per page, clicks, memory and start of the browser, compared with two MCP servers.
    Browser(browser::BrowserBench),
    /// Run a model server that replies instantly with those three calls.
    ModelServer {
        /// Port to listen on, on the loopback interface.
        #[arg(long, default_value_t = 8099)]
        port: u16,
    },
}

/// The load of `turn` and `floor`.
#[derive(Args, Clone)]
struct Load {
    /// Base URL of an OpenAI-compatible server; starts a built-in one by default.
    #[arg(long)]
    base_url: Option<String>,
    /// Number of turns, each in its own session.
    #[arg(long, default_value_t = 2000)]
    turns: usize,
    /// Number of concurrent turns.
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
    /// Store the sessions in this SQLite file instead of in memory.
    #[arg(long)]
    store: Option<std::path::PathBuf>,
}

fn main() -> Result<ExitCode> {
    if let Some(exit_code) = lango_tools::sandbox::run_if_sandbox_process() {
        return Ok(exit_code);
    }
    measure().map(|()| ExitCode::SUCCESS)
}

fn measure() -> Result<()> {
    let started = std::time::Instant::now();
    match BenchArgs::parse().bench {
        Bench::Turn(load) => turn::run(&load, started),
        Bench::Floor(load) => baseline::run(&load, started),
        Bench::Kill { kills } => kill::run(kills),
        Bench::KillChild(child) => kill::child(&child),
        Bench::Vault { kills } => vault::run(kills),
        Bench::Chain(options) => vault::chain::run(&options),
        Bench::VaultChild(child) => vault::child(&child),
        Bench::Faults => faults::run(),
        Bench::FaultsChild(child) => faults::child(&child),
        Bench::Store { folder, seconds } => store::run(folder.as_deref(), seconds),
        Bench::Operator { files, runs } => operator::run(files, runs),
        Bench::Retrieval { pieces, queries } => retrieval::run(pieces, queries),
        Bench::Graph {
            triples,
            questions,
            file,
        } => graph::run(triples, questions, file.as_deref()),
        Bench::Memory {
            observations,
            turns,
        } => memory::run(observations, turns),
        Bench::Serve(load) => gateway::run(&load),
        Bench::ServeChild { store } => gateway::child(&store),
        Bench::Automation(options) => automation::run(&options),
        Bench::AutomationChild(child) => automation::child(&child),
        Bench::Browser(options) => browser::run(&options),
        Bench::ModelServer { port } => model_server::run(port),
    }
}
