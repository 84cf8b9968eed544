//! Durations in workflow files, such as `90s`, `2m` or `1h30m`.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];
/// The longest duration.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The reason why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("`{0}` is not a duration")]
    Malformed(String),
    #[error("`{0}` has no unit")]
    NoUnit(String),
    #[error("a duration must be longer than nothing")]
    Zero,
    #[error("`{0}` is longer than a year")]
    TooLong(String),
}

/// Parses a duration: numbers, each with one of the units ms, s, m, h and d.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let malformed = || DurationError::Malformed(text.to_owned());
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        let digits = digits.ok_or_else(|| DurationError::NoUnit(text.to_owned()))?;
        let number: u64 = rest[..digits].parse().map_err(|_| malformed())?;
        let after = &rest[digits..];
        let end = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, next) = after.split_at(end.unwrap_or(after.len()));
        let scale = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, scale) = scale.ok_or_else(malformed)?;
        let part = number.checked_mul(*scale);
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| DurationError::TooLong(text.to_owned()))?;
        rest = next.trim_start();
    }
    let duration = Duration::from_millis(total);
    match duration {
        _ if text.is_empty() => Err(malformed()),
        Duration::ZERO => Err(DurationError::Zero),
        _ if duration > MAX_DURATION => Err(DurationError::TooLong(text.to_owned())),
        _ => Ok(duration),
    }
}

/// Formats a duration as the file would write it.
pub fn format_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, scale) in UNITS.iter().rev() {
        let count = rest / scale;
        rest %= scale;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}
