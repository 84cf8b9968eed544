//! `lango-bench`: measures, and prints one JSON line for each thing measured. Compare lines of one run on one machine.

mod baseline;
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

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    name = "lango-bench",
    version,
    about = "Measures Lango, and prints what it measured"
)]
struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Turns of three model calls (transfer, tool call, answer) through the real engine and the real dialect.
    Turn(Load),
    /// The same three calls written by hand on reqwest and serde_json: what cannot be beaten.
    Floor(Load),
    /// A program assembled like the product, killed again and again: nothing that it acknowledged may be lost.
    Kill {
        /// How often.
        #[arg(long, default_value_t = 1000)]
        kills: usize,
    },
    /// What is killed: one turn, or the rest of one.
    #[command(hide = true)]
    KillChild(kill::KillChild),
    /// Turns against providers that never stop: how each ends, and the memory that it took at most.
    Faults,
    /// One of those turns.
    #[command(hide = true)]
    FaultsChild(faults::FaultsChild),
    /// Durable appends, and opening sessions, beside a plain SQLite loop.
    Store {
        /// The folder for the files; a temporary one by default.
        #[arg(long)]
        folder: Option<std::path::PathBuf>,
        /// Seconds for each measurement.
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// A sandboxed command that does nothing beside a plain one, and searching a tree of files beside ripgrep.
    Operator {
        /// How many files the tree has.
        #[arg(long, default_value_t = 100_000)]
        files: usize,
        /// How often each is measured; the middle one counts.
        #[arg(long, default_value_t = 15)]
        runs: usize,
    },
    /// Indexing and finding passages, beside SQLite's full text search.
    Retrieval {
        /// How many passages.
        #[arg(long, default_value_t = 100_000)]
        pieces: usize,
        /// How many questions.
        #[arg(long, default_value_t = 500)]
        queries: usize,
    },
    /// Taking facts into the knowledge graph, and questions to it.
    Graph {
        /// How many made-up facts.
        #[arg(long, default_value_t = 1_000_000)]
        triples: usize,
        /// How many questions of each kind.
        #[arg(long, default_value_t = 2_000)]
        questions: usize,
        /// Facts from this file instead: subject, predicate and object with tabs between them.
        #[arg(long)]
        file: Option<std::path::PathBuf>,
    },
    /// Turns with nothing and with much remembered, and how much of a request stays the same from turn to turn.
    Memory {
        /// How many observations.
        #[arg(long, default_value_t = 10_000)]
        observations: usize,
        /// How many turns are measured each time.
        #[arg(long, default_value_t = 200)]
        turns: usize,
    },
    /// The server: `/v1/chat/completions` with a model without latency, streams that wait, and how soon it is ready.
    Serve(gateway::ServeLoad),
    /// What is asked there.
    #[command(hide = true)]
    ServeChild {
        /// Where sessions are kept.
        store: std::path::PathBuf,
    },
    /// A model server without latency that plays those three calls.
    ModelServer {
        /// The port to listen on, on loopback.
        #[arg(long, default_value_t = 8099)]
        port: u16,
    },
}

/// How much of it.
#[derive(Args, Clone)]
struct Load {
    /// An OpenAI-compatible server; a built-in one in a process of its own when not given.
    #[arg(long)]
    base_url: Option<String>,
    /// How many turns, each a session of its own.
    #[arg(long, default_value_t = 2000)]
    turns: usize,
    /// How many at once.
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
    /// Keep the sessions in this SQLite file instead of in memory.
    #[arg(long)]
    store: Option<std::path::PathBuf>,
}

fn main() -> Result<ExitCode> {
    if let Some(ended) = lango_tools::sandbox::run_if_sandbox_process() {
        return Ok(ended);
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
        Bench::Serve(wish) => gateway::run(&wish),
        Bench::ServeChild { store } => gateway::child(&store),
        Bench::ModelServer { port } => model_server::run(port),
    }
}
