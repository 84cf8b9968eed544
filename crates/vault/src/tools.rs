//! The vault agent's tools for secrets and cryptography (S86).

mod crypto;
mod phrases;
mod secrets;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use lango_domain::lazy::Lazy;
use lango_domain::secret::Secret;
use lango_domain::{SecretName, Tool, ToolError};

use crate::error::VaultError;
use crate::source::VaultSecrets;

pub type LazyVault = Lazy<VaultSecrets, VaultError>;

/// Asks the user for a secret, so that no model sees it.
pub trait SecretPrompt: Send + Sync {
    /// Returns the typed value, or `None` if the user cancels.
    fn ask(&self, question: String) -> BoxFuture<'_, Option<Secret>>;
}

/// The prompt of this process. It has none until a terminal sets it. Cheap to clone.
#[derive(Clone, Default)]
pub struct SharedPrompt(Arc<OnceLock<Arc<dyn SecretPrompt>>>);

impl SharedPrompt {
    /// Sets the prompt, unless there is one.
    pub fn set(&self, prompt: Arc<dyn SecretPrompt>) {
        let _ = self.0.set(prompt);
    }

    fn get(&self) -> Option<&Arc<dyn SecretPrompt>> {
        self.0.get()
    }
}

/// The parts that the tools work with.
#[derive(Clone)]
pub struct VaultTools {
    pub vault: LazyVault,
    pub prompt: SharedPrompt,
}

pub fn tools(parts: &VaultTools) -> Vec<Tool> {
    let parts = || parts.clone();
    vec![
        crypto::crypto_hash(),
        crypto::crypto_sign(parts()),
        crypto::crypto_verify(parts()),
        crypto::crypto_encrypt(parts()),
        crypto::crypto_decrypt(parts()),
        crypto::crypto_keys(parts()),
        secrets::secrets_store(parts()),
        secrets::secrets_get(parts()),
        secrets::secrets_list(parts()),
        secrets::secrets_delete(parts()),
    ]
}

impl VaultTools {
    async fn secrets(&self) -> Result<&Arc<VaultSecrets>, ToolError> {
        self.vault.get().await.map_err(tool_error)
    }
}

/// Tells the model what it, or the user, can do.
fn tool_error(error: VaultError) -> ToolError {
    match error {
        VaultError::Invalid(message) => ToolError(message),
        VaultError::Unknown { .. } => ToolError(error.to_string()),
        other => ToolError(format!("{other}; {}", other.hint())),
    }
}

fn parse_name(name: &str) -> Result<SecretName, ToolError> {
    // Models write the reference where the name is asked for.
    let name = name.trim();
    let inner = name
        .strip_prefix("{{secret:")
        .and_then(|rest| rest.strip_suffix("}}"));
    SecretName::new(inner.unwrap_or(name)).map_err(|error| ToolError(error.to_string()))
}

fn parse_optional_name(name: Option<&str>) -> Result<Option<SecretName>, ToolError> {
    let given = name.map(str::trim).filter(|name| !name.is_empty());
    given.map(parse_name).transpose()
}
