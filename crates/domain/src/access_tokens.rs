//! Access tokens, which authenticate HTTP requests as a principal, and their storage.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::event::Principal;
use crate::secret::Secret;
use crate::session::StoreFuture;

/// Stores access tokens. Keeps only hashes, so that the store alone grants no access.
pub trait AccessTokenStore: Send + Sync {
    fn add_token<'a>(&'a self, token: AccessToken, value: &'a Secret) -> StoreFuture<'a, ()>;

    /// Returns all tokens, ordered by name.
    fn tokens(&self) -> StoreFuture<'_, Vec<AccessToken>>;

    /// Returns the token with that hash. The lookup is by the hash of 256 random bits, so its timing
    /// reveals nothing about stored tokens.
    fn find_token(&self, hash: TokenHash) -> StoreFuture<'_, Option<AccessToken>>;

    fn revoke_token<'a>(&'a self, name: &'a str) -> StoreFuture<'a, ()>;

    fn record_token_use<'a>(&'a self, name: &'a str, at: Timestamp) -> StoreFuture<'a, ()>;
}

/// Prefix of every token, so that secret scanners recognize it.
const TOKEN_PREFIX: &str = "lango_";
const SECRET_BYTES: usize = 32;

/// A permission of a token.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// Run turns.
    Chat,
    /// Approve or deny tool calls.
    Approve,
    /// Read sessions, usage and the audit log.
    Read,
    /// Everything, including information about the server.
    Admin,
}

impl TokenScope {
    pub const ALL: [Self; 4] = [Self::Chat, Self::Approve, Self::Read, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Approve => "approve",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that names no [`TokenScope`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope `{0}`; expected chat, approve, read or admin")]
pub struct UnknownScopeError(String);

impl FromStr for TokenScope {
    type Err = UnknownScopeError;

    fn from_str(text: &str) -> Result<Self, UnknownScopeError> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| UnknownScopeError(text.to_owned()))
    }
}

/// A stored access token. Its value is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    pub name: String,
    /// The owner of the sessions that the token can access.
    pub principal: Principal,
    pub scopes: BTreeSet<TokenScope>,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    /// Time of the last use, to about a minute.
    pub used: Option<Timestamp>,
}

impl AccessToken {
    pub fn allows(&self, scope: TokenScope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&TokenScope::Admin)
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// The hash under which a token is stored. It does not reveal the token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// Returns the hash, or `None` if the text does not have the form of a token.
    pub fn from_token(text: &str) -> Option<Self> {
        let secret = text.strip_prefix(TOKEN_PREFIX)?;
        let is_secret =
            secret.len() == 2 * SECRET_BYTES && secret.bytes().all(|b| b.is_ascii_hexdigit());
        is_secret.then(|| Self(Sha256::digest(text.as_bytes()).into()))
    }
}

/// Formats the value of a new token from cryptographically random bytes.
pub fn token_value(random: &[u8; SECRET_BYTES]) -> Secret {
    let mut text = TOKEN_PREFIX.to_owned();
    for byte in random {
        let _ = write!(text, "{byte:02x}");
    }
    Secret::new(text)
}
