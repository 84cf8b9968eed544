//! From when to when a fact holds.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

const SECONDS_PER_DAY: i64 = 86_400;

/// A second; a day means its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(pub i64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no date; write 2024, 2024-05, 2024-05-31 or 2024-05-31T12:00:00Z")]
pub struct DateError(String);

impl FromStr for Moment {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let text = text.trim();
        let wrong = || DateError(text.chars().take(40).collect());
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
                    .map_err(|_| wrong());
            }
        };
        let day: Date = day.parse().map_err(|_| wrong())?;
        let begin = day.to_zoned(TimeZone::UTC).map_err(|_| wrong())?;
        Ok(Self::from(begin.timestamp()))
    }
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        Self(at.as_second())
    }
}

/// A day where it is the first second of one.
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

/// When a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    At(Moment),
    /// Whether it holds, held or will hold.
    AnyTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written_alike() {
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
        for wrong in [
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
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }
}
