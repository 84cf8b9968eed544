//! The time for which a fact is valid.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

const SECONDS_PER_DAY: i64 = 86_400;

/// A moment in seconds since 1970. A date means its first second, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(pub i64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid date `{0}`; expected 2024, 2024-05, 2024-05-31 or 2024-05-31T12:00:00Z")]
pub struct DateError(String);

impl FromStr for Moment {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let text = text.trim();
        let invalid_date = || DateError(text.chars().take(40).collect());
        let (sign, digits) = text
            .strip_prefix('-')
            .map_or(("", text), |digits| ("-00", digits));
        let is_number = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|b| b.is_ascii_digit())
        };
        let day = match digits.split('-').collect::<Vec<_>>()[..] {
            [year] if is_number(year, 4) => format!("{sign}{year}-01-01"),
            [year, month] if is_number(year, 4) && is_number(month, 2) => {
                format!("{sign}{year}-{month}-01")
            }
            [year, month, day]
                if is_number(year, 4) && is_number(month, 2) && is_number(day, 2) =>
            {
                format!("{sign}{year}-{month}-{day}")
            }
            _ => {
                return text
                    .parse::<Timestamp>()
                    .map(Self::from)
                    .map_err(|_| invalid_date());
            }
        };
        let day: Date = day.parse().map_err(|_| invalid_date())?;
        let start = day.to_zoned(TimeZone::UTC).map_err(|_| invalid_date())?;
        Ok(Self::from(start.timestamp()))
    }
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        Self(at.as_second())
    }
}

/// Formats the first second of a day as a date.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(at) = Timestamp::from_second(self.0) else {
            return write!(f, "{}", self.0);
        };
        if self.0 % SECONDS_PER_DAY != 0 {
            return write!(f, "{at}");
        }
        let day = at.to_zoned(TimeZone::UTC).date();
        match day.year() {
            0.. => write!(f, "{day}"),
            year => write!(f, "-{:04}-{:02}-{:02}", -year, day.month(), day.day()),
        }
    }
}

/// The time that a query is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    At(Moment),
    /// Past, present and future facts.
    AnyTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip_through_text() {
        for (text, shown) in [
            ("2024", "2024-01-01"),
            ("1990-10", "1990-10-01"),
            ("1990-10-03", "1990-10-03"),
            ("-0044-03-15", "-0044-03-15"),
            ("2024-05-31T12:30:00Z", "2024-05-31T12:30:00Z"),
            ("2024-05-31T02:00:00+02:00", "2024-05-31"),
        ] {
            let moment: Moment = text.parse().unwrap();
            assert_eq!(moment.to_string(), shown);
            assert_eq!(shown.parse(), Ok(moment));
        }
        for invalid_date in [
            "",
            "yesterday",
            "2024-13",
            "2024-02-30",
            "24",
            "٢٠٢٤",
            "2024-1-1",
            "99999",
            "-",
        ] {
            assert!(invalid_date.parse::<Moment>().is_err(), "{invalid_date}");
        }
    }
}
