//! Arguments of `lango vault`, `lango secret` and `lango key`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Subcommand)]
pub enum VaultCommand {
    /// Show whether the vault is open, what opens it, and what is in it.
    Status,
    /// Open the vault with its passphrase, for all processes of yours.
    Unlock {
        /// Minutes until it locks itself [default: security.vault.unlockMinutes].
        #[arg(long, value_name = "N")]
        minutes: Option<NonZeroU32>,
    },
    /// Lock the vault again.
    Lock,
    /// Set or change the passphrase.
    Passphrase {
        /// Remove the key file, so that only the passphrase opens the vault.
        #[arg(long)]
        only: bool,
        /// Remove the passphrase instead; the key file must open the vault.
        #[arg(long, conflicts_with = "only")]
        remove: bool,
    },
    /// Let a key file open the vault; replaces a lost one.
    KeyFile {
        /// Remove the key file instead; the passphrase must open the vault.
        #[arg(long)]
        remove: bool,
    },
    /// Write everything to one file, encrypted with a passphrase of its own.
    Export {
        /// The file to write; it must not exist yet.
        file: PathBuf,
    },
    /// Add everything from an export; names that exist stay as they are.
    Import {
        /// A file written by `lango vault export`.
        file: PathBuf,
        /// Replace names that exist with another value.
        #[arg(long)]
        replace: bool,
    },
}

#[derive(Subcommand)]
pub enum SecretCommand {
    /// Store a secret; asks for the value without showing it, or reads it from a pipe.
    Set(SecretSetArgs),
    /// List secrets with their tools and hosts; values are never printed.
    List,
    /// Delete secrets.
    Remove {
        /// The names of the secrets.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Change the tools and hosts that a secret is for.
    Bind(SecretBindArgs),
}

#[derive(clap::Args)]
pub struct SecretSetArgs {
    /// The name; models refer to it as {{secret:NAME}}.
    pub name: String,
    /// Only send it to this host, such as api.github.com or *.example.com; repeat for more.
    #[arg(long, value_name = "HOST")]
    pub host: Vec<String>,
    /// Only give it to this tool, such as exec_shell; repeat for more.
    #[arg(long, value_name = "TOOL")]
    pub tool: Vec<String>,
    /// Read the value from this file.
    #[arg(long, value_name = "FILE")]
    pub from_file: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct SecretBindArgs {
    /// The name of the secret.
    pub name: String,
    /// Only send it to this host; replaces the hosts, repeat for more.
    #[arg(long, value_name = "HOST", conflicts_with = "any_host")]
    pub host: Vec<String>,
    /// Only give it to this tool; replaces the tools, repeat for more.
    #[arg(long, value_name = "TOOL", conflicts_with = "any_tool")]
    pub tool: Vec<String>,
    /// Allow every host.
    #[arg(long)]
    pub any_host: bool,
    /// Allow every tool that accepts references.
    #[arg(long)]
    pub any_tool: bool,
}

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Create a key.
    Create {
        /// The name of the key.
        name: String,
        /// The use of the key.
        #[arg(long, value_enum, default_value_t = PurposeChoice::Sign)]
        purpose: PurposeChoice,
    },
    /// List keys; private keys are never printed.
    List,
    /// Add a version to a key; earlier versions still verify and decrypt.
    Rotate {
        /// The name of the key.
        name: String,
    },
    /// Print the public key of a key that signs.
    ExportPublic {
        /// The name of the key.
        name: String,
        /// The version [default: the newest].
        #[arg(long, value_name = "N")]
        version: Option<u64>,
        /// The form to print.
        #[arg(long, value_enum, default_value_t = PublicKeyForm::Pem)]
        form: PublicKeyForm,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum PurposeChoice {
    /// Ed25519 signatures.
    Sign,
    /// XChaCha20-Poly1305 encryption.
    Encrypt,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum PublicKeyForm {
    Pem,
    Base64,
    Hex,
}
