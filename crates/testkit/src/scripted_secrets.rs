//! A source of secrets for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{
    SecretBinding, SecretError, SecretName, SecretReference, SecretSource, SecretUse,
};
use lango_text::suggest::did_you_mean;

/// Secrets of one principal, in memory.
#[derive(Default)]
pub struct ScriptedSecrets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    secrets: BTreeMap<SecretName, (Secret, SecretBinding)>,
    decrypted: BTreeMap<String, Secret>,
    is_locked: bool,
    /// The uses that received a value.
    uses: Vec<(String, SecretUse)>,
}

impl ScriptedSecrets {
    /// Stores a secret for these tools and hosts.
    ///
    /// # Panics
    /// On an invalid name.
    #[expect(clippy::panic, reason = "a mistake in a test")]
    pub fn store(&self, name: &str, value: &str, tools: &[&str], hosts: &[&str]) {
        let Ok(name) = SecretName::new(name) else {
            panic!("{name} is no name of a secret");
        };
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let binding = SecretBinding {
            tools: owned(tools),
            hosts: owned(hosts),
        };
        self.state()
            .secrets
            .insert(name, (Secret::new(value), binding));
    }

    /// Adds the result of a decryption.
    pub fn decrypt(&self, id: &str, value: &str) {
        let value = Secret::new(value);
        self.state().decrypted.insert(id.to_owned(), value);
    }

    pub fn lock(&self) {
        self.state().is_locked = true;
    }

    /// Returns the references that received a value, with their use.
    pub fn uses(&self) -> Vec<(String, SecretUse)> {
        self.state().uses.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, reference: &SecretReference, usage: &SecretUse) -> Result<Secret, SecretError> {
        let mut state = self.state();
        let value = match reference {
            _ if state.is_locked => return Err(SecretError::Locked),
            SecretReference::Decrypted(id) => state.decrypted.get(id).cloned(),
            SecretReference::Secret(name) => match state.secrets.get(name) {
                Some((value, binding)) => {
                    binding.check(name, usage)?;
                    Some(value.clone())
                }
                None => None,
            },
        };
        let Some(value) = value else {
            let names = state.secrets.keys().map(SecretName::as_str);
            return Err(SecretError::Unknown {
                name: reference.label(),
                suggestion: did_you_mean(&reference.label(), names),
            });
        };
        state.uses.push((reference.to_string(), usage.clone()));
        Ok(value)
    }
}

impl SecretSource for ScriptedSecrets {
    fn resolve<'a>(
        &'a self,
        reference: &'a SecretReference,
        usage: &'a SecretUse,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        ready(self.find(reference, usage)).boxed()
    }

    fn binding<'a>(
        &'a self,
        _: &'a Principal,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<Option<SecretBinding>, SecretError>> {
        let state = self.state();
        let binding = state.secrets.get(name).map(|(_, binding)| binding.clone());
        ready(Ok(binding)).boxed()
    }

    fn redactor<'a>(
        &'a self,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<SecretRedactor>, SecretError>> {
        let state = self.state();
        let values = state.secrets.iter();
        let known = values.map(|(name, (value, _))| (name.to_string(), value.clone()));
        let redactor = SecretRedactor::new(known.filter(|_| !state.is_locked));
        ready(Ok(Arc::new(redactor))).boxed()
    }
}
