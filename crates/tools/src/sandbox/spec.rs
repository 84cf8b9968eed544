//! What the helper is told, and what it says.

use std::io::{Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// No description of a command is longer: it travels through one variable of the environment.
pub const MAX_SPEC_BYTES: usize = 120 * 1024;

/// A command and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    pub folder: PathBuf,
    /// All that the command sees of the environment.
    pub env: Vec<(String, String)>,
    /// Folders and files that may be read and executed, beside the system's.
    pub read: Vec<PathBuf>,
    /// Parts of the system's settings that may be read.
    pub public: Vec<PathBuf>,
    /// Folders that may be changed.
    pub write: Vec<PathBuf>,
    /// One of those that the helper makes for this command; it goes with it.
    pub temp: Option<PathBuf>,
    /// Folders that stay out of reach wherever they lie.
    pub hidden: Vec<PathBuf>,
    pub network: bool,
    /// Whether the command may start other programs.
    pub starts_programs: bool,
    pub mode: SandboxMode,
    pub limits: SandboxLimits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxMode {
    /// Namespaces where the system allows them.
    Full,
    /// As on a system that forbids them.
    WithoutNamespaces,
    /// Nothing is kept from the command; it still ends with its call.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    pub memory_bytes: u64,
    pub processes: u64,
    /// The largest file.
    pub file_bytes: u64,
    /// All that it may take of the disk.
    pub disk_bytes: u64,
}

/// What the helper says on its stderr, one line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMessage {
    /// The command is about to start, confined by these.
    Confined(Vec<String>),
    /// It never started.
    Failed(SandboxError),
    /// It ended by itself, with a code or by a signal (128 and more, as shells count).
    Ended { code: i32 },
    /// It was ended.
    Stopped(ExceededLimit),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxError {
    /// The system cannot keep it from other files.
    Unconfined(String),
    /// The program or its folder is not there, or something else went wrong.
    Other(String),
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceededLimit {
    Memory,
    Processes,
    Disk,
}

impl SandboxSpec {
    /// As it is sent: its length, then itself.
    pub fn to_frame(&self) -> Result<Vec<u8>, String> {
        let json = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        if json.len() > MAX_SPEC_BYTES {
            return Err("the command is too long; write it into a file and run that".to_owned());
        }
        let mut frame = (json.len() as u32).to_le_bytes().to_vec();
        frame.extend(json);
        Ok(frame)
    }

    /// Reads exactly the frame, so that what follows is left for the command.
    pub(super) fn read_frame(mut from: impl Read) -> Result<Self, String> {
        let mut length = [0; 4];
        from.read_exact(&mut length)
            .map_err(|error| error.to_string())?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_SPEC_BYTES {
            return Err("no description of a command is that long".to_owned());
        }
        let mut json = vec![0; length];
        from.read_exact(&mut json)
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    }
}

impl SandboxMessage {
    /// Whoever listened may be gone.
    pub(super) fn send(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            // In one piece: two helpers speak here.
            let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
        }
    }
}
