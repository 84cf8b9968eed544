//! A control group for one command, where the system lets this user make one: a hard limit for processes and memory.

use std::fs;
use std::path::{Path, PathBuf};

use super::spec::Limits;

const ROOT: &str = "/sys/fs/cgroup";
const MEMBERS: &str = "cgroup.procs";

/// Groups that this process made and is in, until it goes home.
#[derive(Default)]
pub struct ControlGroup {
    made: Vec<PathBuf>,
    homes: Vec<PathBuf>,
}

impl ControlGroup {
    /// Makes what can be made and enters it, so that whatever is started next is in it.
    pub fn enter(limits: &Limits) -> Self {
        let mut group = Self::default();
        for line in fs::read_to_string("/proc/self/cgroup").unwrap_or_default().lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let path = path.trim_start_matches('/');
            match controllers {
                "" => group.enter_unified(path, limits),
                "pids" => group.enter_one(
                    &Path::new(ROOT).join("pids").join(path),
                    None,
                    &[("pids.max", limits.processes)],
                ),
                "memory" => {
                    let home = Path::new(ROOT).join("memory").join(path);
                    group.enter_one(&home, None, &[("memory.limit_in_bytes", limits.memory_bytes)]);
                }
                _ => {}
            }
        }
        group
    }

    /// A group that holds processes cannot have limited groups below it: the new one stands beside.
    fn enter_unified(&mut self, path: &str, limits: &Limits) {
        let home = Path::new(ROOT).join(path);
        if let Some(parent) = home.parent().filter(|parent| parent.starts_with(ROOT)) {
            let limits = [("pids.max", limits.processes), ("memory.max", limits.memory_bytes)];
            self.enter_one(&home, Some(parent), &limits);
        }
    }

    fn enter_one(&mut self, home: &Path, beside: Option<&Path>, limits: &[(&str, u64)]) {
        let own = std::process::id();
        let folder = beside.unwrap_or(home).join(format!("lango-{own}"));
        if fs::create_dir(&folder).is_err() {
            return;
        }
        let limited = limits.iter().all(|(file, limit)| {
            let file = folder.join(file);
            file.exists() && fs::write(file, limit.to_string()).is_ok()
        });
        if limited && fs::write(folder.join(MEMBERS), own.to_string()).is_ok() {
            self.made.push(folder);
            self.homes.push(home.join(MEMBERS));
        } else {
            let _ = fs::remove_dir(folder);
        }
    }

    pub fn is_made(&self) -> bool {
        !self.made.is_empty()
    }

    /// This process itself goes back; what it started stays.
    pub fn go_home(&self) {
        for home in &self.homes {
            let _ = fs::write(home, std::process::id().to_string());
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        self.go_home();
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}
