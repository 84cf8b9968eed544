//! Errors of the vault, classified by who can act on them.

use std::path::PathBuf;

use lango_domain::StoreError;
use lango_domain::vault::{RecordKind, SlotKind};

/// An error of the vault. After any of them, everything stored is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("the vault is locked")]
    Locked,
    #[error("the vault is empty")]
    Empty,
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    #[error("the passphrase is too short; it needs at least {0} characters")]
    ShortPassphrase(usize),
    #[error("the vault has no passphrase")]
    NoPassphrase,
    #[error("the key file {} is missing, and the vault has no other way in", .0.display())]
    KeyFileMissing(PathBuf),
    #[error("the key file {} cannot be used: {reason}", file.display())]
    KeyFileInvalid { file: PathBuf, reason: &'static str },
    #[error("the key file {} can be read by other users (mode {mode:o})", file.display())]
    KeyFileExposed { file: PathBuf, mode: u32 },
    #[error("the key file {} does not open this vault", .0.display())]
    KeyFileMismatch(PathBuf),
    #[error("{} cannot be {action}: {reason}", file.display())]
    File {
        file: PathBuf,
        action: &'static str,
        reason: String,
    },
    #[error("there is no folder for the key file")]
    NoDataFolder,
    #[error("the vault cannot stay unlocked: {0}")]
    NoRuntimeFolder(String),
    #[error("the {} `{name}` was changed outside of the vault, and is not used", kind.as_str())]
    Tampered { kind: RecordKind, name: String },
    #[error("the parameters of the {} slot are not acceptable: {reason}", slot.as_str())]
    InvalidSlot {
        slot: SlotKind,
        reason: &'static str,
    },
    #[error("the {} slot is the only way into the vault", .0.as_str())]
    LastSlot(SlotKind),
    #[error("there is no {} `{name}`{}", kind.as_str(), suggestion_text(suggestion.as_deref()))]
    Unknown {
        kind: RecordKind,
        name: String,
        suggestion: Option<String>,
    },
    #[error("there is already a {} `{name}`", kind.as_str())]
    Exists { kind: RecordKind, name: String },
    #[error("{0}")]
    Invalid(String),
    #[error("the export cannot be used: {0}")]
    InvalidExport(String),
    #[error("another process changed the vault at the same time")]
    Conflict,
    #[error("the system has no random numbers: {0}")]
    Random(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn suggestion_text(suggestion: Option<&str>) -> String {
    suggestion.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

impl VaultError {
    /// Returns what the user can do about the error.
    pub fn hint(&self) -> String {
        let text = match self {
            Self::Locked => {
                "run `lango vault unlock`, or set LANGO_VAULT_PASSPHRASE_FILE to a file with the passphrase"
            }
            Self::Empty => "store something with `lango secret set NAME`",
            Self::WrongPassphrase => "try again; nothing was changed",
            Self::ShortPassphrase(_) => {
                "several random words are easy to remember and hard to guess"
            }
            Self::NoPassphrase => "set one with `lango vault passphrase`",
            Self::KeyFileMissing(_) => {
                "put the file back from a backup; if it is lost, the values are lost: set them again after \
                moving the store away"
            }
            Self::KeyFileInvalid { .. } | Self::KeyFileMismatch(_) => {
                "put the right file back from a backup, or open the vault with another slot: \
                `lango vault unlock`, then `lango vault key-file`"
            }
            Self::KeyFileExposed { file, .. } => return format!("chmod 600 {}", file.display()),
            Self::File { .. } => {
                "check the folder, its permissions and the disk; nothing was changed"
            }
            Self::NoDataFolder => "set HOME, LANGO_HOME or security.vault.keyFile",
            Self::NoRuntimeFolder(_) => {
                "set XDG_RUNTIME_DIR to a folder of yours in memory (tmpfs), or use LANGO_VAULT_PASSPHRASE_FILE"
            }
            Self::Tampered { .. } => {
                "restore a backup with `lango restore`, or set the value again"
            }
            Self::InvalidSlot { .. } => "restore a backup with `lango restore`",
            Self::LastSlot(SlotKind::Passphrase) => "make a key file first: `lango vault key-file`",
            Self::LastSlot(SlotKind::KeyFile) => "set a passphrase first: `lango vault passphrase`",
            Self::Unknown {
                kind: RecordKind::Secret,
                ..
            } => "list secrets with `lango secret list`",
            Self::Unknown { .. } => "list keys with `lango key list`",
            Self::Exists { .. } => "choose another name",
            Self::Invalid(_) => "nothing was changed",
            Self::InvalidExport(_) => {
                "pass a file that was written by `lango vault export`; nothing was changed"
            }
            Self::Conflict => "try again",
            Self::Random(_) => "check the system",
            Self::Store(error) => error.hint(),
        };
        text.to_owned()
    }
}
