//! Access tokens, which authenticate HTTP requests as a principal. The store keeps only hashes, so
//! that the file alone grants no access.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use rusqlite::{Connection, OptionalExtension, Row, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::SqliteStoreError;
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;

pub(crate) const TABLES: &str = "
    CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        principal TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE,
        scopes TEXT NOT NULL,
        created TEXT NOT NULL,
        expires TEXT,
        used TEXT
    ) STRICT, WITHOUT ROWID;
";

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
pub struct TokenHash([u8; 32]);

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

const COLUMNS: &str = "name, principal, scopes, created, expires, used";

impl SqliteStore {
    pub async fn add_token(
        &self,
        token: AccessToken,
        value: &Secret,
    ) -> Result<(), SqliteStoreError> {
        let Some(TokenHash(hash)) = TokenHash::from_token(value.expose()) else {
            return Err(SqliteStoreError::Other(
                "the token value is not valid; create it with `token_value`".to_owned(),
            ));
        };
        let name = token.name.clone();
        let added = self
            .write(move |connection| insert(connection, &token, &hash))
            .await?;
        if added {
            Ok(())
        } else {
            Err(SqliteStoreError::TokenExists(name))
        }
    }

    /// Returns all tokens, ordered by name.
    pub async fn tokens(&self) -> Result<Vec<AccessToken>, SqliteStoreError> {
        self.read(|connection| {
            let mut query =
                connection.prepare(&format!("SELECT {COLUMNS} FROM tokens ORDER BY name"))?;
            query.query_map([], token)?.collect()
        })
        .await
    }

    /// Returns the token with that hash. The lookup is by the hash of 256 random bits, so its
    /// timing reveals nothing about stored tokens.
    pub async fn find_token(
        &self,
        hash: TokenHash,
    ) -> Result<Option<AccessToken>, SqliteStoreError> {
        self.read(move |connection| {
            let mut query = connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE hash = ?1"))?;
            query.query_row(params![hash.0], token).optional()
        })
        .await
    }

    pub async fn revoke_token(&self, name: &str) -> Result<(), SqliteStoreError> {
        let wanted = name.to_owned();
        let deleted = self
            .write(move |connection| {
                connection.execute("DELETE FROM tokens WHERE name = ?1", params![wanted])
            })
            .await?;
        if deleted > 0 {
            Ok(())
        } else {
            Err(SqliteStoreError::TokenNotFound(name.to_owned()))
        }
    }

    pub async fn record_token_use(
        &self,
        name: &str,
        at: Timestamp,
    ) -> Result<(), SqliteStoreError> {
        let name = name.to_owned();
        self.write(move |connection| {
            connection.execute(
                "UPDATE tokens SET used = ?2 WHERE name = ?1",
                params![name, sortable_time(at)],
            )
        })
        .await?;
        Ok(())
    }
}

/// Inserts a token. Returns false if a token of that name exists.
fn insert(connection: &Connection, token: &AccessToken, hash: &[u8; 32]) -> rusqlite::Result<bool> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let sql = "INSERT INTO tokens (name, principal, hash, scopes, created, expires)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (name) DO NOTHING";
    let (created, expires) = (
        sortable_time(token.created),
        token.expires.map(sortable_time),
    );
    let added = connection.execute(
        sql,
        params![
            token.name,
            token.principal.as_str(),
            hash,
            scopes.join(","),
            created,
            expires
        ],
    )?;
    Ok(added > 0)
}

fn token(row: &Row<'_>) -> rusqlite::Result<AccessToken> {
    let time = |at: usize| {
        row.get::<_, Option<String>>(at)
            .map(|text| text?.parse::<Timestamp>().ok())
    };
    Ok(AccessToken {
        name: row.get(0)?,
        principal: Principal::new(row.get::<_, String>(1)?),
        // Scopes of a newer version are unknown here and grant nothing.
        scopes: row
            .get::<_, String>(2)?
            .split(',')
            .filter_map(|scope| scope.parse().ok())
            .collect(),
        created: time(3)?.unwrap_or_default(),
        // An unreadable time counts as expired.
        expires: row
            .get::<_, Option<String>>(4)?
            .map(|text| text.parse().unwrap_or(Timestamp::UNIX_EPOCH)),
        used: time(5)?,
    })
}
