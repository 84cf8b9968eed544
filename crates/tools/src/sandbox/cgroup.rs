//! A control group for one command, where the system lets this user make one: a hard limit for processes and memory.

use std::fs;
use std::path::{Path, PathBuf};

use super::spec::SandboxLimits;

const ROOT: &str = "/sys/fs/cgroup";
const MEMBERS: &str = "cgroup.procs";
const NAME: &str = "lango-";

/// Groups that this process made for what it starts, and removes again.
#[derive(Default)]
pub struct ControlGroup {
    made: Vec<PathBuf>,
}

impl ControlGroup {
    /// Makes what can be made.
    pub fn make(limits: &SandboxLimits) -> Self {
        let mut group = Self::default();
        for line in fs::read_to_string("/proc/self/cgroup").unwrap_or_default().lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let path = path.trim_start_matches('/');
            let (processes, memory) = (limits.processes, limits.memory_bytes);
            let below = |controller: &str| Path::new(ROOT).join(controller).join(path);
            match controllers {
                "pids" => group.make_in(&below("pids"), &[("pids.max", processes)]),
                "memory" => group.make_in(&below("memory"), &[("memory.limit_in_bytes", memory)]),
                // A group that holds processes cannot have limited groups below it: the new one stands beside.
                "" => {
                    let own = Path::new(ROOT).join(path);
                    if let Some(parent) = own.parent().filter(|parent| parent.starts_with(ROOT)) {
                        group.make_in(parent, &[("pids.max", processes), ("memory.max", memory)]);
                    }
                }
                _ => {}
            }
        }
        group
    }

    fn make_in(&mut self, parent: &Path, limits: &[(&str, u64)]) {
        remove_left_over(parent);
        let folder = parent.join(format!("{NAME}{}", std::process::id()));
        if fs::create_dir(&folder).is_err() {
            return;
        }
        let is_limited = limits.iter().all(|(file, limit)| {
            let file = folder.join(file);
            file.exists() && fs::write(file, limit.to_string()).is_ok()
        });
        if is_limited {
            self.made.push(folder);
        } else {
            let _ = fs::remove_dir(folder);
        }
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.made
    }
}

/// Groups of helpers that were killed.
fn remove_left_over(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Enters groups that another process made; whether that worked for all of them.
pub fn enter(folders: &[PathBuf]) -> bool {
    // 0 stands for whoever writes it.
    folders.iter().all(|folder| fs::write(folder.join(MEMBERS), "0").is_ok())
}
