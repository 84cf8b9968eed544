//! Durations in workflow files, such as `90s`, `2m` or `1h30m`.

use std::time::Duration;

use crate::schedule::parse_interval;

/// The longest duration.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The reason why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("`{0}` is not a duration")]
    Malformed(String),
    #[error("`{0}` has no unit")]
    NoUnit(String),
    #[error("`{0}` is longer than a year")]
    TooLong(String),
}

/// Parses a duration as in an `every` schedule.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    if text.parse::<f64>().is_ok() {
        return Err(DurationError::NoUnit(text.to_owned()));
    }
    let interval = parse_interval(text).ok();
    let duration = interval.and_then(|interval| Duration::try_from(interval).ok());
    match duration {
        None => Err(DurationError::Malformed(text.to_owned())),
        Some(duration) if duration > MAX_DURATION => Err(DurationError::TooLong(text.to_owned())),
        Some(duration) => Ok(duration),
    }
}

/// Formats a duration as the file would write it.
pub fn format_duration(duration: Duration) -> String {
    match jiff::SignedDuration::try_from(duration) {
        Ok(duration) => format!("{duration:#}"),
        Err(_) => format!("{}s", duration.as_secs()),
    }
}
