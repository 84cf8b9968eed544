//! Secrets: named values, bound to tools and hosts.

use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::secret_reference::MIN_REDACTED_BYTES;
use lango_domain::vault::{OtherVersions, RecordKey, RecordKind, SealedRecord};
use lango_domain::{SecretBinding, SecretName};

use crate::error::VaultError;
use crate::records::OpenRecord;
use crate::vault::Vault;

/// The longest value of a secret, in bytes.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;
/// The most tools or hosts of a binding.
const MAX_BOUND: usize = 32;
const MAX_HOST_BYTES: usize = 253;

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEntry {
    pub name: String,
    pub created: Timestamp,
    pub used: Option<Timestamp>,
    pub binding: SecretBinding,
}

impl From<&SealedRecord> for SecretEntry {
    fn from(record: &SealedRecord) -> Self {
        Self {
            name: record.key.name.clone(),
            created: record.created,
            used: record.used,
            binding: parse_binding(&record.attributes),
        }
    }
}

/// The result of storing a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// True if there was an earlier value.
    pub is_replaced: bool,
    /// False if the value is so short that it is not removed from texts.
    pub is_redacted: bool,
}

/// Changes of a binding. `None` keeps what it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingChange {
    pub tools: Option<Vec<String>>,
    pub hosts: Option<Vec<String>>,
}

impl BindingChange {
    /// Replaces the lists that are not empty.
    pub fn from_lists(tools: &[String], hosts: &[String]) -> Self {
        let given = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
        Self {
            tools: given(tools),
            hosts: given(hosts),
        }
    }

    fn apply(&self, binding: SecretBinding) -> Result<SecretBinding, VaultError> {
        Ok(SecretBinding {
            tools: match &self.tools {
                Some(tools) => check_tools(tools)?,
                None => binding.tools,
            },
            hosts: match &self.hosts {
                Some(hosts) => check_hosts(hosts)?,
                None => binding.hosts,
            },
        })
    }

    /// Returns an error if a tool or host is not valid.
    pub fn check(&self) -> Result<SecretBinding, VaultError> {
        self.apply(SecretBinding::default())
    }
}

pub(crate) fn secret_key(principal: &Principal, name: &SecretName) -> RecordKey {
    RecordKey {
        kind: RecordKind::Secret,
        principal: principal.clone(),
        name: name.to_string(),
    }
}

impl Vault {
    /// Stores a value. An earlier value is replaced and keeps its binding, unless another is given.
    pub async fn set_secret(
        &self,
        principal: &Principal,
        name: &SecretName,
        value: &Secret,
        change: &BindingChange,
    ) -> Result<StoredSecret, VaultError> {
        check_value(value)?;
        let key = secret_key(principal, name);
        let earlier = match self.find(&key).await {
            Ok(record) => Some(record),
            Err(VaultError::Unknown { .. }) => None,
            Err(error) => return Err(error),
        };
        let binding = earlier
            .as_ref()
            .map(|record| parse_binding(&record.attributes));
        let binding = change.apply(binding.unwrap_or_default())?;
        let value = value.expose();
        let attributes = binding_text(&binding);
        self.put(&key, value.as_bytes(), &attributes, OtherVersions::Delete)
            .await?;
        Ok(StoredSecret {
            is_replaced: earlier.is_some(),
            is_redacted: value.len() >= MIN_REDACTED_BYTES,
        })
    }

    /// Changes the tools and hosts of a secret.
    pub async fn bind_secret(
        &self,
        principal: &Principal,
        name: &SecretName,
        change: &BindingChange,
    ) -> Result<SecretBinding, VaultError> {
        let key = secret_key(principal, name);
        let OpenRecord {
            value, attributes, ..
        } = self.get(&key).await?;
        let binding = change.apply(parse_binding(&attributes))?;
        let attributes = binding_text(&binding);
        self.put(&key, &value, &attributes, OtherVersions::Delete)
            .await?;
        Ok(binding)
    }

    /// Returns a secret without its value. Works while the vault is locked.
    pub async fn secret(
        &self,
        principal: &Principal,
        name: &SecretName,
    ) -> Result<SecretEntry, VaultError> {
        let record = self.find(&secret_key(principal, name)).await?;
        Ok(SecretEntry::from(&record))
    }

    /// Returns a principal's secrets without their values, by name. Works while the vault is locked.
    pub async fn secrets(&self, principal: &Principal) -> Result<Vec<SecretEntry>, VaultError> {
        let records = self.list(principal, RecordKind::Secret).await?;
        Ok(records.iter().map(SecretEntry::from).collect())
    }

    pub async fn remove_secret(
        &self,
        principal: &Principal,
        name: &SecretName,
    ) -> Result<(), VaultError> {
        self.delete(&secret_key(principal, name)).await
    }
}

fn check_value(value: &Secret) -> Result<(), VaultError> {
    let length = value.expose().len();
    if length == 0 {
        return Err(VaultError::Invalid("the value is empty".to_owned()));
    }
    if length > MAX_SECRET_BYTES {
        let message = format!("the value has {length} bytes; {MAX_SECRET_BYTES} are the limit");
        return Err(VaultError::Invalid(message));
    }
    Ok(())
}

/// Reads attributes, which only describe: a value is used after they were authenticated.
pub(crate) fn parse_binding(attributes: &str) -> SecretBinding {
    serde_json::from_str(attributes).unwrap_or_default()
}

fn binding_text(binding: &SecretBinding) -> String {
    serde_json::to_string(binding).unwrap_or_default()
}

fn check_tools(tools: &[String]) -> Result<Vec<String>, VaultError> {
    check_count(tools, "tools")?;
    let is_name = |tool: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        !tool.is_empty() && tool.len() <= 128 && tool.chars().all(is_plain)
    };
    match tools.iter().find(|tool| !is_name(tool)) {
        Some(tool) => Err(VaultError::Invalid(format!(
            "`{tool:.64}` is not the name of a tool"
        ))),
        None => Ok(tools.to_vec()),
    }
}

fn check_hosts(hosts: &[String]) -> Result<Vec<String>, VaultError> {
    check_count(hosts, "hosts")?;
    hosts.iter().map(|host| check_host(host)).collect()
}

/// Accepts a host name, an address, or `*.` and a domain of at least two labels.
fn check_host(host: &str) -> Result<String, VaultError> {
    let host = host.trim().trim_end_matches('.').to_ascii_lowercase();
    let name = host.strip_prefix("*.");
    let is_label = |label: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !label.is_empty() && label.len() <= 63 && label.chars().all(is_plain)
    };
    let labels = name.unwrap_or(&host).split('.');
    let is_host = labels.clone().all(is_label) && host.len() <= MAX_HOST_BYTES;
    if host.parse::<std::net::Ipv6Addr>().is_ok()
        || is_host && (name.is_none() || labels.count() >= 2)
    {
        return Ok(host);
    }
    Err(VaultError::Invalid(format!(
        "`{host:.64}` is not a host; write it without scheme, port and path, such as api.github.com or *.example.com"
    )))
}

fn check_count(list: &[String], what: &str) -> Result<(), VaultError> {
    if list.len() > MAX_BOUND {
        let message = format!("a secret is bound to at most {MAX_BOUND} {what}");
        return Err(VaultError::Invalid(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_without_anything_else() {
        for (given, expected) in [
            ("api.github.com", "api.github.com"),
            (" API.GitHub.com. ", "api.github.com"),
            ("*.example.com", "*.example.com"),
            ("localhost", "localhost"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
        ] {
            assert_eq!(check_host(given).unwrap(), expected);
        }
        for wrong in [
            "",
            "*",
            "*.com",
            "*.*.example.com",
            "a*.example.com",
            "https://api.github.com",
            "api.github.com/x",
            "api.github.com:443",
            "user@host",
            "a..b",
            "exämple.com",
        ] {
            assert!(check_host(wrong).is_err(), "{wrong}");
        }
    }
}
