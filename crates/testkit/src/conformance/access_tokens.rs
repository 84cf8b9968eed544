//! The conformance suite for access tokens.

use std::sync::Arc;

use lango_domain::StoreError;
use lango_domain::access_tokens::{
    AccessToken, AccessTokenStore, TokenHash, TokenScope, token_value,
};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;

use super::{ok, seconds};

/// Runs the whole suite on an empty store.
///
/// # Panics
/// If the store violates the contract of [`AccessTokenStore`].
pub async fn check(store: Arc<dyn AccessTokenStore>) {
    tokens_are_ordered_by_name(&*store).await;
    tokens_are_found_by_their_hash(&*store).await;
    names_are_unique(&*store).await;
    revoked_tokens_are_gone(&*store).await;
    uses_are_recorded(&*store).await;
    values_must_be_random(&*store).await;
}

fn token(name: &str, principal: &str) -> AccessToken {
    AccessToken {
        name: name.to_owned(),
        principal: Principal::new(principal),
        scopes: [TokenScope::Chat, TokenScope::Read].into(),
        created: seconds(1),
        expires: None,
        used: None,
    }
}

/// Adds a token and returns the hash of its value. Each number makes another value.
async fn add(store: &dyn AccessTokenStore, token: AccessToken, number: u8) -> TokenHash {
    let value = token_value(&[number; 32]);
    ok(store.add_token(token, &value).await);
    hash(&value)
}

fn hash(value: &Secret) -> TokenHash {
    TokenHash::from_token(value.expose()).unwrap_or_else(|| unreachable!("a well-formed token"))
}

async fn tokens_are_ordered_by_name(store: &dyn AccessTokenStore) {
    assert_eq!(ok(store.tokens().await), []);
    for (number, name) in [(1, "order-b"), (2, "order-c"), (3, "order-a")] {
        add(store, token(name, "alice"), number).await;
    }
    let names: Vec<String> = ok(store.tokens().await)
        .into_iter()
        .map(|token| token.name)
        .collect();
    assert_eq!(names, ["order-a", "order-b", "order-c"]);
}

/// B74: a token authenticates as its own principal.
async fn tokens_are_found_by_their_hash(store: &dyn AccessTokenStore) {
    let hers = AccessToken {
        expires: Some(seconds(3_600)),
        scopes: TokenScope::ALL.into(),
        ..token("find-hers 🙂", "alice")
    };
    let his = token("find-his", "bob");
    let her_hash = add(store, hers.clone(), 10).await;
    let his_hash = add(store, his.clone(), 11).await;
    assert_eq!(ok(store.find_token(her_hash).await), Some(hers));
    assert_eq!(ok(store.find_token(his_hash).await), Some(his));
    let unknown = hash(&token_value(&[12; 32]));
    assert_eq!(ok(store.find_token(unknown).await), None);
}

async fn names_are_unique(store: &dyn AccessTokenStore) {
    let first = add(store, token("unique", "alice"), 20).await;
    let value = token_value(&[21; 32]);
    let again = store.add_token(token("unique", "bob"), &value).await;
    assert_eq!(again, Err(StoreError::TokenExists("unique".to_owned())));
    assert_eq!(ok(store.find_token(hash(&value)).await), None);
    let kept = ok(store.find_token(first).await);
    assert_eq!(kept, Some(token("unique", "alice")));
}

async fn revoked_tokens_are_gone(store: &dyn AccessTokenStore) {
    let revoked = add(store, token("revoked", "alice"), 30).await;
    let other = add(store, token("not revoked", "alice"), 31).await;
    ok(store.revoke_token("revoked").await);
    assert_eq!(ok(store.find_token(revoked).await), None);
    assert!(ok(store.find_token(other).await).is_some());
    assert_eq!(
        store.revoke_token("revoked").await,
        Err(StoreError::TokenNotFound("revoked".to_owned()))
    );
    add(store, token("revoked", "bob"), 32).await;
}

async fn uses_are_recorded(store: &dyn AccessTokenStore) {
    let used = add(store, token("used", "alice"), 40).await;
    let other = add(store, token("unused", "alice"), 41).await;
    for time in [seconds(100), seconds(200)] {
        ok(store.record_token_use("used", time).await);
        let found = ok(store.find_token(used).await);
        assert_eq!(found.and_then(|token| token.used), Some(time));
    }
    let found = ok(store.find_token(other).await);
    assert_eq!(found, Some(token("unused", "alice")));
}

async fn values_must_be_random(store: &dyn AccessTokenStore) {
    let refused = store
        .add_token(token("guessable", "alice"), &Secret::new("password"))
        .await;
    assert!(refused.is_err());
    let tokens = ok(store.tokens().await);
    assert!(tokens.iter().all(|token| token.name != "guessable"));
}
