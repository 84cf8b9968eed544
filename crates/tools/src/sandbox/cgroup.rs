//! A control group for one command, if the system allows it: a hard limit for processes and memory.

use std::fs;
use std::path::{Path, PathBuf};

use super::spec::SandboxLimits;

const CGROUP_ROOT: &str = "/sys/fs/cgroup";
const PROCS_FILE: &str = "cgroup.procs";
const NAME_PREFIX: &str = "lango-";

/// The control groups created by this process; removed on drop.
#[derive(Default)]
pub struct Cgroup {
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// Creates all groups that the system allows.
    pub fn create(limits: &SandboxLimits) -> Self {
        let mut group = Self::default();
        for line in fs::read_to_string("/proc/self/cgroup")
            .unwrap_or_default()
            .lines()
        {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let path = path.trim_start_matches('/');
            let (processes, memory) = (limits.processes, limits.memory_bytes);
            let group_path = |controller: &str| Path::new(CGROUP_ROOT).join(controller).join(path);
            match controllers {
                "pids" => group.create_in(&group_path("pids"), &[("pids.max", processes)]),
                "memory" => {
                    group.create_in(&group_path("memory"), &[("memory.limit_in_bytes", memory)])
                }
                // A group with processes cannot have limited child groups, so the new one is a
                // sibling.
                "" => {
                    let own = Path::new(CGROUP_ROOT).join(path);
                    if let Some(parent) = own
                        .parent()
                        .filter(|parent| parent.starts_with(CGROUP_ROOT))
                    {
                        group.create_in(parent, &[("pids.max", processes), ("memory.max", memory)]);
                    }
                }
                _ => {}
            }
        }
        group
    }

    fn create_in(&mut self, parent: &Path, limits: &[(&str, u64)]) {
        remove_stale(parent);
        let folder = parent.join(format!("{NAME_PREFIX}{}", std::process::id()));
        if fs::create_dir(&folder).is_err() {
            return;
        }
        let is_limited = limits.iter().all(|(file, limit)| {
            let file = folder.join(file);
            file.exists() && fs::write(file, limit.to_string()).is_ok()
        });
        if is_limited {
            self.folders.push(folder);
        } else {
            let _ = fs::remove_dir(folder);
        }
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }
}

/// Removes groups of helpers that were killed.
fn remove_stale(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME_PREFIX));
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Enters groups created by another process. Returns true if all of them could be entered.
pub fn enter(folders: &[PathBuf]) -> bool {
    // 0 refers to the writing process.
    folders
        .iter()
        .all(|folder| fs::write(folder.join(PROCS_FILE), "0").is_ok())
}
