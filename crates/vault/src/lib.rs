//! The vault: records encrypted at rest, secrets that tools use by reference, keys, cryptography, and
//! their tools.

mod cipher;
mod digest;
mod error;
mod export;
mod key_file;
mod keys;
mod management;
mod public_key;
mod records;
mod secrets;
mod settings;
mod slots;
mod source;
mod tools;
mod unlocked_file;
mod vault;

pub use cipher::{RandomKey, random_key};
pub use digest::HashAlgorithm;
pub use error::VaultError;
pub use export::{ExistingRecords, ImportReport};
pub use keys::{KeyEntry, KeyPurpose, MadeSignature};
pub use management::{MIN_PASSPHRASE, VaultState, VaultStatus};
pub use public_key::PublicKey;
pub use records::OpenRecord;
pub use secrets::{BindingChange, MAX_SECRET_BYTES, SecretEntry, StoredSecret};
pub use settings::VaultSettings;
pub use slots::PassphraseCost;
pub use source::VaultSecrets;
pub use tools::{LazyVault, SecretPrompt, SharedPrompt, VaultTools, tools};
pub use vault::{KeySources, OpenedBy, Vault};
