//! The protocol of the sandbox helper: its spec and its messages.

use std::io::{Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Maximum size of a spec, which is passed in one environment variable.
pub const MAX_SPEC_BYTES: usize = 120 * 1024;

/// A command and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    pub folder: PathBuf,
    /// The complete environment of the command.
    pub env: Vec<(String, String)>,
    /// Folders and files that may be read and executed, in addition to the system's.
    pub read: Vec<PathBuf>,
    /// Parts of the system's settings that may be read.
    pub public: Vec<PathBuf>,
    /// Folders that may be changed.
    pub write: Vec<PathBuf>,
    /// One of the `write` folders, created and removed by the helper for this command.
    pub temp: Option<PathBuf>,
    /// Folders that the command can never access.
    pub hidden: Vec<PathBuf>,
    pub network: bool,
    /// True if the command may start other programs.
    pub starts_programs: bool,
    pub mode: SandboxMode,
    pub limits: SandboxLimits,
    /// The file for the command's standard error, for a command whose output is a protocol. Without one,
    /// both streams are the output.
    pub error_log: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxMode {
    /// With namespaces, if the system allows them.
    Full,
    /// Without namespaces, as on a system that forbids them.
    WithoutNamespaces,
    /// No confinement; the command still ends with its call.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    pub memory_bytes: u64,
    pub processes: u64,
    /// Maximum size of one file.
    pub file_bytes: u64,
    /// Maximum total disk usage.
    pub disk_bytes: u64,
}

/// A message of the helper on stderr, one per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMessage {
    /// The command has started, confined by these mechanisms.
    Confined(Vec<String>),
    /// The command was not started.
    Failed(SandboxError),
    /// The command exited with a code, or was killed by a signal (128 plus the signal number).
    Ended { code: i32 },
    /// The command was killed because of a limit.
    Stopped(ExceededLimit),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxError {
    /// The system cannot confine file access.
    Unconfined(String),
    /// The program or its folder is missing, or another error.
    Other(String),
}

/// A limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceededLimit {
    Memory,
    Processes,
    Disk,
}

impl SandboxSpec {
    /// Encodes the spec as a frame: its length, then its JSON.
    pub fn to_frame(&self) -> Result<Vec<u8>, String> {
        let json = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        if json.len() > MAX_SPEC_BYTES {
            return Err("the command is too long; write it to a file and run the file".to_owned());
        }
        let mut frame = (json.len() as u32).to_le_bytes().to_vec();
        frame.extend(json);
        Ok(frame)
    }

    /// Reads exactly one frame, so that the rest of the input is left for the command.
    pub(super) fn read_frame(mut from: impl Read) -> Result<Self, String> {
        let mut length = [0; 4];
        from.read_exact(&mut length)
            .map_err(|error| error.to_string())?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_SPEC_BYTES {
            return Err("the spec of the command is too long".to_owned());
        }
        let mut json = vec![0; length];
        from.read_exact(&mut json)
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    }
}

impl SandboxMessage {
    /// Sends the message. Errors are ignored, because the reader may be gone.
    pub(super) fn send(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            // One write, because both helpers write to this pipe.
            let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
        }
    }
}
