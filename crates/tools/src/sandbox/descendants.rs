//! Finds and kills all descendants of this process by their parents, even if they detached
//! themselves.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// Number of times that processes are stopped before they are killed, because forks may be in
/// progress.
const STOP_ROUNDS: usize = 5;
const KILL_INTERVAL: Duration = Duration::from_millis(1);

/// The descendants of this process.
pub struct Descendants {
    pub processes: Vec<i32>,
    /// The total resident memory, in pages.
    pub pages: u64,
}

/// Lists all descendants of this process.
pub fn list() -> Descendants {
    let own = std::process::id() as i32;
    let all = if has_children_file(own) {
        HashMap::new()
    } else {
        children_by_parent()
    };
    let children = |parent: i32| match all.is_empty() {
        true => child_pids(parent),
        false => all.get(&parent).cloned().unwrap_or_default(),
    };
    let (mut found, mut pages) = (Vec::new(), 0);
    let mut pending = vec![own];
    while let Some(parent) = pending.pop() {
        for child in children(parent) {
            pages += resident_pages(child).unwrap_or_default();
            found.push(child);
            pending.push(child);
        }
    }
    Descendants {
        processes: found,
        pages,
    }
}

/// Kills all descendants. A process that forks and exits repeatedly can escape each listing, so
/// ended processes are not reaped until none is alive: zombies count against the process limit, at
/// which no process can fork.
pub fn kill_all() {
    while !has_reaped_all() {
        for _ in 0..STOP_ROUNDS {
            signal_all(&living_pids(), Signal::STOP);
        }
        loop {
            let living = living_pids();
            if living.is_empty() {
                break;
            }
            signal_all(&living, Signal::KILL);
            std::thread::sleep(KILL_INTERVAL);
        }
    }
}

fn living_pids() -> Vec<i32> {
    list()
        .processes
        .into_iter()
        .filter(|pid| !has_ended(*pid))
        .collect()
}

/// Returns true if the process is a zombie or no longer exists.
fn has_ended(pid: i32) -> bool {
    stat_field(pid, 0).is_none_or(|state| state == "Z" || state == "X")
}

/// Reaps ended children, and returns true if no child is left.
fn has_reaped_all() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

fn signal_all(processes: &[i32], signal: Signal) {
    for pid in processes.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns true if the kernel lists the children of a process; otherwise all processes must be
/// scanned.
fn has_children_file(own: i32) -> bool {
    fs::exists(format!("/proc/{own}/task/{own}/children")).unwrap_or(false)
}

/// Returns the children of all threads of a process.
fn child_pids(parent: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}

fn children_by_parent() -> HashMap<i32, Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if let Some(parent) = parent_pid(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

fn parent_pid(pid: i32) -> Option<i32> {
    stat_field(pid, 1)?.parse().ok()
}

/// Returns a field of `stat` after the name, which may contain anything. Field 0 is the state,
/// field 1 the parent.
fn stat_field(pid: i32, number: usize) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    fields
        .split_ascii_whitespace()
        .nth(number)
        .map(str::to_owned)
}

fn resident_pages(pid: i32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{pid}/statm"))
        .ok()?
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_children_by_file_and_by_scan() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (own, pid) = (std::process::id() as i32, child.id() as i32);
        let descendants = list();
        assert!(descendants.processes.contains(&pid) && descendants.pages > 0);
        assert!(children_by_parent()[&own].contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
