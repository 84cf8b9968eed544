//! Everything that a command started, found by who is whose parent, whatever it did to get away.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// So often the processes are looked for anew before they are ended: a fork may be under way.
const LOOKS: usize = 20;

/// One process of the system, as far as it matters here.
struct Process {
    parent: i32,
    pages: u64,
}

/// The processes below this one.
pub struct Below {
    pub processes: Vec<i32>,
    /// Resident memory of all of them.
    pub pages: u64,
}

/// Looks at all processes that can be seen.
pub fn below_this() -> Below {
    let all = processes();
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, process) in &all {
        children.entry(process.parent).or_default().push(*pid);
    }
    let (mut found, mut pages) = (Vec::new(), 0);
    let mut waiting = vec![std::process::id() as i32];
    while let Some(parent) = waiting.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            found.push(*child);
            pages += all.get(child).map_or(0, |process| process.pages);
            waiting.push(*child);
        }
    }
    Below { processes: found, pages }
}

/// Ends all of them: first none may go on forking, then all are killed, then all are waited for.
pub fn end_all() {
    let mut stopped: HashSet<i32> = HashSet::new();
    for _ in 0..LOOKS {
        let new: Vec<i32> = below_this().processes.into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if new.is_empty() {
            break;
        }
        signal_all(&new, Signal::STOP);
        stopped.extend(new);
    }
    loop {
        signal_all(&below_this().processes, Signal::KILL);
        match wait(WaitOptions::empty()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            // There is nobody left: this process is the parent of every orphan.
            Err(_) => return,
        }
    }
}

fn signal_all(processes: &[i32], signal: Signal) {
    for pid in processes.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

fn processes() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

/// From `stat`: behind the name, which may hold anything, come the state, the parent, and 20 fields later the pages.
fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let behind_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(stat.get(behind_name..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let pages = fields.nth(19)?.parse().ok()?;
    Some(Process { parent, pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let below = below_this();
        assert!(below.processes.contains(&(child.id() as i32)) && below.pages > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
