//! Authentication with bearer tokens, and scope checks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::{Timestamp, ToSpan};
use lango_domain::StoreError;
use lango_domain::access_tokens::{AccessToken, TokenHash, TokenScope};
use lango_domain::event::Principal;

use crate::error::ApiError;
use crate::gateway::Gateway;

/// Lifetime of a cached token. A revoked token stops working after at most this time.
const CACHE_TTL_SECONDS: i64 = 1;
/// Interval at which open streams check that their token is still valid.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum interval between two records of a token's use.
const USE_RECORD_INTERVAL_SECONDS: i64 = 60;
/// Maximum number of cached tokens.
const MAX_CACHED_TOKENS: usize = 1_024;

/// The authenticated caller of a request.
#[derive(Clone)]
pub struct Caller {
    token: Arc<AccessToken>,
    hash: TokenHash,
}

impl Caller {
    /// Returns the principal whose sessions the caller can access.
    pub fn principal(&self) -> &Principal {
        &self.token.principal
    }

    pub fn token_name(&self) -> &str {
        &self.token.name
    }

    /// Returns an error unless the token has one of these scopes.
    pub fn require_any(&self, scopes: &[TokenScope]) -> Result<(), ApiError> {
        if scopes.iter().any(|scope| self.token.allows(*scope)) {
            return Ok(());
        }
        let scope = scopes.first().copied().unwrap_or(TokenScope::Admin);
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "scope",
            format!("the token `{}` lacks the scope `{scope}`", self.token.name),
            format!("create a token that has it with `lango token create NAME --scope {scope}`"),
        ))
    }
}

/// A short-lived cache of tokens loaded from the store.
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
                format!("the token `{}` has expired", token.name),
                "create a new one with `lango token create NAME`",
            ));
        }
        if self.is_use_record_due(&hash, now) {
            let (stores, name) = (gateway.stores().clone(), token.name.clone());
            tokio::spawn(async move { stores.access_tokens.record_token_use(&name, now).await });
        }
        Ok(Caller { token, hash })
    }

    /// Returns when the caller's token is revoked or expired, so that its streams can be closed.
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
                // An unreadable store does not invalidate the token.
                Err(error) => tracing::error!(%error, "cannot load a token"),
            }
        }
    }

    async fn find_token(
        &self,
        gateway: &Gateway,
        hash: TokenHash,
        now: Timestamp,
    ) -> Result<Option<Arc<AccessToken>>, StoreError> {
        if let Some(token) = self.get_cached(&hash, now) {
            return Ok(Some(token));
        }
        let found = gateway.stores().access_tokens.find_token(hash).await?;
        Ok(found.map(|token| self.insert(hash, Arc::new(token), now)))
    }

    fn get_cached(&self, hash: &TokenHash, now: Timestamp) -> Option<Arc<AccessToken>> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = tokens.get(hash)?;
        is_within(cached.loaded_at, now, CACHE_TTL_SECONDS).then(|| Arc::clone(&cached.token))
    }

    fn insert(&self, hash: TokenHash, token: Arc<AccessToken>, now: Timestamp) -> Arc<AccessToken> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MAX_CACHED_TOKENS {
            tokens.clear();
        }
        let use_recorded_at = tokens
            .get(&hash)
            .and_then(|cached| cached.use_recorded_at)
            .or(token.used);
        tokens.insert(
            hash,
            CachedToken {
                token: Arc::clone(&token),
                loaded_at: now,
                use_recorded_at,
            },
        );
        token
    }

    fn is_use_record_due(&self, hash: &TokenHash, now: Timestamp) -> bool {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cached) = tokens.get_mut(hash) else {
            return false;
        };
        let is_recent = cached
            .use_recorded_at
            .is_some_and(|at| is_within(at, now, USE_RECORD_INTERVAL_SECONDS));
        if !is_recent {
            cached.use_recorded_at = Some(now);
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

/// Returns the hash of the bearer token in the `Authorization` header.
fn bearer_token_hash(headers: &HeaderMap) -> Result<TokenHash, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "token.missing",
            "this request needs an access token",
            "create one with `lango token create NAME` and send it as `Authorization: Bearer TOKEN`",
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
        "unknown access token",
        "`lango token list` lists the known tokens; send one as `Authorization: Bearer TOKEN`",
    )
}

/// Authenticates the bearer token and applies the token's rate limit.
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

/// Rejects requests whose token has none of these scopes.
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
