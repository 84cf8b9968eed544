//! The source of secrets of this process.

use std::sync::Arc;

use futures::future::BoxFuture;
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{
    SecretBinding, SecretError, SecretName, SecretReference, SecretSource, SecretUse,
};

use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::lazy_stores::LazyStores;

/// Returns the source that resolves references to secrets, or `None` if the vault is disabled. It opens
/// the store when a secret is needed first: every command calls this function.
pub fn secret_source(
    loaded: &LoadedConfig,
    _environment: &Environment,
    stores: &LazyStores,
) -> Option<Arc<dyn SecretSource>> {
    let stores = stores.clone();
    let is_enabled = loaded.settings.security.vault.enabled;
    is_enabled.then(|| Arc::new(LazyVaultSource { stores }) as Arc<dyn SecretSource>)
}

/// The vault of the stores of this process.
struct LazyVaultSource {
    stores: LazyStores,
}

impl SecretSource for LazyVaultSource {
    fn resolve<'a>(
        &'a self,
        reference: &'a SecretReference,
        usage: &'a SecretUse,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        Box::pin(async move { self.stores.vault()?.resolve(reference, usage).await })
    }

    fn binding<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<Option<SecretBinding>, SecretError>> {
        Box::pin(async move { self.stores.vault()?.binding(principal, name).await })
    }

    fn redactor<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<SecretRedactor>, SecretError>> {
        Box::pin(async move { self.stores.vault()?.redactor(principal).await })
    }
}
