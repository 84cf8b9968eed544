//! Detects secrets that must not be stored: keys, passwords and other credentials.
//!
//! A detected secret is never repeated in messages. Doubtful cases count as secrets, since rewording
//! a fact costs the user little.

mod formats;
mod mask;
mod statements;

use std::fmt;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

pub use mask::{MaskedText, has_url_password, mask_secrets};

/// Shorter values are ordinary words: local servers accept keys such as `x` or `test`.
pub const MIN_SECRET_BYTES: usize = 8;

/// Detects known secrets by value and unknown ones by format or context. Cheap to clone.
#[derive(Clone, Default)]
pub struct SecretScanner {
    known: Arc<[SecretString]>,
}

/// The kind of secret that a text seems to contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    PrivateKey,
    AccessKey,
    Password,
    RecoveryPhrase,
    CardNumber,
}

impl SecretScanner {
    /// Creates a scanner that also detects the values of these secrets.
    pub fn with_known_secrets(secrets: impl IntoIterator<Item: Into<SecretString>>) -> Self {
        let is_long = |secret: &SecretString| secret.expose_secret().len() >= MIN_SECRET_BYTES;
        Self {
            known: secrets
                .into_iter()
                .map(Into::into)
                .filter(is_long)
                .collect(),
        }
    }

    /// Returns the kind of the first secret that a text seems to contain.
    pub fn find_secret(&self, text: &str) -> Option<SecretKind> {
        if self
            .known
            .iter()
            .any(|secret| text.contains(secret.expose_secret()))
        {
            return Some(SecretKind::AccessKey);
        }
        formats::find(text).or_else(|| statements::find(text))
    }
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PrivateKey => "a private key",
            Self::AccessKey => "an access key or token",
            Self::Password => "a password",
            Self::RecoveryPhrase => "a recovery phrase",
            Self::CardNumber => "the number of a payment card",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Option<SecretKind> {
        SecretScanner::default().find_secret(text)
    }

    #[test]
    fn detects_secrets() {
        let long = "a".repeat(8) + &"Zk3".repeat(12);
        for (text, kind) in [
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb",
                SecretKind::PrivateKey,
            ),
            (&format!("key is sk-{long}"), SecretKind::AccessKey),
            (
                "ghp_0123456789abcdefABCDEF0123456789abcd",
                SecretKind::AccessKey,
            ),
            ("aws AKIAIOSFODNN7EXAMPLE here", SecretKind::AccessKey),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
                SecretKind::AccessKey,
            ),
            ("postgres://ann:hunter2@db.example/x", SecretKind::Password),
            ("the wifi password is hunter2", SecretKind::Password),
            ("my password: swordfish!", SecretKind::Password),
            ("PASSWORD=letmein", SecretKind::Password),
            ("das Passwort lautet Sommer2026", SecretKind::Password),
            ("비밀번호는 hunter2 입니다", SecretKind::Password),
            ("パスワードは「ひみつ99」です", SecretKind::Password),
            ("the PIN is 4711", SecretKind::Password),
            ("api_key = \"9f8e7d6c5b4a39281706\"", SecretKind::Password),
            (
                "deploy token 8fJ2kLm9QwErTyUiOpAsDfGhJkLzXcVbNm12",
                SecretKind::AccessKey,
            ),
            (
                "seed phrase: abandon ability able about above absent absorb abstract absurd abuse access acid",
                SecretKind::RecoveryPhrase,
            ),
            ("card 4111 1111 1111 1111", SecretKind::CardNumber),
            (
                "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
                SecretKind::PrivateKey,
            ),
        ] {
            assert_eq!(find(text), Some(kind), "{text}");
        }
    }

    #[test]
    fn accepts_ordinary_facts() {
        for text in [
            "",
            "the office closes at six",
            "the password policy is strict: twelve characters",
            "the password is required for every deployment",
            "the password is stored in the vault under db/main",
            "tokens: 4096 per request, the token budget is generous",
            "commit fd2c75b0a1b2c3d4e5f60718293a4b5c6d7e8f90 fixed it",
            "see https://docs.example.org/guides/getting-started/installation-on-linux?tab=one",
            "/home/ann/projects/Lango2/crates/knowledge/src/lexical/normal.rs",
            "the order number is 4111111111111112",
            "회사 사무실은 여섯 시에 닫는다",
            "ask-me-anything sessions are on Fridays; sk- is how keys begin",
            "Donaudampfschifffahrtsgesellschaftskapitän is a long word",
            "session 01890a5d-ac96-774b-bcce-b302099a8057 was odd",
            "use ${API_KEY} as api_key=${API_KEY}, password: ***, secret: <your secret>",
            "The secret of good tea is patience.",
            "transaction 0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318 went through",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn detects_known_secrets_of_any_format() {
        let scanner =
            SecretScanner::with_known_secrets(["blue horses", "x"].map(SecretString::from));
        assert_eq!(
            scanner.find_secret("she said blue horses, twice"),
            Some(SecretKind::AccessKey)
        );
        assert_eq!(scanner.find_secret("x marks the spot"), None);
    }

    #[test]
    fn scans_odd_and_huge_texts_quickly() {
        let huge = "password ".repeat(100_000);
        assert_eq!(find(&huge), None);
        assert_eq!(find("password:"), None);
        assert_eq!(find("\u{202e}\u{0}://@"), None);
        assert_eq!(find(&"é".repeat(500_000)), None);
    }
}
