//! Memory of a browser's processes.

use std::collections::HashMap;
use std::fs;

use serde::Serialize;

/// Proportional memory (PSS): pages that processes share count once.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Memory {
    pub browser_mb: f64,
    /// The processes of the MCP server. Lango has none: its tools run in its own process.
    pub server_mb: Option<f64>,
}

impl Memory {
    /// Measures a process and everything that it has started.
    pub fn below(root: u32) -> Self {
        let parents = parents();
        let is_below = |process: u32| {
            let mut at = process;
            while let Some(&parent) = parents.get(&at) {
                if parent == root {
                    return true;
                }
                at = parent;
            }
            false
        };
        let below = parents.keys().copied().filter(|process| is_below(*process));
        let (servers, browsers): (Vec<u32>, Vec<u32>) =
            below.partition(|process| is_node(*process));
        let sum = |processes: &[u32]| processes.iter().map(|one| pss_mb(*one)).sum::<f64>();
        Self {
            browser_mb: sum(&browsers),
            server_mb: Some(pss_mb(root) + sum(&servers)),
        }
    }
}

fn parents() -> HashMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let parent = |process: u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        after_name.split_whitespace().nth(1)?.parse().ok()
    };
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|process| Some((process, parent(process)?)))
        .collect()
}

fn is_node(process: u32) -> bool {
    let program = fs::read_link(format!("/proc/{process}/exe"));
    program.is_ok_and(|path| path.file_name().is_some_and(|name| name == "node"))
}

fn pss_mb(process: u32) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}
