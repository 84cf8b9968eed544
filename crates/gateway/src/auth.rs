//! Who is there: a token in, a caller out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::{Timestamp, ToSpan};
use lango_domain::event::Principal;
use lango_store::{AccessToken, SqliteStoreError, TokenHash, TokenScope};

use crate::error::ApiError;
use crate::gateway::Gateway;

/// A token that was looked up is believed for so long: a revoked one works no longer than that.
const CACHE_TTL_SECONDS: i64 = 1;
/// Whoever reads a stream is asked for a good token so often.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// That a token was used is written down at most so often.
const USE_RECORD_INTERVAL_SECONDS: i64 = 60;
/// More tokens than this are not remembered at once.
const MAX_CACHED_TOKENS: usize = 1_024;

/// Whoever a request is from.
#[derive(Clone)]
pub struct Caller {
    token: Arc<AccessToken>,
    hash: TokenHash,
}

impl Caller {
    /// Whose sessions it reaches.
    pub fn principal(&self) -> &Principal {
        &self.token.principal
    }

    pub fn token_name(&self) -> &str {
        &self.token.name
    }

    /// Refuses what the token is not for: it needs one of these scopes.
    pub fn require_any(&self, one_of: &[TokenScope]) -> Result<(), ApiError> {
        if one_of.iter().any(|scope| self.token.allows(*scope)) {
            return Ok(());
        }
        let scope = one_of.first().copied().unwrap_or(TokenScope::Admin);
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "scope",
            format!(
                "the token `{}` is not for this: it lacks the scope `{scope}`",
                self.token.name
            ),
            format!("`lango token create NAME --scope {scope}` makes one that is"),
        ))
    }
}

/// Tokens that were looked up a moment ago.
#[derive(Default)]
pub(crate) struct TokenCache {
    tokens: Mutex<HashMap<TokenHash, CachedToken>>,
}

struct CachedToken {
    token: Arc<AccessToken>,
    loaded_at: Timestamp,
    use_recorded_at: Option<Timestamp>,
}

impl TokenCache {
    async fn caller(&self, gateway: &Gateway, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let hash = bearer_token_hash(headers)?;
        let now = gateway.now();
        let token = self
            .find_token(gateway, hash, now)
            .await?
            .ok_or_else(unknown_token)?;
        if token.is_expired(now) {
            return Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "token.expired",
                format!("the token `{}` is no longer valid", token.name),
                "`lango token create NAME` makes a new one",
            ));
        }
        if self.is_use_record_due(&hash, now) {
            let (store, name) = (gateway.store().clone(), token.name.clone());
            tokio::spawn(async move { store.record_token_use(&name, now).await });
        }
        Ok(Caller { token, hash })
    }

    /// Returns when the token is no longer good: what is open ends with it.
    pub async fn wait_until_revoked(gateway: Gateway, caller: Caller) {
        loop {
            tokio::time::sleep(RECHECK_INTERVAL).await;
            let now = gateway.now();
            match gateway
                .token_cache()
                .find_token(&gateway, caller.hash, now)
                .await
            {
                Ok(token) if token.as_ref().is_none_or(|token| token.is_expired(now)) => return,
                Ok(_) => {}
                // A store that cannot be read says nothing about the token.
                Err(trouble) => tracing::error!(%trouble, "a token cannot be looked up"),
            }
        }
    }

    async fn find_token(
        &self,
        gateway: &Gateway,
        hash: TokenHash,
        now: Timestamp,
    ) -> Result<Option<Arc<AccessToken>>, SqliteStoreError> {
        if let Some(token) = self.get_cached(&hash, now) {
            return Ok(Some(token));
        }
        let found = gateway.store().find_token(hash).await?;
        Ok(found.map(|token| self.insert(hash, Arc::new(token), now)))
    }

    fn get_cached(&self, hash: &TokenHash, now: Timestamp) -> Option<Arc<AccessToken>> {
        let known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(hash)?;
        is_within(found.loaded_at, now, CACHE_TTL_SECONDS).then(|| Arc::clone(&found.token))
    }

    fn insert(&self, hash: TokenHash, token: Arc<AccessToken>, now: Timestamp) -> Arc<AccessToken> {
        let mut known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_CACHED_TOKENS {
            known.clear();
        }
        let use_noted = known
            .get(&hash)
            .and_then(|before| before.use_recorded_at)
            .or(token.used);
        known.insert(
            hash,
            CachedToken {
                token: Arc::clone(&token),
                loaded_at: now,
                use_recorded_at: use_noted,
            },
        );
        token
    }

    fn is_use_record_due(&self, hash: &TokenHash, now: Timestamp) -> bool {
        let mut known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = known.get_mut(hash) else {
            return false;
        };
        let is_recent = found
            .use_recorded_at
            .is_some_and(|noted| is_within(noted, now, USE_RECORD_INTERVAL_SECONDS));
        if !is_recent {
            found.use_recorded_at = Some(now);
        }
        !is_recent
    }
}

fn is_within(since: Timestamp, now: Timestamp, seconds: i64) -> bool {
    since <= now
        && since
            .checked_add(seconds.seconds())
            .is_ok_and(|end| now < end)
}

/// The hash of the token that the request shows.
fn bearer_token_hash(headers: &HeaderMap) -> Result<TokenHash, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "token.missing",
            "this needs an access token",
            "`lango token create NAME` makes one; send it as `Authorization: Bearer TOKEN`",
        ));
    };
    let text = value.to_str().map_err(|_| unknown_token())?;
    let (scheme, token) = text.split_once(' ').ok_or_else(unknown_token)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unknown_token());
    }
    TokenHash::from_token(token.trim()).ok_or_else(unknown_token)
}

fn unknown_token() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        "token.unknown",
        "this access token is not known here",
        "`lango token list` names those that are; send one as `Authorization: Bearer TOKEN`",
    )
}

/// Lets in whoever shows a token, at the pace that it has.
pub(crate) async fn authenticate(
    State(gateway): State<Gateway>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let caller = gateway
        .token_cache()
        .caller(&gateway, request.headers())
        .await?;
    gateway.rate_limiter().check_request(caller.token_name())?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// Lets on only those whose token has one of these scopes.
pub(crate) async fn require_scope(
    State(scopes): State<&'static [TokenScope]>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    match request.extensions().get::<Caller>() {
        Some(caller) => caller.require_any(scopes)?,
        None => return Err(unknown_token()),
    }
    Ok(next.run(request).await)
}

impl<S: Sync> axum::extract::FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &S,
    ) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(unknown_token)
    }
}
