//! Lango beside programs of others: the official A2A kits and OpenAI clients, each against the real binary.
//!
//! The peers are installed from the ordinary registries into the cache that the build folder lies in, so that they are
//! fetched once.

mod cases;
mod lango;
mod peers;
mod process;

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::step;

/// Builds the binary and runs every case, or those whose name contains the word.
pub fn run(word: &str) -> Result<()> {
    step("cargo", &["build", "--quiet", "--package", "lango-cli"])?;
    let peers = peers::installed()?;
    let chosen: Vec<_> = cases::all().into_iter().filter(|case| case.name.contains(word)).collect();
    if chosen.is_empty() {
        bail!("no case is called {word}");
    }
    for case in &chosen {
        let started = Instant::now();
        (case.run)(&peers).with_context(|| case.name.clone())?;
        eprintln!("ok {:<44} {:>5} ms", case.name, started.elapsed().as_millis());
    }
    eprintln!("interop: {} cases with programs of others", chosen.len());
    Ok(())
}
