//! The source of secrets of this process.

use std::sync::Arc;

use lango_domain::SecretSource;

use crate::config::LoadedConfig;
use crate::environment::Environment;
use crate::lazy_stores::LazyStores;

/// Returns the source that resolves references to secrets, or `None` if there is no vault. Must not do
/// any work before a secret is needed: every command calls it.
pub fn secret_source(
    _loaded: &LoadedConfig,
    _environment: &Environment,
    _stores: &LazyStores,
) -> Option<Arc<dyn SecretSource>> {
    None
}
