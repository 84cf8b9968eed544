//! Whether a text holds something that must not be kept: keys, passwords, and what else opens a door.
//!
//! What is found is never repeated. A doubtful case counts as a secret: being asked to word a fact anew costs little.

mod masked;
mod shapes;
mod stated;

use std::fmt;
use std::sync::Arc;

use lango_domain::secret::Secret;

pub use masked::{Masked, has_address_with_password, masked};

/// What nobody may keep, told from ordinary words by what is known and by how it looks. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrecy {
    known: Arc<[Secret]>,
}

/// What a text seems to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    PrivateKey,
    AccessKey,
    Password,
    RecoveryPhrase,
    CardNumber,
}

impl Secrecy {
    /// Knows the values of these, too.
    pub fn knowing(secrets: Vec<Secret>) -> Self {
        Self { known: secrets.into_iter().filter(Secret::is_redactable).collect() }
    }

    /// The first secret that a text seems to hold.
    pub fn secret_in(&self, text: &str) -> Option<Likeness> {
        if self.known.iter().any(|secret| text.contains(secret.expose())) {
            return Some(Likeness::AccessKey);
        }
        shapes::find(text).or_else(|| stated::find(text))
    }
}

impl fmt::Display for Likeness {
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

    fn found(text: &str) -> Option<Likeness> {
        Secrecy::default().secret_in(text)
    }

    #[test]
    fn secrets_are_recognised() {
        let long = "a".repeat(8) + &"Zk3".repeat(12);
        for (text, likeness) in [
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", Likeness::PrivateKey),
            (&format!("key is sk-{long}"), Likeness::AccessKey),
            ("ghp_0123456789abcdefABCDEF0123456789abcd", Likeness::AccessKey),
            ("aws AKIAIOSFODNN7EXAMPLE here", Likeness::AccessKey),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", Likeness::AccessKey),
            ("postgres://ann:hunter2@db.example/x", Likeness::Password),
            ("the wifi password is hunter2", Likeness::Password),
            ("my password: swordfish!", Likeness::Password),
            ("PASSWORD=letmein", Likeness::Password),
            ("das Passwort lautet Sommer2026", Likeness::Password),
            ("비밀번호는 hunter2 입니다", Likeness::Password),
            ("パスワードは「ひみつ99」です", Likeness::Password),
            ("the PIN is 4711", Likeness::Password),
            ("api_key = \"9f8e7d6c5b4a39281706\"", Likeness::Password),
            ("deploy token 8fJ2kLm9QwErTyUiOpAsDfGhJkLzXcVbNm12", Likeness::AccessKey),
            (
                "seed phrase: abandon ability able about above absent absorb abstract absurd abuse access acid",
                Likeness::RecoveryPhrase,
            ),
            ("card 4111 1111 1111 1111", Likeness::CardNumber),
            ("0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318", Likeness::PrivateKey),
        ] {
            assert_eq!(found(text), Some(likeness), "{text}");
        }
    }

    #[test]
    fn ordinary_facts_may_be_kept() {
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
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_known_to_be_secret_is_found_whatever_it_looks_like() {
        let secrecy = Secrecy::knowing(vec![Secret::new("blue horses"), Secret::new("x")]);
        assert_eq!(secrecy.secret_in("she said blue horses, twice"), Some(Likeness::AccessKey));
        assert_eq!(secrecy.secret_in("x marks the spot"), None);
    }

    #[test]
    fn odd_and_huge_texts_are_read_quickly() {
        let huge = "password ".repeat(100_000);
        assert_eq!(found(&huge), None);
        assert_eq!(found("password:"), None);
        assert_eq!(found("\u{202e}\u{0}://@"), None);
        assert_eq!(found(&"é".repeat(500_000)), None);
    }
}
