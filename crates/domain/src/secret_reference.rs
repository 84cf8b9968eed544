//! References to secrets. A model writes `{{secret:NAME}}` and never reads the value: the engine puts
//! it in just before the tool runs, in the fields that the tool declares (B130).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::event::Principal;
use crate::secret::Secret;
use crate::store_error::StoreError;

pub use lango_text::secret_redactor::{
    MIN_REDACTED_BYTES, RedactedStream, SecretRedactor, hidden_mark,
};

/// The `tool` of a [`SecretUse`] for settings, such as the key of a provider.
pub const CONFIGURATION: &str = "configuration";

const MAX_NAME_BYTES: usize = 64;
const MAX_ID_BYTES: usize = 128;
const SECRET_START: &str = "{{secret:";
const DECRYPT_START: &str = "{{decrypt:";
const END: &str = "}}";

/// The name of a secret: a letter or `_`, then letters, digits, `_`, `.` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

/// An unusable name of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a secret: it begins with a letter or `_`, goes on with letters, digits, `_`, `.` or `-`, and has at most 64 characters"
)]
pub struct InvalidSecretName(String);

impl SecretName {
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidSecretName> {
        let name = name.into();
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_next = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if name.len() <= MAX_NAME_BYTES && name.starts_with(is_first) && name.chars().all(is_next) {
            return Ok(Self(name));
        }
        Err(InvalidSecretName(
            name.chars().take(MAX_NAME_BYTES).collect(),
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SecretName {
    type Err = InvalidSecretName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for SecretName {
    type Error = InvalidSecretName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0
    }
}

/// A value that a tool call names without knowing it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretReference {
    /// A stored secret, written `{{secret:NAME}}`.
    Secret(SecretName),
    /// The result of a decryption, written `{{decrypt:ID}}`.
    Decrypted(String),
}

/// An unreadable reference in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReference {
    #[error(transparent)]
    Name(#[from] InvalidSecretName),
    #[error("`{{{{decrypt:…}}}}` needs the id that crypto_decrypt returned")]
    Id,
    #[error("a reference that begins with `{0}` has no end; write `{0}NAME}}}}`")]
    Open(&'static str),
}

impl SecretReference {
    /// Returns true if a text has the beginning of a reference.
    pub fn is_in(text: &str) -> bool {
        text.contains(SECRET_START) || text.contains(DECRYPT_START)
    }

    /// Returns all references of a text, in order.
    pub fn find_all(text: &str) -> Result<Vec<Self>, InvalidReference> {
        let parts = split(text)?.into_iter();
        Ok(parts
            .filter_map(|part| match part {
                TextOrReference::Text(_) => None,
                TextOrReference::Reference(reference) => Some(reference),
            })
            .collect())
    }

    /// Returns the text with each reference replaced by its value.
    pub fn replace_all<E: From<InvalidReference>>(
        text: &str,
        mut value: impl FnMut(&Self) -> Result<Secret, E>,
    ) -> Result<String, E> {
        let mut replaced = String::with_capacity(text.len());
        for part in split(text)? {
            match part {
                TextOrReference::Text(text) => replaced.push_str(text),
                TextOrReference::Reference(reference) => {
                    replaced.push_str(value(&reference)?.expose())
                }
            }
        }
        Ok(replaced)
    }

    /// Returns the name that replaces the value in redacted texts.
    pub fn label(&self) -> String {
        match self {
            Self::Secret(name) => name.to_string(),
            Self::Decrypted(id) => format!("decrypt:{id}"),
        }
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(name) => write!(f, "{SECRET_START}{name}{END}"),
            Self::Decrypted(id) => write!(f, "{DECRYPT_START}{id}{END}"),
        }
    }
}

enum TextOrReference<'t> {
    Text(&'t str),
    Reference(SecretReference),
}

fn split(text: &str) -> Result<Vec<TextOrReference<'_>>, InvalidReference> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((at, start)) = next_start(rest) {
        let after = &rest[at + start.len()..];
        // A reference is one word: a distant end belongs to something else.
        let end = after.find(END).filter(|end| *end <= MAX_ID_BYTES);
        let inner = &after[..end.ok_or(InvalidReference::Open(start))?];
        parts.push(TextOrReference::Text(&rest[..at]));
        parts.push(TextOrReference::Reference(parse_inner(
            start,
            inner.trim(),
        )?));
        rest = &after[end.unwrap_or_default() + END.len()..];
    }
    parts.push(TextOrReference::Text(rest));
    Ok(parts)
}

fn next_start(text: &str) -> Option<(usize, &'static str)> {
    [SECRET_START, DECRYPT_START]
        .into_iter()
        .filter_map(|start| Some((text.find(start)?, start)))
        .min()
}

fn parse_inner(start: &str, inner: &str) -> Result<SecretReference, InvalidReference> {
    if start == SECRET_START {
        return Ok(SecretReference::Secret(SecretName::new(inner)?));
    }
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if inner.is_empty() || !inner.chars().all(is_id) {
        return Err(InvalidReference::Id);
    }
    Ok(SecretReference::Decrypted(inner.to_owned()))
}

/// An argument of a tool in which references are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretField {
    /// A text argument of this name.
    Text(&'static str),
    /// The values of an object argument of this name.
    Values(&'static str),
}

impl SecretField {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text(name) | Self::Values(name) => name,
        }
    }
}

/// The use of a secret that its binding is checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretUse {
    pub principal: Principal,
    /// The tool that receives the value, or [`CONFIGURATION`].
    pub tool: String,
    /// The hosts that the call contacts, or empty if they are not known.
    pub hosts: Vec<String>,
}

/// The tools and hosts that a secret is meant for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretBinding {
    /// Names of tools; empty for every tool that accepts references.
    pub tools: Vec<String>,
    /// Host names, or patterns such as `*.example.com`; empty for every host.
    pub hosts: Vec<String>,
}

impl SecretBinding {
    /// Returns an error unless the secret may be used so. Implementations of [`SecretSource`] and the
    /// engine both call it.
    pub fn check(&self, name: &SecretName, usage: &SecretUse) -> Result<(), SecretError> {
        if !self.tools.is_empty() && !self.tools.contains(&usage.tool) {
            return Err(SecretError::OtherTool {
                name: name.clone(),
                tool: usage.tool.clone(),
                tools: self.tools.clone(),
            });
        }
        let is_bound = |host: &&String| self.hosts.iter().any(|bound| host_matches(bound, host));
        match usage.hosts.iter().find(|host| !is_bound(host)) {
            Some(host) if !self.hosts.is_empty() => Err(SecretError::OtherHost {
                name: name.clone(),
                host: host.clone(),
                hosts: self.hosts.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// Compares host names: exactly, or `*.example.com` with every host below that domain.
fn host_matches(bound: &str, host: &str) -> bool {
    let bound = bound.trim_end_matches('.').to_ascii_lowercase();
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match bound.strip_prefix("*.") {
        Some(domain) => host
            .strip_suffix(domain)
            .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        None => bound == host,
    }
}

fn shown_host(host: &str) -> &str {
    match host {
        "" => "a page without a host",
        host => host,
    }
}

/// An error of the use of a secret, phrased for the model that wrote the reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("there is no secret `{name}`{}", .suggestion.as_ref().map(|text| format!("; {text}")).unwrap_or_default())]
    Unknown {
        name: String,
        /// Such as "did you mean `TOKEN`?".
        suggestion: Option<String>,
    },
    #[error("the secret `{name}` may not be used by {tool}; it is bound to {}", .tools.join(", "))]
    OtherTool {
        name: SecretName,
        tool: String,
        tools: Vec<String>,
    },
    #[error("the secret `{name}` may not be sent to {}; it is bound to {}", shown_host(.host), .hosts.join(", "))]
    OtherHost {
        name: SecretName,
        host: String,
        hosts: Vec<String>,
    },
    #[error("the vault is locked; the user can unlock it with `lango vault unlock`")]
    Locked,
    #[error("there is no vault, so references to secrets have no value")]
    NoVault,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The vault could not be read for another reason.
    #[error("{0}")]
    Unreadable(String),
}

/// Provides secrets by reference. Implemented by the vault; scripted in tests.
pub trait SecretSource: Send + Sync {
    /// Returns the value, if its binding allows the use ([`SecretBinding::check`]).
    fn resolve<'a>(
        &'a self,
        reference: &'a SecretReference,
        usage: &'a SecretUse,
    ) -> BoxFuture<'a, Result<Secret, SecretError>>;

    /// Returns the tools and hosts of a secret, also while the vault is locked, or `None` if there is
    /// no such secret.
    fn binding<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<Option<SecretBinding>, SecretError>>;

    /// Returns the redactor of all values of a principal that are readable now. It is asked for several
    /// times per turn: implementations keep it until a value changes. While the vault is locked, it
    /// contains the values that were read before.
    fn redactor<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<SecretRedactor>, SecretError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> SecretName {
        SecretName::new(name).unwrap()
    }

    #[test]
    fn names_are_words() {
        for good in ["A", "_x", "GITHUB_TOKEN", "db.main-1", &"a".repeat(64)] {
            assert!(SecretName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "1a", "-a", "a b", "a}", "é", "a\n", &"a".repeat(65)] {
            let error = SecretName::new(bad).unwrap_err();
            assert!(error.to_string().contains("begins with a letter"), "{bad}");
        }
        assert!(serde_json::from_str::<SecretName>("\"a b\"").is_err());
    }

    #[test]
    fn references_are_found_in_order() {
        let text = "Bearer {{secret:TOKEN}} {{decrypt:k-1}}{{ secret:no}} {{secret: B }}";
        let found = SecretReference::find_all(text).unwrap();
        let written: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            written,
            ["{{secret:TOKEN}}", "{{decrypt:k-1}}", "{{secret:B}}"]
        );
        assert_eq!(SecretReference::find_all("no {{x}} here").unwrap(), []);
        assert_eq!(found[1].label(), "decrypt:k-1");
    }

    #[test]
    fn unreadable_references_are_named() {
        for (text, part) in [
            ("{{secret:a b}}", "`a b` is no name"),
            ("{{secret:}}", "is no name of a secret"),
            ("{{secret:TOKEN}", "no end; write `{{secret:NAME}}`"),
            ("{{decrypt:}}", "`{{decrypt:…}}` needs the id"),
        ] {
            let error = SecretReference::find_all(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(SecretReference::is_in(text));
        }
    }

    #[test]
    fn values_are_put_in_once() {
        // A value that looks like a reference stays a value.
        let value = |_: &SecretReference| Ok::<_, InvalidReference>(Secret::new("{{secret:B}}"));
        let replaced = SecretReference::replace_all("a {{secret:A}} b", value).unwrap();
        assert_eq!(replaced, "a {{secret:B}} b");
    }

    /// B130
    #[test]
    fn a_binding_limits_tools_and_hosts() {
        let usage = |tool: &str, hosts: &[&str]| SecretUse {
            principal: Principal::local(),
            tool: tool.to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        };
        let token = name("TOKEN");
        let free = SecretBinding::default();
        assert_eq!(
            free.check(&token, &usage("exec_shell", &["evil.example"])),
            Ok(())
        );
        let bound = SecretBinding {
            tools: vec!["exec_shell".to_owned()],
            hosts: vec!["api.github.com".to_owned(), "*.example.com".to_owned()],
        };
        for hosts in [
            &[][..],
            &["api.github.com"],
            &["API.GitHub.com.", "a.b.example.com"],
        ] {
            assert_eq!(bound.check(&token, &usage("exec_shell", hosts)), Ok(()));
        }
        for host in [
            "example.com",
            "evilexample.com",
            "github.com",
            "api.github.com.evil.org",
        ] {
            let refused = bound.check(&token, &usage("exec_shell", &["api.github.com", host]));
            assert!(
                matches!(refused, Err(SecretError::OtherHost { .. })),
                "{host}"
            );
        }
        let refused = bound.check(&token, &usage("web_fetch", &[])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the secret `TOKEN` may not be used by web_fetch; it is bound to exec_shell"
        );
    }
}
