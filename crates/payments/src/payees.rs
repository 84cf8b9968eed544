//! Finds the payee that a request names, and what is known of its address.

use lango_domain::event::Principal;
use lango_domain::payments::{AccountAddress, Payee, PaymentStore};
use lango_text::sanitize::truncated_line;
use lango_text::suggest;

use crate::address::{
    Likeness, is_like_address, likeness, parse_address, shown_address, to_account,
};
use crate::error::PaymentError;

/// A payee as the question shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPayee {
    pub address: AccountAddress,
    /// The name in the address book.
    pub name: Option<String>,
    pub was_paid_before: bool,
    /// The name and address of a known payee that this one could be mistaken for.
    pub similar_to: Option<(String, AccountAddress)>,
}

/// The addresses that a principal knows.
#[derive(Clone, Debug, Default)]
pub struct KnownAddresses {
    pub payees: Vec<Payee>,
    pub paid: Vec<AccountAddress>,
    pub own: Vec<AccountAddress>,
}

impl KnownAddresses {
    pub async fn load(
        store: &dyn PaymentStore,
        principal: &Principal,
        own: Vec<AccountAddress>,
    ) -> Result<Self, PaymentError> {
        Ok(Self {
            payees: store.payees(principal).await?,
            paid: store.paid_addresses(principal).await?,
            own,
        })
    }

    /// Returns the payee with this name or address. An address that was made to look like a known one is
    /// refused, unless the user added it to the address book.
    pub fn find(&self, text: &str) -> Result<FoundPayee, PaymentError> {
        let text = text.trim();
        let payee = if is_like_address(text) {
            self.describe(to_account(parse_address(text)?))
        } else {
            self.describe(self.named(text)?.address)
        };
        if let (None, Some((known, known_address))) = (&payee.name, &payee.similar_to)
            && likeness(payee.address, *known_address) == Some(Likeness::Poisoned)
        {
            return Err(PaymentError::LookAlike {
                address: shown_address(payee.address),
                known: known.clone(),
                known_address: shown_address(*known_address),
            });
        }
        Ok(payee)
    }

    /// Returns what is known of an address.
    pub fn describe(&self, address: AccountAddress) -> FoundPayee {
        let name = self.payees.iter().find(|payee| payee.address == address);
        FoundPayee {
            address,
            name: name.map(|payee| payee.name.clone()),
            was_paid_before: self.paid.contains(&address),
            similar_to: self.most_similar(address),
        }
    }

    /// Returns the known address that is most like this one.
    pub fn most_similar(&self, address: AccountAddress) -> Option<(String, AccountAddress)> {
        let named = self
            .payees
            .iter()
            .map(|payee| (format!("`{}`", payee.name), payee.address));
        let paid = self
            .paid
            .iter()
            .map(|paid| ("an earlier payee".to_owned(), *paid));
        let own = self
            .own
            .iter()
            .map(|own| ("a wallet of your own".to_owned(), *own));
        named
            .chain(paid)
            .chain(own)
            .filter_map(|(name, known)| Some((likeness(address, known)?, name, known)))
            .max_by_key(|(likeness, ..)| *likeness)
            .map(|(_, name, known)| (name, known))
    }

    fn named(&self, name: &str) -> Result<&Payee, PaymentError> {
        let wanted = name.to_lowercase();
        let found = self
            .payees
            .iter()
            .find(|payee| payee.name.to_lowercase() == wanted);
        found.ok_or_else(|| {
            let names = self.payees.iter().map(|payee| payee.name.as_str());
            PaymentError::UnknownPayee {
                name: truncated_line(name, 80),
                similar: suggest::did_you_mean(name, names),
            }
        })
    }
}

const MAX_NAME: usize = 64;

/// Checks the name of a payee or a wallet: letters, digits, `.`, `-`, `_` and single spaces.
pub fn check_name(name: &str) -> Result<String, PaymentError> {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.');
    let is_fine = !name.is_empty()
        && name.chars().count() <= MAX_NAME
        && name.chars().all(is_allowed)
        && !is_like_address(&name);
    if is_fine {
        return Ok(name);
    }
    Err(PaymentError::Invalid(format!(
        "`{}` is not a name; expected 1 to {MAX_NAME} letters, digits, `.`, `-` or `_`",
        truncated_line(&name, 80)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    const BOB: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    /// The same first and last four digits.
    const FAKE: &str = "0x5aae111111111111111111111111111111111aed";

    fn known() -> KnownAddresses {
        KnownAddresses {
            payees: vec![Payee {
                name: "Bob".to_owned(),
                address: to_account(parse_address(BOB).unwrap()),
                added: Timestamp::UNIX_EPOCH,
            }],
            paid: vec![AccountAddress([9; 20])],
            own: Vec::new(),
        }
    }

    #[test]
    fn payees_are_found_by_name_or_address() {
        let bob = known().find("bob").unwrap();
        assert_eq!(
            (bob.name.as_deref(), bob.was_paid_before),
            (Some("Bob"), false)
        );
        assert_eq!(known().find(BOB).unwrap(), bob);
        let other = known().find(&format!("0x{}", "09".repeat(20))).unwrap();
        assert_eq!((other.name, other.was_paid_before), (None, true));
        let error = known().find("bobb").unwrap_err().to_string();
        assert!(error.contains("did you mean `Bob`"), "{error}");
    }

    #[test]
    fn look_alikes_are_refused_unless_the_user_added_them() {
        let fake = FAKE.replace("1aed", "eaed");
        let error = known().find(&fake).unwrap_err();
        assert!(matches!(error, PaymentError::LookAlike { .. }), "{error}");
        let mut known = known();
        known.payees.push(Payee {
            name: "Rob".to_owned(),
            address: fake.parse().unwrap(),
            added: Timestamp::UNIX_EPOCH,
        });
        let rob = known.find("rob").unwrap();
        assert_eq!(rob.similar_to.unwrap().0, "`Bob`");
    }

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(check_name("  Bob  Smith ").unwrap(), "Bob Smith");
        for bad in ["", "0xabc", "a\u{202e}b", "a/b", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
