use jiff::{Timestamp, ToSpan};
use lango_domain::StoreError;
use lango_domain::access_tokens::AccessTokenStore as _;
use lango_domain::access_tokens::{AccessToken, TokenHash, TokenScope, token_value};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;

use crate::setup::open;

fn token(name: &str) -> AccessToken {
    AccessToken {
        name: name.to_owned(),
        principal: Principal::new("앤"),
        scopes: [TokenScope::Chat, TokenScope::Read].into(),
        created: Timestamp::UNIX_EPOCH,
        expires: Some(Timestamp::UNIX_EPOCH + 1.hour()),
        used: None,
    }
}

#[tokio::test]
async fn finds_a_token_by_value_until_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let value = token_value(&[1; 32]);
    store.add_token(token("a"), &value).await.unwrap();
    let hash = || TokenHash::from_token(value.expose()).unwrap();
    assert_eq!(store.find_token(hash()).await.unwrap(), Some(token("a")));
    let other = token_value(&[2; 32]);
    assert_eq!(
        store
            .find_token(TokenHash::from_token(other.expose()).unwrap())
            .await
            .unwrap(),
        None
    );
    let again = store.add_token(token("a"), &other).await;
    assert!(matches!(again, Err(StoreError::TokenExists(_))));
    let now = Timestamp::UNIX_EPOCH + 5.minutes();
    store.record_token_use("a", now).await.unwrap();
    let stored = open(folder.path()).tokens().await.unwrap();
    assert_eq!(
        stored,
        [AccessToken {
            used: Some(now),
            ..token("a")
        }]
    );
    store.revoke_token("a").await.unwrap();
    assert_eq!(store.find_token(hash()).await.unwrap(), None);
    assert!(matches!(
        store.revoke_token("a").await,
        Err(StoreError::TokenNotFound(_))
    ));
}

#[test]
fn hashes_only_well_formed_tokens() {
    let good = token_value(&[0xab; 32]);
    assert!(TokenHash::from_token(good.expose()).is_some());
    for wrong in [
        "",
        "lango_",
        "lango_xyz",
        &good.expose()[1..],
        &format!("{} ", good.expose()),
    ] {
        assert!(TokenHash::from_token(wrong).is_none(), "{wrong}");
    }
}

#[tokio::test]
async fn refuses_a_guessable_token_value() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        open(folder.path())
            .add_token(token("a"), &Secret::new("password"))
            .await
            .is_err()
    );
}

#[test]
fn admin_scope_allows_everything() {
    let some = token("a");
    assert!(some.allows(TokenScope::Chat) && !some.allows(TokenScope::Approve));
    let admin = AccessToken {
        scopes: [TokenScope::Admin].into(),
        ..token("a")
    };
    assert!(TokenScope::ALL.into_iter().all(|scope| admin.allows(scope)));
    assert!(
        !some.is_expired(Timestamp::UNIX_EPOCH)
            && some.is_expired(Timestamp::UNIX_EPOCH + 1.hour())
    );
}
