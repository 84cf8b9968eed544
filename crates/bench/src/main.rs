//! `lango-bench`: measures, and prints one JSON line for each thing measured. Compare lines of one run on one machine.

mod floor;
mod measure;
mod serve;
mod team;
mod turn;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "lango-bench", version, about = "Measures Lango, and prints what it measured")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Turns of three model calls (transfer, tool call, answer) through the real engine and the real dialect.
    Turn(Load),
    /// The same three calls written by hand on reqwest and serde_json: what cannot be beaten.
    Floor(Load),
    /// A model server without latency that plays those three calls.
    Serve {
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
}

fn main() -> Result<()> {
    let started = std::time::Instant::now();
    match Arguments::parse().bench {
        Bench::Turn(load) => turn::run(&load, started),
        Bench::Floor(load) => floor::run(&load, started),
        Bench::Serve { port } => serve::run(port),
    }
}
