//! Interoperability tests: the official A2A kits and OpenAI clients against the real binary, a real mail
//! server against the deliveries by e-mail, and tool servers of others (MCP) as parts of the team.
//!
//! The peers are installed once from the package registries, into the build folder.

mod cases;
mod email;
mod lango;
mod mcp;
pub(crate) mod peers;
pub(crate) mod process;

use std::time::Instant;

use anyhow::{Result, bail};

use crate::step;

pub use peers::install_dbos;

/// Builds the binary and runs every case, or those whose name contains the word.
pub fn run(word: &str) -> Result<()> {
    step("cargo", &["build", "--quiet", "--package", "lango-cli"])?;
    let example = ["--package", "lango-automation", "--example", "send_email"];
    step("cargo", &[&["build", "--quiet"], &example[..]].concat())?;
    let peers = peers::install()?;
    let chosen: Vec<_> = cases::all()
        .into_iter()
        .filter(|case| case.name.contains(word))
        .collect();
    if chosen.is_empty() {
        bail!("no case is called {word}");
    }
    let mut failed = 0;
    for case in &chosen {
        let started = Instant::now();
        let done = (case.run)(&peers);
        let word = if done.is_ok() { "ok    " } else { "FAILED" };
        eprintln!(
            "{word} {:<44} {:>5} ms",
            case.name,
            started.elapsed().as_millis()
        );
        if let Err(error) = done {
            eprintln!("{error:#}");
            failed += 1;
        }
    }
    if failed > 0 {
        bail!("{failed} of {} cases failed", chosen.len());
    }
    eprintln!("interop: {} cases with programs of others", chosen.len());
    Ok(())
}
