//! `security.vault.*`.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `security.vault`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VaultSettings {
    /// Gives the vault agent tools for secrets and cryptography.
    pub enabled: bool,
    /// The file with the key that opens the vault [default: `vault.key` in the data folder].
    pub key_file: Option<String>,
    /// Minutes that `lango vault unlock` lasts.
    pub unlock_minutes: NonZeroU32,
}

impl Default for VaultSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            key_file: None,
            unlock_minutes: const { NonZeroU32::new(8 * 60).unwrap() },
        }
    }
}
