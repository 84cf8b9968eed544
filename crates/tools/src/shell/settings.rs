//! The `tools.exec` section of the configuration.

use std::num::NonZeroU64;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sandbox::{SandboxLimits, SandboxMode};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecSettings {
    /// The sandbox for commands. If the system cannot confine file access, commands do not run unless this is `off`.
    pub sandbox: SandboxChoice,
    /// Allow commands to access the network.
    pub network: bool,
    /// Folders and files outside the workspace that commands may read; `~` is your home folder.
    pub read: Vec<PathBuf>,
    /// Environment variables to pass to commands, in addition to the default ones (PATH, HOME, LANG, …).
    pub env: Vec<String>,
    /// Seconds that a command may take unless the call says otherwise.
    pub seconds: NonZeroU64,
    /// Memory of all processes of a command together, in MiB.
    pub memory_mb: NonZeroU64,
    /// Processes of a command at one time.
    pub processes: NonZeroU64,
    /// The largest file that a command may write, in MiB.
    pub file_mb: NonZeroU64,
    /// Disk space that a command may take, in MiB.
    pub disk_mb: NonZeroU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxChoice {
    /// All mechanisms that the system supports.
    #[default]
    On,
    /// Landlock, seccomp and limits, without namespaces.
    NoNamespaces,
    /// No sandbox: commands run with all of your permissions.
    Off,
}

impl Default for ExecSettings {
    fn default() -> Self {
        const fn number(n: u64) -> NonZeroU64 {
            NonZeroU64::MIN.saturating_add(n - 1)
        }
        Self {
            sandbox: SandboxChoice::On,
            network: false,
            read: Vec::new(),
            env: Vec::new(),
            seconds: number(60),
            memory_mb: number(4_096),
            processes: number(512),
            file_mb: number(4_096),
            disk_mb: number(10_240),
        }
    }
}

impl ExecSettings {
    pub fn mode(&self) -> SandboxMode {
        match self.sandbox {
            SandboxChoice::On => SandboxMode::Full,
            SandboxChoice::NoNamespaces => SandboxMode::WithoutNamespaces,
            SandboxChoice::Off => SandboxMode::Off,
        }
    }

    pub fn limits(&self) -> SandboxLimits {
        let bytes = |mb: NonZeroU64| mb.get().saturating_mul(1024 * 1024);
        SandboxLimits {
            memory_bytes: bytes(self.memory_mb),
            processes: self.processes.get(),
            file_bytes: bytes(self.file_mb),
            disk_bytes: bytes(self.disk_mb),
        }
    }
}
