//! Access tokens.

use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::access_tokens::{AccessToken, AccessTokenStore, TokenHash};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, Row, params};

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

const COLUMNS: &str = "name, principal, scopes, created, expires, used";

impl AccessTokenStore for SqliteStore {
    fn add_token<'a>(&'a self, token: AccessToken, value: &'a Secret) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let Some(TokenHash(hash)) = TokenHash::from_token(value.expose()) else {
                return Err(StoreError::Other(
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
                Err(StoreError::TokenExists(name))
            }
        })
    }

    fn tokens(&self) -> StoreFuture<'_, Vec<AccessToken>> {
        Box::pin(async move {
            self.read(|connection| {
                let mut query =
                    connection.prepare(&format!("SELECT {COLUMNS} FROM tokens ORDER BY name"))?;
                query.query_map([], token)?.collect()
            })
            .await
        })
    }

    fn find_token(&self, hash: TokenHash) -> StoreFuture<'_, Option<AccessToken>> {
        Box::pin(async move {
            self.read(move |connection| {
                let mut query = connection
                    .prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE hash = ?1"))?;
                query.query_row(params![hash.0], token).optional()
            })
            .await
        })
    }

    fn revoke_token<'a>(&'a self, name: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let wanted = name.to_owned();
            let deleted = self
                .write(move |connection| {
                    connection.execute("DELETE FROM tokens WHERE name = ?1", params![wanted])
                })
                .await?;
            if deleted > 0 {
                Ok(())
            } else {
                Err(StoreError::TokenNotFound(name.to_owned()))
            }
        })
    }

    fn record_token_use<'a>(&'a self, name: &'a str, at: Timestamp) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let name = name.to_owned();
            self.write(move |connection| {
                connection.execute(
                    "UPDATE tokens SET used = ?2 WHERE name = ?1",
                    params![name, sortable_time(at)],
                )
            })
            .await?;
            Ok(())
        })
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
