//! The vault as the source of secrets: resolves references, and knows what to remove from texts.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::vault::{RecordKind, RecordsRevision, SealedRecord};
use lango_domain::{
    SecretBinding, SecretError, SecretName, SecretReference, SecretSource, SecretUse,
};

use crate::cipher::random_hex;
use crate::error::VaultError;
use crate::records::{OpenRecord, open_record};
use crate::secrets::{parse_binding, secret_key};
use crate::vault::Vault;

/// The most decrypted values of a principal that are kept. Older ones are forgotten.
const MAX_DECRYPTED: usize = 256;

/// The secrets of a vault, for the engine. Cheap to clone; clones share what was read.
#[derive(Clone)]
pub struct VaultSecrets {
    vault: Vault,
    known: Arc<Mutex<HashMap<Principal, KnownValues>>>,
}

/// The values of a principal that this process has read.
#[derive(Default)]
struct KnownValues {
    /// The state of the store from which `redactor` was made, unless the vault was locked then.
    revision: Option<RecordsRevision>,
    redactor: Arc<SecretRedactor>,
    /// Results of decryptions, by id, oldest first. They live as long as the process.
    decrypted: VecDeque<(String, Secret)>,
}

impl VaultSecrets {
    pub fn new(vault: Vault) -> Self {
        Self {
            vault,
            known: Arc::default(),
        }
    }

    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Keeps a decrypted value in memory, and returns the reference to it.
    pub fn keep_decrypted(
        &self,
        principal: &Principal,
        value: Secret,
    ) -> Result<SecretReference, VaultError> {
        let id = random_hex(8)?;
        let reference = SecretReference::Decrypted(id.clone());
        self.with_known(principal, |known| {
            let redactor = known
                .redactor
                .with_secret(&reference.label(), value.clone());
            known.redactor = Arc::new(redactor);
            known.decrypted.push_back((id, value));
            if known.decrypted.len() > MAX_DECRYPTED {
                known.decrypted.pop_front();
            }
        });
        Ok(reference)
    }

    /// Makes a value known before it is stored, so that no text that is written meanwhile contains it.
    pub fn expect_value(&self, principal: &Principal, name: &SecretName, value: &Secret) {
        self.with_known(principal, |known| {
            let redactor = known.redactor.with_secret(name.as_str(), value.clone());
            known.redactor = Arc::new(redactor);
        });
    }

    fn with_known<T>(&self, principal: &Principal, run: impl FnOnce(&mut KnownValues) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        run(known.entry(principal.clone()).or_default())
    }

    async fn resolve_secret(
        &self,
        name: &SecretName,
        usage: &SecretUse,
    ) -> Result<Secret, SecretError> {
        let key = secret_key(&usage.principal, name);
        let OpenRecord {
            value, attributes, ..
        } = self.vault.get(&key).await.map_err(secret_error)?;
        // The attributes were authenticated with the value.
        parse_binding(&attributes).check(name, usage)?;
        let text = String::from_utf8(value.to_vec())
            .map_err(|_| SecretError::Unreadable(format!("the secret `{name}` is not a text")))?;
        self.vault
            .inner
            .store
            .mark_used(&key, self.vault.now())
            .await?;
        Ok(Secret::new(text))
    }

    fn resolve_decrypted(&self, id: &str, usage: &SecretUse) -> Result<Secret, SecretError> {
        let found = self.with_known(&usage.principal, |known| {
            let mut decrypted = known.decrypted.iter();
            decrypted
                .find(|(known, _)| known == id)
                .map(|(_, value)| value.clone())
        });
        found.ok_or_else(|| {
            let text = format!("there is no decrypted value `{id}` any more; decrypt it again");
            SecretError::Unreadable(text)
        })
    }

    /// Returns the redactor of all values, read again if the store changed.
    async fn current_redactor(
        &self,
        principal: &Principal,
    ) -> Result<Arc<SecretRedactor>, SecretError> {
        let store = &self.vault.inner.store;
        let revision = store
            .records_revision(principal, RecordKind::Secret)
            .await?;
        let (known_revision, redactor) = self.with_known(principal, |known| {
            (known.revision, Arc::clone(&known.redactor))
        });
        if revision.count == 0 || known_revision == Some(revision) {
            return Ok(redactor);
        }
        let open = match self.vault.open().await {
            Ok(open) => open,
            // The values that were read before stay known.
            Err(VaultError::Locked | VaultError::Empty) => return Ok(redactor),
            Err(VaultError::Store(error)) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "values of the vault cannot be removed from texts");
                return Ok(redactor);
            }
        };
        let records = store.records(principal, RecordKind::Secret).await?;
        let values: Vec<(String, String)> = records
            .iter()
            .filter_map(|record| readable_value(&open, record))
            .collect();
        Ok(self.with_known(principal, |known| {
            let added = values.into_iter().fold(
                SecretRedactor::clone(&known.redactor),
                |redactor, (name, value)| redactor.with_secret(&name, value),
            );
            known.revision = Some(revision);
            known.redactor = Arc::new(added);
            Arc::clone(&known.redactor)
        }))
    }
}

/// Returns the value of a record, or `None` if it cannot be read: then no tool gets it either.
fn readable_value(
    open: &crate::vault::OpenVault,
    record: &SealedRecord,
) -> Option<(String, String)> {
    let value = open_record(open, record).ok()?.value;
    let value = std::str::from_utf8(&value).ok()?.to_owned();
    Some((record.key.name.clone(), value))
}

pub(crate) fn secret_error(error: VaultError) -> SecretError {
    match error {
        VaultError::Locked => SecretError::Locked,
        VaultError::Unknown {
            name, suggestion, ..
        } => SecretError::Unknown {
            name,
            suggestion: suggestion.map(|name| format!("did you mean `{name}`?")),
        },
        VaultError::Store(error) => SecretError::Store(error),
        other => SecretError::Unreadable(other.to_string()),
    }
}

impl SecretSource for VaultSecrets {
    fn resolve<'a>(
        &'a self,
        reference: &'a SecretReference,
        usage: &'a SecretUse,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        async move {
            match reference {
                SecretReference::Secret(name) => self.resolve_secret(name, usage).await,
                SecretReference::Decrypted(id) => self.resolve_decrypted(id, usage),
            }
        }
        .boxed()
    }

    fn binding<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<Option<SecretBinding>, SecretError>> {
        async move {
            match self.vault.secret(principal, name).await {
                Ok(entry) => Ok(Some(entry.binding)),
                Err(VaultError::Unknown { .. }) => Ok(None),
                Err(error) => Err(secret_error(error)),
            }
        }
        .boxed()
    }

    fn redactor<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<SecretRedactor>, SecretError>> {
        self.current_redactor(principal).boxed()
    }
}
