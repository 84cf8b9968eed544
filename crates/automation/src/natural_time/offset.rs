//! The part of the grammar that reads spans of time: "in two hours", "every 15 minutes".

use jiff::{Span, ToSpan};

use super::dates::NamedDay;
use super::reader::{PhraseReader, Read, TimeParts, TimeUnit};

const SECONDS_PER_MINUTE: i64 = 60;
const SECONDS_PER_HOUR: i64 = 3600;

/// A span of time: calendar days, and elapsed seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    months: i64,
    days: i64,
    seconds: i64,
}

impl Amount {
    fn of(count: i64, unit: TimeUnit) -> Option<Self> {
        let none = Self::default();
        Some(match unit {
            TimeUnit::Second => Self {
                seconds: count,
                ..none
            },
            TimeUnit::Minute => Self {
                seconds: count.checked_mul(SECONDS_PER_MINUTE)?,
                ..none
            },
            TimeUnit::Hour => Self {
                seconds: count.checked_mul(SECONDS_PER_HOUR)?,
                ..none
            },
            TimeUnit::Day => Self {
                days: count,
                ..none
            },
            TimeUnit::Week => Self {
                days: count.checked_mul(7)?,
                ..none
            },
            TimeUnit::Month => Self {
                months: count,
                ..none
            },
            TimeUnit::Year => Self {
                months: count.checked_mul(12)?,
                ..none
            },
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            months: self.months.saturating_add(other.months),
            days: self.days.saturating_add(other.days),
            seconds: self.seconds.saturating_add(other.seconds),
        }
    }

    fn span(self) -> Option<Span> {
        let span = Span::new().try_months(self.months).ok()?;
        span.try_days(self.days)
            .ok()?
            .try_seconds(self.seconds)
            .ok()
    }
}

impl PhraseReader<'_> {
    /// "in two hours", "two hours from now", "in two days at 9"
    pub(super) fn offset(&self, at: usize) -> Read<TimeParts> {
        let (amount, after) = match self.skip(at, self.words.within) {
            Some(place) => self.amount(place)?,
            None => {
                let (amount, place) = self.amount(at)?;
                (amount, self.skip(place, self.words.from_now)?)
            }
        };
        let span = amount.span()?;
        if amount.seconds == 0
            && let Some((clock, after)) = self.time_beside_day(after)
        {
            let date = self.now.date().checked_add(span).ok()?;
            let (day, clock) = (Some(NamedDay::Date(date)), Some(clock));
            return Some((TimeParts::Once { day, clock }, after));
        }
        // A month from now is a date; an hour from now is elapsed time.
        let later = self.now.checked_add(span).ok()?;
        let later = later.round(jiff::Unit::Second).ok()?;
        Some((TimeParts::Later(later), after))
    }

    /// "two hours and 15 minutes", "an hour and a half", "1h30m"
    fn amount(&self, at: usize) -> Read<Amount> {
        let (mut amount, mut at) = self.amount_part(at)?;
        loop {
            let next = self.skip_optional(at, self.words.and);
            let Some((part, after)) = self.amount_part(next) else {
                return Some((amount, at));
            };
            (amount, at) = (amount.plus(part), after);
        }
    }

    fn amount_part(&self, at: usize) -> Read<Amount> {
        let words = self.words;
        let spans = words.spans.iter();
        let span = spans.filter_map(|(name, minutes)| Some((*minutes, self.skip(at, name)?)));
        if let Some((minutes, after)) = span.max_by_key(|(_, after)| *after) {
            return Some((Amount::of(minutes, TimeUnit::Minute)?, after));
        }
        if let Some(place) = self.skip(at, words.one_and_half) {
            return self.halves(3, place);
        }
        let token = self.tokens.get(at).filter(|token| !token.is_quoted)?;
        if let Some(amount) = compact_amount(&token.word) {
            return Some((amount, at + 1));
        }
        if let Some(halves) = decimal_halves(&token.word) {
            return self.halves(halves, at + 1);
        }
        let (count, place) = self.number(at)?;
        let count = i64::from(count);
        // "two and a half hours"
        if let Some(place) = self.skip(place, words.and_half) {
            return self.halves(count * 2 + 1, place);
        }
        let (unit, after) = self.unit(place)?;
        let amount = Amount::of(count, unit)?;
        // "an hour and a half"
        match (unit, self.skip(after, words.and_half)) {
            (TimeUnit::Hour, Some(after)) => {
                Some((amount.plus(Amount::of(30, TimeUnit::Minute)?), after))
            }
            (TimeUnit::Minute, Some(after)) => {
                Some((amount.plus(Amount::of(30, TimeUnit::Second)?), after))
            }
            _ => Some((amount, after)),
        }
    }

    /// Reads the unit of a number of halves.
    fn halves(&self, halves: i64, at: usize) -> Read<Amount> {
        let (unit, after) = self.unit(at)?;
        let amount = match unit {
            TimeUnit::Minute => Amount::of(halves.checked_mul(30)?, TimeUnit::Second)?,
            TimeUnit::Hour => Amount::of(halves.checked_mul(30)?, TimeUnit::Minute)?,
            _ => return None,
        };
        Some((amount, after))
    }

    /// Reads an interval that is no time of the clock. "every day at 8" is one.
    pub(super) fn interval(&self, at: usize) -> Read<String> {
        if let Some(after) = self.skip(at, self.words.hourly) {
            return Some(("1h".to_owned(), after));
        }
        let at = self.skip(at, self.words.every)?;
        if let Some((amount, after)) = self.amount(at) {
            let is_clock = amount.seconds == 0 && self.has_time_of_day(after);
            let is_one_day = amount == Amount::of(1, TimeUnit::Day)?;
            let is_one_week = amount == Amount::of(1, TimeUnit::Week)?;
            if amount.months > 0 || is_clock || is_one_day || is_one_week {
                return None;
            }
            return Some((interval_text(amount), after));
        }
        let (unit, after) = self.unit(at)?;
        match unit {
            TimeUnit::Minute | TimeUnit::Hour | TimeUnit::Second => {
                Some((interval_text(Amount::of(1, unit)?), after))
            }
            _ => None,
        }
    }

    fn has_time_of_day(&self, at: usize) -> bool {
        let is_day = self.day(at).is_some();
        is_day || self.time_beside_day(at).is_some()
    }
}

fn interval_text(amount: Amount) -> String {
    let mut parts = Vec::new();
    let (hours, rest) = (
        amount.seconds / SECONDS_PER_HOUR,
        amount.seconds % SECONDS_PER_HOUR,
    );
    let (minutes, seconds) = (rest / SECONDS_PER_MINUTE, rest % SECONDS_PER_MINUTE);
    let (weeks, days) = match amount.days % 7 {
        0 => (amount.days / 7, 0),
        _ => (0, amount.days),
    };
    for (count, unit) in [
        (weeks, "w"),
        (days, "d"),
        (hours, "h"),
        (minutes, "m"),
        (seconds, "s"),
    ] {
        if count > 0 {
            parts.push(format!("{count}{unit}"));
        }
    }
    parts.join(" ")
}

/// Reads `1h30m`, `1h30`, `90min`, `45s`.
fn compact_amount(word: &str) -> Option<Amount> {
    let mut amount = Amount::default();
    let mut rest = word;
    let mut last = None;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let count: i64 = rest[..digits].parse().ok()?;
        let letters = &rest[digits..];
        let end = letters
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(letters.len());
        let unit = match (&letters[..end], last) {
            ("h" | "hr" | "hrs" | "std", None) => TimeUnit::Hour,
            ("m" | "min" | "mins" | "mn", _) => TimeUnit::Minute,
            ("s" | "sec" | "secs", _) => TimeUnit::Second,
            ("d", None) => TimeUnit::Day,
            ("w", None) => TimeUnit::Week,
            ("", Some(TimeUnit::Hour)) => TimeUnit::Minute,
            _ => return None,
        };
        amount = amount.plus(Amount::of(count, unit)?);
        (last, rest) = (Some(unit), &letters[end..]);
    }
    (amount != Amount::default()).then_some(amount)
}

/// Reads `1.5` and `1,5`, as a number of halves.
fn decimal_halves(word: &str) -> Option<i64> {
    let (whole, fraction) = word.split_once(['.', ','])?;
    let whole: i64 = whole.parse().ok()?;
    match fraction {
        "5" => whole.checked_mul(2)?.checked_add(1),
        "0" => whole.checked_mul(2),
        _ => None,
    }
}

/// Returns a date some days later.
pub(super) fn days_later(date: jiff::civil::Date, days: i64) -> Option<jiff::civil::Date> {
    date.checked_add(days.days()).ok()
}
