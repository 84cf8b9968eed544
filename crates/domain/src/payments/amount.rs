//! Amounts of USDC as whole units. There are no floating point numbers in payments.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Units in one USDC: a token has six decimals.
const UNITS: u64 = 1_000_000;
const DECIMALS: usize = 6;

/// An amount of USDC in its smallest unit, a millionth. At most `i64::MAX` units, so that every store can
/// hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsdcAmount(u64);

impl UsdcAmount {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(i64::MAX as u64);

    /// Returns `None` if the number of units is too large.
    pub fn from_units(units: u64) -> Option<Self> {
        (units <= Self::MAX.0).then_some(Self(units))
    }

    pub const fn from_cents(cents: u32) -> Self {
        Self(cents as u64 * (UNITS / 100))
    }

    pub fn units(self) -> u64 {
        self.0
    }

    /// Returns whole USDC and the remaining millionths.
    pub fn parts(self) -> (u64, u64) {
        (self.0 / UNITS, self.0 % UNITS)
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).and_then(Self::from_units)
    }

    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Formats with at least two decimals: `1.50`, `0.000001`.
impl fmt::Display for UsdcAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = self.parts();
        let decimals = format!("{rest:06}");
        let shown = decimals.trim_end_matches('0').len().max(2);
        write!(f, "{whole}.{}", &decimals[..shown])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseAmountError {
    #[error("`{0}` is not an amount; write digits with a point for decimals, such as 1.50")]
    NotANumber(String),
    #[error("`{0}` has more than six decimals, and USDC has six")]
    TooPrecise(String),
    #[error("`{0}` is larger than any amount of USDC")]
    TooLarge(String),
}

/// Reads `5`, `1.5` or `0.000001`. Signs, exponents, separators of thousands and other scripts' digits are
/// errors, because they can be read in two ways.
impl FromStr for UsdcAmount {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        let shown = || lango_text::sanitize::truncated_line(text, 60);
        let trimmed = text.trim();
        let (whole, decimals) = match trimmed.split_once('.') {
            Some((whole, decimals)) if !decimals.is_empty() => (whole, decimals),
            Some(_) => return Err(ParseAmountError::NotANumber(shown())),
            None => (trimmed, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) {
            return Err(ParseAmountError::NotANumber(shown()));
        }
        if decimals.len() > DECIMALS {
            return Err(ParseAmountError::TooPrecise(shown()));
        }
        let units = whole.parse::<u64>().ok();
        let rest = format!("{decimals:0<6}").parse::<u64>().ok();
        units
            .and_then(|whole| whole.checked_mul(UNITS))
            .zip(rest)
            .and_then(|(whole, rest)| whole.checked_add(rest))
            .and_then(Self::from_units)
            .ok_or_else(|| ParseAmountError::TooLarge(shown()))
    }
}

impl Serialize for UsdcAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UsdcAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountText)
    }
}

/// Accepts a text or a whole number. A decimal number would already have lost digits.
struct AmountText;

impl serde::de::Visitor<'_> for AmountText {
    type Value = UsdcAmount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount as text, such as \"1.50\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<UsdcAmount, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, whole: u64) -> Result<UsdcAmount, E> {
        whole.to_string().parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, whole: i64) -> Result<UsdcAmount, E> {
        whole.to_string().parse().map_err(E::custom)
    }
}

impl JsonSchema for UsdcAmount {
    fn schema_name() -> Cow<'static, str> {
        "UsdcAmount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,6})?$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly() {
        for (text, units, shown) in [
            ("5", 5_000_000, "5.00"),
            ("1.5", 1_500_000, "1.50"),
            (" 0.10 ", 100_000, "0.10"),
            ("0.000001", 1, "0.000001"),
            ("007", 7_000_000, "7.00"),
            (
                "9223372036854.775807",
                i64::MAX as u64,
                "9223372036854.775807",
            ),
        ] {
            let amount: UsdcAmount = text.parse().unwrap();
            assert_eq!(
                (amount.units(), amount.to_string().as_str()),
                (units, shown)
            );
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_an_error() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1,50",
            "1 000",
            "1.2.3",
            "0x1",
            "٣",
            "NaN",
            "1.0000001",
            "9223372036854.775808",
            "99999999999999999999",
        ] {
            assert!(text.parse::<UsdcAmount>().is_err(), "{text}");
        }
    }

    #[test]
    fn json_numbers_with_decimals_are_refused() {
        let read = serde_json::from_str::<UsdcAmount>;
        assert_eq!(read("\"1.50\"").unwrap().units(), 1_500_000);
        assert_eq!(read("2").unwrap().units(), 2_000_000);
        assert!(read("1.5").is_err() && read("-1").is_err() && read("null").is_err());
    }
}
