//! The part of the grammar that reads days: "tomorrow", "on Friday", "24 December", "24.12.", "the 24th".

use jiff::civil::{Date, Weekday};

use super::clock::ClockTime;
use super::offset::days_later;
use super::reader::{PhraseReader, Read};
use super::vocabulary::LAST;

const TONIGHT_HOUR: i8 = 20;
/// Up to this hour, a plain hour after "tonight" is in the night that follows.
const LAST_NIGHT_HOUR: i8 = 4;
/// Years that are searched for a date such as 29 February.
const SEARCHED_YEARS: i16 = 9;
/// Beginnings of the words for "next".
const NEXT_STEMS: [&str; 6] = ["next", "nachst", "kommend", "proxim", "prochain", "prossim"];
const ORDINAL_ENDINGS: [&str; 8] = ["st", "nd", "rd", "th", "er", "º", "ª", "ro"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamedDay {
    Date(Date),
    Weekday {
        weekday: Weekday,
        /// True if it is not today.
        is_next: bool,
    },
    /// A date with two readings, such as 3/4.
    Unclear(Date, Date),
    /// A weekday with a date that is another day.
    WrongWeekday,
}

impl PhraseReader<'_> {
    /// "tonight", "this afternoon"
    pub(super) fn day_with_part(&self, at: usize) -> Option<(NamedDay, ClockTime, usize)> {
        let words = self.words;
        let parts = [
            (words.this_morning, 9, false),
            (words.this_afternoon, 15, true),
            (words.tonight, TONIGHT_HOUR, true),
        ];
        let (hour, is_late, after) = parts
            .into_iter()
            .find_map(|(entries, hour, is_late)| Some((hour, is_late, self.skip(at, entries)?)))?;
        let today = NamedDay::Date(self.now.date());
        let Some((mut clock, end)) = self.time_beside_day(after) else {
            return Some((today, ClockTime::new(hour, 0), after));
        };
        // "tonight at 3" is in the night that follows, not in the afternoon.
        if hour == TONIGHT_HOUR && clock.hour <= LAST_NIGHT_HOUR {
            clock.is_half_day = false;
            let tomorrow = days_later(self.now.date(), 1)?;
            return Some((NamedDay::Date(tomorrow), clock, end));
        }
        if is_late && clock.hour < 12 && clock.is_half_day {
            clock.hour += 12;
        }
        clock.is_half_day = false;
        Some((today, clock, end))
    }

    pub(super) fn day(&self, at: usize) -> Read<NamedDay> {
        let (words, today) = (self.words, self.now.date());
        for (entries, days) in [
            (words.day_after_tomorrow, 2),
            (words.tomorrow, 1),
            (words.today, 0),
        ] {
            if let Some(after) = self.skip(at, entries) {
                return Some((NamedDay::Date(days_later(today, days)?), after));
            }
        }
        if let Some(week) = self.next_week(at) {
            return Some(week);
        }
        if let Some(after) = self.skip(at, words.next_month) {
            let first = today.last_of_month().tomorrow().ok()?;
            return Some((NamedDay::Date(first), after));
        }
        if let Some(dated) = self.dated_weekday(at) {
            return Some(dated);
        }
        self.date(at)
    }

    /// "next week", "next week on Tuesday"
    fn next_week(&self, at: usize) -> Read<NamedDay> {
        let after = self.skip(at, self.words.next_week)?;
        let today = self.now.date();
        let monday = days_later(today, -i64::from(today.weekday().to_monday_zero_offset()))?;
        let monday = days_later(monday, 7)?;
        let place = self.skip_optional(after, self.words.on);
        Some(match self.weekday(place, &self.words.weekdays) {
            Some((day, after)) => (
                NamedDay::Date(days_later(monday, i64::try_from(day).ok()?)?),
                after,
            ),
            None => (NamedDay::Date(monday), after),
        })
    }

    /// "on Friday", "next Friday", "Friday 27 March", "Friday next week"
    fn dated_weekday(&self, at: usize) -> Read<NamedDay> {
        let words = self.words;
        let place = self.skip_optional(at, words.on);
        let is_marked = place > at;
        let (number, after) = self.weekday(place, &words.weekdays).or_else(|| {
            let (number, after) = self.weekday(place, &words.weekday_abbreviations)?;
            let is_supported = is_marked || self.time_beside_day(after).is_some();
            is_supported.then_some((number, after))
        })?;
        let weekday = Weekday::from_monday_zero_offset(i8::try_from(number).ok()?).ok()?;
        if let Some((NamedDay::Date(monday), end)) = self.next_week(after) {
            let date = days_later(monday, i64::try_from(number).ok()?)?;
            return Some((NamedDay::Date(date), end));
        }
        if let Some((day, end)) = self.date(after) {
            return Some(match day {
                NamedDay::Date(date) if date.weekday() != weekday => (NamedDay::WrongWeekday, end),
                day => (day, end),
            });
        }
        let before = self.tokens.get(at..place).unwrap_or_default();
        let says_next = |word: &str| NEXT_STEMS.iter().any(|stem| word.starts_with(stem));
        let end = self.skip_optional(after, words.after_weekday);
        let is_next = end > after || before.iter().any(|token| says_next(&token.word));
        Some((NamedDay::Weekday { weekday, is_next }, end))
    }

    pub(super) fn weekday(&self, at: usize, weekdays: &[&'static str; 7]) -> Read<usize> {
        let found = weekdays.iter().enumerate();
        found
            .filter_map(|(day, names)| Some((day, self.skip(at, names)?)))
            .max_by_key(|(_, after)| *after)
    }

    /// Reads a date.
    fn date(&self, at: usize) -> Read<NamedDay> {
        let words = self.words;
        let place = self.skip_optional(at, words.on);
        let is_marked = place > at;
        let place = self.skip_optional(place, words.articles);
        let token = self.tokens.get(place).filter(|token| !token.is_quoted)?;
        if let Ok(date) = token.word.parse::<Date>() {
            return Some((NamedDay::Date(date), place + 1));
        }
        if let Some(day) = self.numeric_date(place, is_marked) {
            return Some((day, place + 1));
        }
        if let Some(((day, month), after)) = self.day_and_month(place) {
            let year = self.tokens.get(after).and_then(|token| year(&token.word));
            let end = after + usize::from(year.is_some());
            let date = match year {
                Some(year) => Date::new(year, month, day).ok()?,
                None => self.next_date(day, month)?,
            };
            return Some((NamedDay::Date(date), end));
        }
        self.day_of_this_month(at, place)
    }

    /// "24 December", "24th of December", "December 24"
    pub(super) fn day_and_month(&self, at: usize) -> Read<(i8, i8)> {
        let words = self.words;
        if let Some((day, after)) = self.day_number(at) {
            let place = self.skip_optional(after, words.of);
            let (month, end) = self.month(place)?;
            return Some(((day, month), end));
        }
        let (month, after) = self.month(at)?;
        let place = self.skip_optional(after, words.articles);
        let (day, end) = self.day_number(place)?;
        // "May 9 pm" has no day.
        let is_clock = self.skip(end, words.am).or(self.skip(end, words.pm));
        is_clock.is_none().then_some(((day, month), end))
    }

    fn month(&self, at: usize) -> Read<i8> {
        let names = self.words.month_names.iter().zip(1..);
        let mut found = names.filter_map(|(names, month)| Some((month, self.skip(at, names)?)));
        found.next()
    }

    /// Reads the number of a day: `24`, `24th`, `1er`, "first".
    pub(super) fn day_number(&self, at: usize) -> Read<i8> {
        let token = self.tokens.get(at).filter(|token| !token.is_quoted)?;
        let digits = token
            .word
            .trim_end_matches(|c: char| !c.is_ascii_digit() && !c.is_whitespace());
        let ending = &token.word[digits.len()..];
        if (1..=2).contains(&digits.len()) && (ending.is_empty() || is_ordinal_ending(ending)) {
            let day: i8 = digits.parse().ok()?;
            return (1..=31).contains(&day).then_some((day, at + 1));
        }
        let (ordinal, after) = self.ordinal(at)?;
        let day = i8::try_from(ordinal).ok()?;
        (ordinal != LAST).then_some((day, after))
    }

    /// Returns true for `24th`, and for `24.` if more follows.
    pub(super) fn is_ordinal_number(&self, at: usize) -> bool {
        let Some(token) = self.tokens.get(at) else {
            return false;
        };
        let ending = token.word.trim_start_matches(|c: char| c.is_ascii_digit());
        let has_digits = ending.len() < token.word.len();
        has_digits
            && (is_ordinal_ending(ending)
                || (ending.is_empty() && token.has_stop && at + 1 < self.tokens.len()))
    }

    pub(super) fn ordinal(&self, at: usize) -> Read<u8> {
        let ordinals = self.words.ordinals.iter();
        let mut found = ordinals.filter_map(|(name, number)| Some((*number, self.skip(at, name)?)));
        found.next()
    }

    /// "the 24th", "le 24": the next such day
    fn day_of_this_month(&self, at: usize, place: usize) -> Read<NamedDay> {
        let words = self.words;
        let (day, after) = self.day_number(place)?;
        let is_followed = after == self.tokens.len()
            || self.skip(after, words.at).is_some()
            || self.skip(after, words.weak_at).is_some()
            || self.starts_text(after);
        let is_digit = self.tokens[place]
            .word
            .starts_with(|c: char| c.is_ascii_digit());
        let is_day = self.is_ordinal_number(place) || (is_followed && !words.has_month_first);
        let has_unit = self.unit(after).is_some() || self.skip(after, words.oclock).is_some();
        if place == at || !is_digit || !is_day || has_unit {
            return None;
        }
        let mut date = self.now.date();
        for _ in 0..=62 {
            if date.day() == day {
                return Some((NamedDay::Date(date), after));
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// Reads `24.12.`, `24/12/2026`, `12/24`.
    fn numeric_date(&self, at: usize, is_marked: bool) -> Option<NamedDay> {
        let token = self.tokens.get(at)?;
        let separator = if token.word.contains('/') { '/' } else { '.' };
        let parts: Vec<&str> = token.word.split(separator).collect();
        let number = |text: &str| text.parse::<i8>().ok().filter(|number| *number > 0);
        let (first, second, year_text) = match parts.as_slice() {
            [first, second] => (number(first)?, number(second)?, None),
            [first, second, third] => (number(first)?, number(second)?, Some(*third)),
            _ => return None,
        };
        let has_mark = is_marked || year_text.is_some() || first > 23 || token.has_stop;
        if separator == '.' && !has_mark {
            return None;
        }
        let given = match year_text {
            Some(text) => Some(year(text).or_else(|| short_year(text))?),
            None => None,
        };
        let date = |day: i8, month: i8| match given {
            Some(year) => Date::new(year, month, day).ok(),
            None => self.next_date(day, month),
        };
        let (day_first, month_first) = (date(first, second), date(second, first));
        let is_unclear = separator == '/' && self.words.has_month_first && first != second;
        match (day_first, month_first) {
            (Some(one), Some(other)) if is_unclear => Some(NamedDay::Unclear(one, other)),
            (Some(date), _) => Some(NamedDay::Date(date)),
            (None, Some(date)) if separator == '/' => Some(NamedDay::Date(date)),
            _ => None,
        }
    }

    /// Returns the next such date, today included.
    pub(super) fn next_date(&self, day: i8, month: i8) -> Option<Date> {
        let today = self.now.date();
        let years = (0..SEARCHED_YEARS).filter_map(|later| today.year().checked_add(later));
        let mut dates = years.filter_map(|year| Date::new(year, month, day).ok());
        dates.find(|date| *date >= today)
    }
}

fn is_ordinal_ending(text: &str) -> bool {
    ORDINAL_ENDINGS.contains(&text)
}

fn year(text: &str) -> Option<i16> {
    let is_year = text.len() == 4 && text.starts_with("20");
    text.parse().ok().filter(|_| is_year)
}

fn short_year(text: &str) -> Option<i16> {
    let year: i16 = text.parse().ok().filter(|_| text.len() == 2)?;
    Some(2000 + year)
}
