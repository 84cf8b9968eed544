//! Addresses as people write them: checksums (EIP-55), and addresses that look like others.

use alloy_primitives::Address;
use lango_domain::payments::AccountAddress;
use lango_text::sanitize::truncated_line;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` is not an address; expected 0x and 40 hexadecimal digits")]
    Malformed(String),
    #[error(
        "the checksum of `{0}` is wrong: a letter was changed or mistyped; copy the address again"
    )]
    Checksum(String),
    #[error("the address 0x0 belongs to no one; what is paid to it is lost")]
    Zero,
}

/// Reads an address. Mixed case must be the right checksum; one case alone has none.
pub fn parse_address(text: &str) -> Result<Address, AddressError> {
    let text = text.trim();
    let plain: AccountAddress = text
        .parse()
        .map_err(|_| AddressError::Malformed(truncated_line(text, 80)))?;
    let address = Address::from(plain.0);
    let digits = text.get(2..).unwrap_or_default();
    let has_lower = digits.bytes().any(|byte| byte.is_ascii_lowercase());
    let has_upper = digits.bytes().any(|byte| byte.is_ascii_uppercase());
    if has_lower && has_upper && address.to_checksum(None) != text {
        return Err(AddressError::Checksum(text.to_owned()));
    }
    if address.is_zero() {
        return Err(AddressError::Zero);
    }
    Ok(address)
}

/// Returns true if a text is meant as an address, right or wrong.
pub fn is_like_address(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("0x") || text.starts_with("0X")
}

/// Returns the address with its checksum.
pub fn shown_address(address: AccountAddress) -> String {
    Address::from(address.0).to_checksum(None)
}

pub(crate) fn from_account(address: AccountAddress) -> Address {
    Address::from(address.0)
}

pub(crate) fn to_account(address: Address) -> AccountAddress {
    AccountAddress(address.into_array())
}

/// The likeness of two different addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// Some characters at the ends are the same. Worth a warning.
    Similar,
    /// The first and last four characters are the same: what most people compare. Chance makes that once in
    /// four billion, so it was made on purpose.
    Poisoned,
}

/// Compares the ends of two addresses, in hexadecimal digits.
pub fn likeness(one: AccountAddress, other: AccountAddress) -> Option<Likeness> {
    if one == other {
        return None;
    }
    let (one, other) = (one.to_string(), other.to_string());
    let (one, other) = (&one.as_bytes()[2..], &other.as_bytes()[2..]);
    let same = |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let start = same(&mut one.iter().zip(other));
    let end = same(&mut one.iter().rev().zip(other.iter().rev()));
    match (start, end) {
        (4.., 4..) => Some(Likeness::Poisoned),
        (3.., 3..) | (6.., _) | (_, 6..) => Some(Likeness::Similar),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of EIP-55.
    #[test]
    fn checksums_are_checked() {
        for text in [
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0xde709f2102306220921060314715629080e2fb77",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            let address = parse_address(text).unwrap();
            assert_eq!(parse_address(&text.to_lowercase()), Ok(address));
            let shown = shown_address(to_account(address));
            assert_eq!(parse_address(&shown), Ok(address));
        }
        let wrong = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";
        assert_eq!(
            parse_address(wrong),
            Err(AddressError::Checksum(wrong.to_owned()))
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "bob",
            "0x",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
            "0X5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
        ] {
            assert!(
                matches!(parse_address(text), Err(AddressError::Malformed(_))),
                "{text}"
            );
        }
        let zero = format!("0x{}", "0".repeat(40));
        assert_eq!(parse_address(&zero), Err(AddressError::Zero));
    }

    #[test]
    fn addresses_with_the_same_ends_are_alike() {
        let of = |start: &str, end: &str| -> AccountAddress {
            let middle = "7".repeat(40 - start.len() - end.len());
            format!("0x{start}{middle}{end}").parse().unwrap()
        };
        let known = of("abcdef", "123456");
        assert_eq!(likeness(known, known), None);
        assert_eq!(
            likeness(known, of("abcd11", "113456")),
            Some(Likeness::Poisoned)
        );
        assert_eq!(
            likeness(known, of("abc111", "111456")),
            Some(Likeness::Similar)
        );
        assert_eq!(
            likeness(known, of("abcdef", "999999")),
            Some(Likeness::Similar)
        );
        assert_eq!(likeness(known, of("ab1111", "111156")), None);
    }
}
